//! A peer that breaks every rule: it harms its own stream and nothing else.

use super::wire::*;
use crate::abi::record::*;
use crate::ring::*;
use crate::sync::Ordering;
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A place in the first two chunks or anywhere.
fn place() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 0u32..64,
        1 => CHUNK / 8 - 8..CHUNK / 8 + 8,
        1 => 0u32..(RING / 8) as u32,
    ]
    .prop_map(|word| 8 * word)
}

/// Any header, honest or not.
fn header() -> impl Strategy<Value = u64> {
    let count = prop_oneof![3 => Just(0u64), 1 => 0u64..100, 1 => any::<u64>()];
    let len = prop_oneof![0u32..200, 0u32..1 << 20];
    prop_oneof![
        any::<u64>(),
        (0u64..16, len, count).prop_map(|(kind, len, count)| {
            u64::from(len) | kind << 20 | (count & COUNT_MASK) << 24
        }),
    ]
}

fn scribble(w: &Wire, words: &[(u32, u64)]) {
    for (at, word) in words {
        w.mem.header(*at).store(*word, Ordering::Relaxed);
    }
}

/// Uses a ring as a reader does. Whatever stands there, no byte outside of the
/// ring is asked for (`RawMemory` would refuse), and all comes to an end.
fn read(w: &Wire, max: usize) {
    let c = w.consumer();
    let mut inside = |_: &RawMemory, off: u32, n: u32| {
        assert!(off as usize + n as usize <= RING);
        Ok(n)
    };
    for _ in 0..20 {
        let before = w.rx.count();
        let pulled = if max.is_multiple_of(2) {
            c.pull(max, &mut inside)
        } else {
            c.pull_many(max, max, |mem, off, n, _| inside(mem, off, n))
        };
        match pulled {
            Pull::Data(n) => assert_eq!(count_sub(w.rx.count(), before), n as u64),
            Pull::CutBack => {
                c.pass_cut_back();
            }
            Pull::Empty | Pull::Broken => break,
            Pull::Fault(_) => unreachable!(),
        }
        let seen = c.look_ahead(max, |_, off, n, _| {
            assert!(off as usize + n as usize <= RING);
        });
        assert!(seen <= max);
        c.tail(c.tail(Pos(0)));
        c.peek();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_reader_survives_any_headers(
        words in proptest::collection::vec((place(), header()), 1..40),
        max in 1usize..300_000,
    ) {
        thread_local!(static WIRE: Wire = Wire::new());
        WIRE.with(|w| {
            w.reset();
            scribble(w, &words);
            let start = Instant::now();
            read(w, max);
            assert!(start.elapsed() < Duration::from_secs(5));
        });
    }

    #[test]
    fn a_writer_survives_any_headers_and_positions(
        words in proptest::collection::vec((place(), header()), 0..10),
        consumed in prop_oneof![0u64..4000, any::<u64>()],
        sizes in proptest::collection::vec(1usize..300_000, 1..6),
        stolen: bool,
    ) {
        thread_local!(static WIRE: Wire = Wire::new());
        WIRE.with(|w| {
            w.reset();
            assert_eq!(w.push(&[1; 1000], RING, true), Push::Done(1000));
            scribble(w, &words);
            w.consumed().store(consumed, Ordering::Relaxed);
            let Some(p) = Producer::new(&w.mem, &w.tx, w.consumed(), stolen) else {
                return;
            };
            for n in sizes {
                let pushed = p.push(n, RING, false, |_, off, n| {
                    assert!(off as usize + n as usize <= RING);
                    Ok(n)
                });
                if pushed == Push::Broken {
                    break;
                }
                p.push_cut_back();
            }
        });
    }

    #[test]
    fn a_record_that_is_decoded_stays_in_its_chunk(word: u64, at in 0u32..CHUNK / 8) {
        let at = 8 * at;
        let Some(record) = Record::decode(word, at) else { return Ok(()) };
        assert_eq!(Record::decode(record.encode(), at), Some(record));
        match record {
            Record::Data { len, .. } => assert!(len > 0 && at + 16 + padded(len) <= CHUNK),
            Record::Goto { chunk, .. } => assert!(chunk < CHUNKS),
            Record::CutBack { .. } => assert!(at + 16 <= CHUNK),
        }
    }
}

#[test]
fn a_consumer_ahead_of_us_is_found_out() {
    let w = Wire::new();
    assert_eq!(w.push(&[1; 100], RING, true), Push::Done(100));
    for claim in [101, 1 << 39, COUNT_MASK - RING as u64] {
        w.consumed().store(claim, Ordering::Relaxed);
        assert_eq!(w.producer(false).in_flight(), None, "{claim}");
        assert_eq!(w.push(&[1; 100], 120, true), Push::Broken);
    }
}

/// GOTOs in a circle, through all chunks.
#[test]
fn a_circle_of_gotos_is_broken() {
    let w = Wire::new();
    for chunk in 0..CHUNKS {
        let next = Record::Goto {
            chunk: (chunk + 1) % CHUNKS,
            count: 0,
        };
        scribble(&w, &[(chunk << CHUNK_SHIFT, next.encode())]);
    }
    assert_eq!(w.consumer().peek(), Peek::Broken);
    assert_eq!(w.pull(&mut Vec::new(), 1), Pull::Broken);
    assert_eq!(w.look(100), []);
    w.consumer().tail(Pos(0));
}

/// A peer that scribbles all over the ring, while it is used.
#[test]
fn both_sides_survive_a_scribbling_peer() {
    let w = Wire::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut x = 1u64;
            while !stop.load(Ordering::Relaxed) {
                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                let at = 8 * (x >> 40) as u32 % 4096;
                let kind = x & 7;
                let word = (x % 300) | (kind << 20) | (x >> 20 & 0xfff) << 24;
                w.mem
                    .header(at)
                    .store(if kind == 0 { 0 } else { word }, Ordering::Relaxed);
                w.consumed().store(x & 0xfff, Ordering::Relaxed);
            }
        });
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            w.reset();
            for _ in 0..50 {
                w.consumer().pull(1000, |_, _, n| Ok(n));
                w.consumer().look_ahead(5000, |_, _, _, _| {});
                w.consumer().tail(Pos(0));
                if let Some(p) = Producer::new(&w.mem, &w.tx, w.consumed(), true) {
                    p.push(200, RING, true, |_, _, n| Ok(n));
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}
