//! The ring under the model checker: two chunks of 64 bytes, all interleavings
//! up to a bounded number of preemptions. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Nobody waits here: who finds no room or no record goes on, and what is left
//! in the ring is looked at when all threads have ended.

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

    fn producer(&self, stolen: bool) -> Producer<'_, Words> {
        Producer::new(&self.mem, &self.tx, &self.consumed, stolen).unwrap()
    }

    fn consumer(&self) -> Consumer<'_, Words> {
        Consumer::new(&self.mem, &self.rx, &self.consumed)
    }

    /// Pushes `words` words, all of the value `v`, as one record, if there is
    /// room. A thief robs at sight.
    fn push(&self, v: u64, words: u32, stolen: bool) -> Option<u64> {
        self.push_by(&self.producer(stolen), v, words)
    }

    fn push_by(&self, p: &Producer<'_, Words>, v: u64, words: u32) -> Option<u64> {
        let pushed = p.push(8 * words as usize, RING, false, |mem, off, n| {
            assert_eq!(n, 8 * words);
            for i in 0..words {
                mem.header(off + 8 * i).store(v, Ordering::Relaxed);
            }
            Ok(n)
        });
        match pushed {
            Push::Done(n) => {
                assert_eq!(n, 8 * words as usize);
                Some(v)
            }
            Push::Full => None,
            other => panic!("{other:?}"),
        }
    }

    /// Takes one record, whose words must all be equal.
    fn pull(&self) -> Option<u64> {
        let mut got = Vec::new();
        let pulled = self.consumer().pull(RING, |mem, off, n| {
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
            Pull::Empty | Pull::CutBack => None,
            Pull::Broken => panic!("broken"),
            Pull::Fault(_) => unreachable!(),
        }
    }

    /// All that is left, when nobody else uses the ring any more.
    fn rest(&self) -> Vec<u64> {
        std::iter::from_fn(|| self.pull()).collect()
    }

    /// Is every byte that went in taken, and every frame's hold given up?
    fn assert_quiet(&self) {
        assert_eq!(self.tx.in_flight(&self.mem, &self.consumed), 0);
        assert_eq!(self.tx.taken_and_held(), (1, 0));
    }
}

/// Checks `f` in all interleavings with at most `preemptions` of them.
fn check(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

/// Records of a whole chunk: the third goes where the first was, if the consumer
/// has left it in time.
#[test]
fn bytes_arrive_in_order_and_chunks_are_used_again() {
    check(4, || {
        let ring = Ring::new();
        let tx = ring.clone();
        let producer = thread::spawn(move || {
            let pushed: Vec<u64> = (1..=3).filter_map(|v| tx.push(v, 5, false)).collect();
            pushed
        });
        let mut got: Vec<u64> = (0..3).filter_map(|_| ring.pull()).collect();
        let pushed = producer.join().unwrap();
        got.extend(ring.rest());
        assert_eq!(got, pushed);
        ring.assert_quiet();
    });
}

/// A frame that was robbed of its lock pushes beside the thief.
#[test]
fn a_robbed_producer_and_the_thief_do_no_harm() {
    check(5, || {
        let ring = Ring::new();
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.push(1, 2, false));
        let mut pushed: Vec<u64> = ring.push(2, 2, true).into_iter().collect();
        pushed.extend(other.join().unwrap());
        let mut got = ring.rest();
        got.sort();
        pushed.sort();
        assert_eq!(got, pushed);
        ring.assert_quiet();
    });
}

/// The same while the consumer reads, and over the change of chunks.
#[test]
fn a_consumer_beside_a_robbed_producer_and_the_thief() {
    check(3, || {
        let ring = Ring::new();
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.push(1, 4, false));
        let stealing = ring.clone();
        let thief = thread::spawn(move || stealing.push(2, 4, true));
        let mut got: Vec<u64> = (0..2).filter_map(|_| ring.pull()).collect();
        let mut pushed: Vec<u64> = other.join().unwrap().into_iter().collect();
        pushed.extend(thief.join().unwrap());
        got.extend(ring.rest());
        got.sort();
        pushed.sort();
        assert_eq!(got, pushed);
        ring.assert_quiet();
    });
}

/// A thief goes back to TCP while the robbed frame still pushes: nothing of that
/// frame comes behind the cut-back record.
#[test]
fn nothing_comes_behind_a_cut_back() {
    check(4, || {
        let ring = Ring::new();
        // Made before the thief comes.
        let robbed = ring.producer(false);
        let stealing = ring.clone();
        let thief = thread::spawn(move || stealing.producer(true).push_cut_back());
        let pushed = ring.push_by(&robbed, 1, 1);
        let cut = thief.join().unwrap();
        let got = ring.pull();
        assert_eq!(got, pushed);
        assert_eq!(ring.consumer().pass_cut_back(), cut);
        assert_eq!(ring.pull(), None);
        // The next epoch.
        let next = ring.push(3, 1, false);
        assert_eq!(ring.pull(), next);
        ring.assert_quiet();
    });
}

/// Two frames of the reading side, one of which lost the lock: each record goes
/// to one of them, and the position that is published is the last.
#[test]
fn two_consumers_take_each_record_once() {
    check(6, || {
        let ring = Ring::new();
        assert!(ring.push(1, 1, false).is_some() && ring.push(2, 1, false).is_some());
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.pull());
        let mut got: Vec<u64> = ring.pull().into_iter().collect();
        got.extend(other.join().unwrap());
        got.sort();
        assert_eq!(got, [1, 2]);
        ring.assert_quiet();
    });
}

/// Two reading frames leave a chunk, whose memory goes back, while the producer
/// waits to use it again.
#[test]
fn a_chunk_is_given_back_before_it_is_used_again() {
    check(2, || {
        let ring = Ring::new();
        assert_eq!(ring.push(1, 5, false), ring.pull());
        // Into chunk 1, which is beyond the window.
        assert!(ring.push(2, 5, false).is_some());
        let robbed = ring.clone();
        let other = thread::spawn(move || robbed.pull());
        let tx = ring.clone();
        let producer = thread::spawn(move || {
            // Into chunk 0, and into chunk 1 again.
            [tx.push(3, 5, false), tx.push(4, 1, false)]
        });
        let mut got: Vec<u64> = (0..2).filter_map(|_| ring.pull()).collect();
        got.extend(other.join().unwrap());
        let mut pushed = vec![2];
        pushed.extend(producer.join().unwrap().into_iter().flatten());
        got.extend(ring.rest());
        got.sort();
        assert_eq!(got, pushed);
        ring.assert_quiet();
    });
}
