//! The ring under the model checker: two chunks of 64 bytes, all interleavings
//! up to a bounded number of preemptions. Run with `RUSTFLAGS="--cfg loom"`.

use crate::abi::record::{CHUNK, CHUNK_SHIFT, RING};
use crate::ring::*;
use crate::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// A ring's bytes as words that the checker sees.
struct Words(Vec<AtomicU64>);

impl Memory for Words {
    fn header(&self, off: u32) -> &AtomicU64 {
        &self.0[off as usize / 8]
    }

    fn give_back(&self, chunk: u32, keep: u32) {
        for off in (0..CHUNK).step_by(8).map(|o| (chunk << CHUNK_SHIFT) + o) {
            if off != keep {
                self.header(off).store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Checks `f` in all interleavings with at most `preemptions` of them.
fn check(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.max_branches = 20_000;
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

struct Ring {
    mem: Words,
    tx: ProducerState,
    rx: ConsumerState,
    consumed: AtomicU64,
}

impl Ring {
    fn new() -> Arc<Ring> {
        let ring = Ring {
            mem: Words((0..RING / 8).map(|_| AtomicU64::new(0)).collect()),
            tx: ProducerState::new(),
            rx: ConsumerState::new(),
            consumed: AtomicU64::new(0),
        };
        ring.tx.begin();
        ring.rx.begin();
        Arc::new(ring)
    }

    /// Pushes `words` words, all of the value `v`, as one record.
    fn push(&self, v: u64, words: u32, stolen: bool) -> Push {
        let p = Producer::new(&self.mem, &self.tx, &self.consumed, stolen).unwrap();
        p.push(8 * words as usize, RING, false, |mem, off, n| {
            assert_eq!(n, 8 * words);
            for i in 0..words {
                mem.header(off + 8 * i).store(v, Ordering::Relaxed);
            }
            Ok(n)
        })
    }

    /// [`Ring::push`] as soon as there is room.
    fn push_all(&self, v: u64, words: u32) {
        loop {
            match self.push(v, words, false) {
                Push::Done(n) => return assert_eq!(n, 8 * words as usize),
                Push::Full => thread::yield_now(),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Takes one record, whose words must all be equal.
    fn pull(&self) -> Option<u64> {
        let c = Consumer::new(&self.mem, &self.rx, &self.consumed);
        let mut got = Vec::new();
        let pulled = c.pull(RING, |mem, off, n| {
            got = (0..n / 8)
                .map(|i| mem.header(off + 8 * i).load(Ordering::Relaxed))
                .collect();
            Ok(n)
        });
        match pulled {
            Pull::Data(n) => {
                assert_eq!(n, 8 * got.len());
                assert!(got.iter().all(|v| *v == got[0]), "torn: {got:?}");
                Some(got[0])
            }
            Pull::Empty => None,
            other => panic!("{other:?}"),
        }
    }

    fn pull_next(&self) -> u64 {
        loop {
            match self.pull() {
                Some(v) => return v,
                None => thread::yield_now(),
            }
        }
    }
}

/// Records of a whole chunk: the third goes where the first was, once the
/// consumer has left it.
#[test]
fn bytes_arrive_in_order_and_chunks_are_used_again() {
    check(3, || {
        let ring = Ring::new();
        let tx = ring.clone();
        let producer = thread::spawn(move || {
            for v in 1..=3 {
                tx.push_all(v, 5);
            }
        });
        for v in 1..=3 {
            assert_eq!(ring.pull_next(), v);
        }
        producer.join().unwrap();
        assert_eq!(ring.consumed.load(Ordering::Relaxed), 120);
        assert_eq!(ring.tx.count(), 120);
    });
}

/// A frame that was robbed of its lock pushes beside the thief.
#[test]
fn a_robbed_producer_and_the_thief_do_no_harm() {
    check(3, || {
        let ring = Ring::new();
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.push_all(1, 2));
        // Robs at sight.
        assert_eq!(ring.push(2, 2, true), Push::Done(16));
        other.join().unwrap();
        let mut got = [ring.pull().unwrap(), ring.pull().unwrap()];
        got.sort();
        assert_eq!(got, [1, 2]);
        assert_eq!(ring.pull(), None);
        assert!(!ring.tx.is_held());
    });
}

/// The same while the consumer reads.
#[test]
fn a_consumer_beside_a_robbed_producer_and_the_thief() {
    check(3, || {
        let ring = Ring::new();
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.push_all(1, 1));
        let stealing = ring.clone();
        let thief = thread::spawn(move || {
            assert_eq!(stealing.push(2, 1, true), Push::Done(8));
        });
        let mut got = [ring.pull_next(), ring.pull_next()];
        got.sort();
        assert_eq!(got, [1, 2]);
        other.join().unwrap();
        thief.join().unwrap();
        assert_eq!(ring.pull(), None);
    });
}

/// Two frames of the reading side, one of which lost the lock: each record goes
/// to one of them, and the position that is published is the last.
#[test]
fn two_consumers_take_each_record_once() {
    check(3, || {
        let ring = Ring::new();
        ring.push_all(1, 1);
        ring.push_all(2, 1);
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.pull_next());
        let mut got = [ring.pull_next(), other.join().unwrap()];
        got.sort();
        assert_eq!(got, [1, 2]);
        assert_eq!(ring.consumed.load(Ordering::Relaxed), 16);
    });
}

/// Two reading frames leave a chunk, whose memory goes back, while the producer
/// waits to use it again.
#[test]
fn a_chunk_is_given_back_before_it_is_used_again() {
    check(3, || {
        let ring = Ring::new();
        ring.push_all(1, 5);
        assert_eq!(ring.pull_next(), 1);
        // Chunk 1, which is beyond the window, and chunk 0.
        ring.push_all(2, 5);
        ring.push_all(3, 1);
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.pull_next());
        let tx = ring.clone();
        let producer = thread::spawn(move || tx.push_all(4, 5));
        let mut got = [ring.pull_next(), 0, 0];
        got[1] = other.join().unwrap();
        got[2] = ring.pull_next();
        producer.join().unwrap();
        got.sort();
        assert_eq!(got, [2, 3, 4]);
        assert_eq!(ring.pull(), None);
    });
}
