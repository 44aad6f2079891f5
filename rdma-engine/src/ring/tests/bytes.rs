//! Bytes through real memory: exact, within their limits, and no more memory
//! than is needed.

use super::wire::*;
use crate::abi::record::*;
use crate::ring::*;
use crate::sync::Ordering;
use crate::sys;
use proptest::prelude::*;

const WINDOW: usize = WINDOW_CHUNKS as usize * CHUNK as usize;
/// What a segment has beside its rings' bytes.
const HEADERS: usize = 8192;

/// Pushes as much of the stream's bytes from `from` on as there is room for.
fn fill(w: &Wire, from: usize, limit: usize, window_only: bool) -> usize {
    let mut n = 0;
    while let Push::Done(m) = w.push(&bytes(from + n, 100_000), limit, window_only) {
        n += m;
    }
    n
}

/// Takes all there is, which are the stream's bytes from `from` on.
fn empty(w: &Wire, from: usize) -> usize {
    let mut got = Vec::new();
    while let Pull::Data(_) = w.pull(&mut got, usize::MAX) {}
    assert!(got == bytes(from, got.len()), "wrong bytes");
    got.len()
}

/// Two threads, random sizes on both sides.
fn two_threads(total: usize, limit: usize, window_only: bool) {
    let w = Wire::new();
    std::thread::scope(|s| {
        s.spawn(|| {
            let (mut sent, mut size) = (0, 1usize);
            while sent < total {
                size = (size * 75 + 74) % 65537;
                let n = size.min(total - sent).max(1);
                match w.push(&bytes(sent, n), limit, window_only) {
                    Push::Done(n) => sent += n,
                    Push::Full => sys::sched_yield(),
                    other => panic!("{other:?}"),
                }
                let on_way = w.producer(false).in_flight().expect("an honest peer");
                assert!(on_way <= limit, "{on_way} in flight");
            }
        });
        let (mut got, mut from, mut size) = (Vec::new(), 0, 1usize);
        while from + got.len() < total {
            size = (size * 75 + 74) % 65537;
            match w.pull(&mut got, size.max(1)) {
                Pull::Data(_) => {}
                Pull::Empty => sys::sched_yield(),
                other => panic!("{other:?}"),
            }
            if got.len() > 1 << 16 || from + got.len() == total {
                assert!(got == bytes(from, got.len()), "wrong bytes behind {from}");
                from += got.len();
                got.clear();
            }
        }
    });
    assert_eq!(w.pull(&mut Vec::new(), 1), Pull::Empty);
    assert_eq!(w.tx.taken_and_held(), (1, 0));
}

const TOTAL: usize = if cfg!(debug_assertions) {
    3 << 20
} else {
    30 << 20
};

#[test]
fn two_threads_in_the_window() {
    two_threads(TOTAL, 1 << 20, true);
}

#[test]
fn two_threads_in_the_whole_ring() {
    two_threads(TOTAL, 24 << 20, false);
}

#[test]
fn two_threads_with_a_small_limit() {
    two_threads(TOTAL / 8, 4096, true);
}

#[test]
fn two_threads_byte_by_byte() {
    two_threads(TOTAL / 512, 1, false);
}

#[test]
fn a_limit_holds_to_the_byte() {
    let w = Wire::new();
    assert_eq!(w.push(&bytes(0, 100), 150, false), Push::Done(100));
    assert_eq!(w.push(&bytes(100, 100), 150, false), Push::Done(50));
    assert_eq!(w.push(&bytes(150, 1), 150, false), Push::Full);
    let mut got = Vec::new();
    assert_eq!(w.pull(&mut got, 30), Pull::Data(30));
    assert_eq!(w.push(&bytes(150, 31), 150, false), Push::Done(30));
    assert_eq!(w.push(&bytes(180, 1), 0, false), Push::Full);
    assert_eq!(w.tx.in_flight(&w.mem, w.consumed()), 150);
}

/// A reader that keeps up lets the writer touch no more than the window.
#[test]
fn a_fast_reader_costs_only_the_window() {
    let w = Wire::new();
    let mut n = 0;
    while n < 2 * RING {
        n += fill(&w, n, 300_000, false);
        assert_eq!(empty(&w, n - 300_000), 300_000);
    }
    assert!(w.memory() <= WINDOW + HEADERS, "{}", w.memory());
}

#[test]
fn a_burst_fills_the_ring_and_its_memory_goes_back() {
    let w = Wire::new();
    let within = fill(&w, 0, RING, true);
    assert!((WINDOW - 1000..WINDOW).contains(&within));
    let mut n = 0;
    // Twice: whatever is left of the first burst must serve the second.
    for _ in 0..2 {
        let start = n;
        n += if n == 0 { within } else { 0 };
        n += fill(&w, n, RING, false);
        assert!(n - start > RING - 2 * CHUNK as usize, "{}", n - start);
        assert!(w.memory() > RING - 2 * CHUNK as usize);
        assert_eq!(empty(&w, start), n - start);
        // A page of each chunk stays, and the chunk that the ring ends in.
        let most = WINDOW + CHUNKS as usize * 4096 + CHUNK as usize + HEADERS;
        assert!(w.memory() <= most, "{}", w.memory());
        assert_eq!(w.tx.taken_and_held(), (1, 0));
    }
}

/// One reader publishes nothing while another gives a chunk back.
#[test]
fn a_chunk_is_not_credited_before_it_is_given_back() {
    let w = Wire::new();
    assert_eq!(w.push(&bytes(0, 64), 100, true), Push::Done(64));
    w.rx.given_by(sys::gettid());
    std::thread::scope(|s| {
        let reader = s.spawn(|| w.pull(&mut Vec::new(), 64));
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(w.rx.count(), 64, "the bytes are taken");
        assert_eq!(w.consumed().load(Ordering::Acquire), 0);
        w.rx.given_by(0);
        assert_eq!(reader.join().unwrap(), Pull::Data(64));
    });
    assert_eq!(w.consumed().load(Ordering::Acquire), 64);
}

#[test]
fn what_faults_is_neither_written_nor_taken() {
    let w = Wire::new();
    let fault = Fault(libc::EFAULT);
    let pushed = w.producer(false).push(64, 100, true, |_, _, _| Err(fault));
    assert_eq!(pushed, Push::Fault(fault));
    assert_eq!(w.consumer().peek(), Peek::Empty);
    assert_eq!(w.push(&bytes(0, 64), 100, true), Push::Done(64));
    let pulled = w.consumer().pull(64, |_, _, _| Err(fault));
    assert_eq!(pulled, Pull::Fault(fault));
    assert_eq!(empty(&w, 0), 64);
}

#[test]
fn one_pull_takes_many_records() {
    let w = Wire::new();
    for i in 0..10 {
        assert_eq!(w.push(&bytes(i * 20, 20), RING, true), Push::Done(20));
    }
    let mut got = Vec::new();
    assert_eq!(
        w.pull_many(&mut got, 50),
        Pull::Data(50),
        "a part of the third"
    );
    assert_eq!(w.consumed().load(Ordering::Acquire), 50);
    let enough = w.consumer().pull_many(RING, 25, |_, _, n, _| Ok(n));
    assert_eq!(enough, Pull::Data(10 + 20), "25 bytes are in the fourth");
    let third_fails = w
        .consumer()
        .pull_many(RING, RING, |_, _, n, done| match done {
            40.. => Err(Fault(libc::EFAULT)),
            _ => Ok(n),
        });
    assert_eq!(third_fails, Pull::Data(40), "what was copied is taken");
    got.clear();
    assert_eq!(w.pull_many(&mut got, RING), Pull::Data(80));
    assert!(got == bytes(120, 80));
    assert_eq!(w.pull_many(&mut got, RING), Pull::Empty);
}

/// A cut-back record has a place wherever the ring ends.
#[test]
fn a_cut_back_fits_behind_any_record() {
    for left in (16..200).step_by(8) {
        let w = Wire::new();
        let n = (CHUNK - HEADER - left) as usize;
        let first = match w.push(&bytes(0, n), RING, true) {
            Push::Done(first) => first,
            other => panic!("{other:?}"),
        };
        assert_eq!(first, n.min(MAX_PAYLOAD as usize));
        let old = w.producer(false);
        assert!(w.producer(false).push_cut_back());
        // A frame from before the cut-back comes too late.
        let late = old.push(1, RING, true, |_, _, n| Ok(n));
        assert_eq!(late, Push::Full);
        assert_eq!(empty(&w, 0), first);
        assert_eq!(w.consumer().peek(), Peek::CutBack);
        assert_eq!(w.pull(&mut Vec::new(), 1), Pull::CutBack);
    }
}

#[test]
fn epochs_follow_each_other() {
    let w = Wire::new();
    let mut n = 0;
    for epoch in 0..10_000 {
        assert!(!w.consumer().pass_cut_back());
        // Less at a chunk's end.
        let Push::Done(size) = w.push(&bytes(n, epoch % 300 + 1), RING, true) else {
            panic!("no room");
        };
        assert!(w.producer(false).push_cut_back());
        assert_eq!(empty(&w, n), size);
        assert!(w.consumer().pass_cut_back());
        assert_eq!(w.consumer().peek(), Peek::Empty);
        n += size;
    }
}

#[test]
fn a_tail_grows_with_each_record_and_with_nothing_else() {
    let w = Wire::new();
    let (mut n, mut tail) = (0, w.consumer().tail(Pos(0)));
    for i in 0..2000 {
        assert_eq!(w.consumer().tail(tail), tail);
        if let Push::Done(m) = w.push(&bytes(n, 777), RING, true) {
            n += m;
        }
        let new = w.consumer().tail(tail);
        assert_ne!(new, tail);
        tail = new;
        if i % 7 == 0 {
            let taken = w.rx.count() as usize;
            empty(&w, taken);
            assert_eq!(w.consumer().tail(tail), tail);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Pushes, pulls, looks and cut-backs in any order, against a queue; also
    /// where the count of bytes starts over at 2^40.
    #[test]
    fn a_ring_is_a_queue(
        start in prop_oneof![
            Just(0u64),
            (0u64..3 << 20).prop_map(|n| (1 << 40) - n),
        ],
        limit in prop_oneof![1usize..5000, Just(1 << 20), Just(RING)],
        steps in proptest::collection::vec((0u8..10, 1usize..400_000, any::<bool>()), 1..120),
    ) {
        thread_local!(static WIRE: Wire = Wire::new());
        WIRE.with(|w| {
            w.begin_at(start);
            let (mut sent, mut got, mut cut) = (0usize, Vec::new(), false);
            let mut taken = 0usize;
            for (what, n, flag) in steps {
                match what {
                    0..=4 => match w.push(&bytes(sent, n), limit, flag) {
                        Push::Done(m) => sent += m,
                        Push::Full => {}
                        other => panic!("{other:?}"),
                    },
                    5..=7 => match if what == 7 {
                        w.pull_many(&mut got, n)
                    } else {
                        w.pull(&mut got, n)
                    } {
                        Pull::Data(m) => {
                            assert!(got == bytes(taken, m), "wrong bytes");
                            taken += m;
                            got.clear();
                        }
                        Pull::Empty => assert_eq!(sent, taken),
                        Pull::CutBack => {
                            assert!(cut && w.consumer().pass_cut_back());
                            cut = false;
                        }
                        other => panic!("{other:?}"),
                    },
                    8 => {
                        let seen = w.look(n);
                        assert!(seen == bytes(taken, seen.len()), "wrong bytes");
                        assert!(cut || seen.len() == n.min(sent - taken));
                    }
                    _ => cut |= !cut && w.producer(flag).push_cut_back(),
                }
                let flight = w.tx.in_flight(&w.mem, w.consumed()) as usize;
                assert_eq!(flight, sent - taken);
                assert!(flight <= limit);
            }
        });
    }
}
