//! Arm, look again, sleep, wake.
//!
//! A side that is about to sleep *arms* its bell (a word in the shared segment
//! that it alone writes), looks at the ring once more, and sleeps in the kernel.
//! The other side publishes, looks at the word, and if it is armed rings: one
//! small message on the side channel, once for each arming. With a full fence
//! on both sides, either the sleeper sees the data or the other sees the
//! arming: no wake-up is lost (model-checked below).

use crate::sync::{fence, AtomicU32, Ordering};

/// The sleeper's side of a bell.
pub struct Bell<'a> {
    /// In the segment: the number of the present arming, or 0.
    armed: &'a AtomicU32,
    /// In end-private memory: the number of the last arming.
    number: &'a AtomicU32,
}

impl<'a> Bell<'a> {
    /// `armed` is written by this side only, `number` never by the peer.
    pub fn new(armed: &'a AtomicU32, number: &'a AtomicU32) -> Bell<'a> {
        Bell { armed, number }
    }

    /// Arms. The caller then looks at what it waits for *again* before it sleeps.
    pub fn arm(&self) {
        // No two armings share a number: else one that comes after a ring for
        // its twin would never be rung for.
        let mut n = 0;
        while n == 0 {
            n = self.number.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        }
        self.armed.store(n, Ordering::Relaxed);
        // Partner: `must_ring`'s fence, or the SeqCst publish before it.
        fence(Ordering::SeqCst);
    }

    /// Takes the bell down.
    pub fn disarm(&self) {
        self.armed.store(0, Ordering::Relaxed);
    }
}

/// The waker's side: after a *SeqCst read-modify-write* that published, must
/// the sleeper be rung? Then it says for which arming: once it has rung, the waker
/// notes that in `rung`, the number that was rung for last, in memory of this side.
/// (Not before: it may not come to it. Twice is better than never.)
#[inline]
pub fn must_ring(armed: &AtomicU32, rung: &AtomicU32) -> Option<u32> {
    // Partner: the fence in `arm`. To the model checker sequentially consistent
    // accesses are weaker than they are.
    #[cfg(loom)]
    fence(Ordering::SeqCst);
    let n = armed.load(Ordering::SeqCst);
    (n != 0 && n != rung.load(Ordering::Relaxed)).then_some(n)
}

/// [`must_ring`] after a plain release store, which needs a full fence first.
#[inline]
pub fn must_ring_after_store(armed: &AtomicU32, rung: &AtomicU32) -> Option<u32> {
    fence(Ordering::SeqCst);
    must_ring(armed, rung)
}

#[cfg(all(test, loom))]
mod model {
    use super::*;
    use crate::sync::AtomicU64;
    use loom::sync::Arc;
    use loom::thread;

    /// A sleeper and a waker: after both have run, either the sleeper saw the
    /// data at its second look, or the waker rang.
    #[test]
    fn no_wake_up_is_lost() {
        loom::model(|| {
            let data = Arc::new(AtomicU64::new(0));
            let armed = Arc::new(AtomicU32::new(0));
            let (d, a) = (data.clone(), armed.clone());
            let waker = thread::spawn(move || {
                let rung = AtomicU32::new(0);
                let published = d.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed);
                assert!(published.is_ok());
                must_ring(&a, &rung)
            });
            let number = AtomicU32::new(0);
            Bell::new(&armed, &number).arm();
            let seen = data.load(Ordering::Acquire) != 0;
            let rang = waker.join().unwrap();
            assert!(seen || rang.is_some());
        });
    }

    /// The same with a plain store on the publishing side (the read cursor).
    #[test]
    fn no_credit_is_lost() {
        loom::model(|| {
            let data = Arc::new(AtomicU64::new(0));
            let armed = Arc::new(AtomicU32::new(0));
            let (d, a) = (data.clone(), armed.clone());
            let waker = thread::spawn(move || {
                let rung = AtomicU32::new(0);
                d.store(1, Ordering::Release);
                must_ring_after_store(&a, &rung)
            });
            let number = AtomicU32::new(0);
            Bell::new(&armed, &number).arm();
            let seen = data.load(Ordering::Acquire) != 0;
            let rang = waker.join().unwrap();
            assert!(seen || rang.is_some());
        });
    }

    /// Two sleepers of one end: a ring for one is none for the other.
    #[test]
    fn no_two_armings_share_a_number() {
        loom::model(|| {
            let armed = Arc::new(AtomicU32::new(0));
            let number = Arc::new(AtomicU32::new(0));
            let (a, n) = (armed.clone(), number.clone());
            let other = thread::spawn(move || Bell::new(&a, &n).arm());
            Bell::new(&armed, &number).arm();
            other.join().unwrap();
            assert_eq!(number.load(Ordering::Relaxed), 2);
        });
    }
}
