//! What each chunk of a ring is to its producer.
//!
//! ```text
//!   free --take--> current --leave--> busy --the consumer passes--> free, unless held
//! ```
//!
//! A frame that may still write to a chunk late, because it is about to be
//! robbed of a place there or to rob another of it, *holds* the chunk, which is
//! not taken again until all have let go. A frame that never goes on never does:
//! its chunk is lost to the ring.

use crate::abi::record::{count_sub, Pos, CHUNKS, COUNT_MASK};
use crate::sync::{cas, AtomicU64, Ordering};

const FREE: u64 = 0;
/// Taken. The low 40 bits number the use, so that no late frame takes one use of
/// a chunk for another.
const CURRENT: u64 = 1 << 63;
/// Left, at the stream position in the low 40 bits.
const BUSY: u64 = 1 << 62;
/// One frame more that holds the chunk: the bits between.
const HOLD: u64 = 1 << 40;
const HOLDS: u64 = BUSY - HOLD;

/// One word for each chunk.
#[repr(transparent)]
pub(super) struct Chunks([AtomicU64; CHUNKS as usize]);

impl Chunks {
    pub(super) fn new() -> Chunks {
        Chunks(core::array::from_fn(|_| AtomicU64::new(FREE)))
    }

    /// All free but chunk 0, which is current.
    pub(super) fn begin(&self) {
        for word in &self.0 {
            word.store(FREE, Ordering::Relaxed);
        }
        self.0[0].store(CURRENT, Ordering::Relaxed);
    }

    fn of(&self, at: Pos) -> &AtomicU64 {
        &self.0[at.chunk() as usize % CHUNKS as usize]
    }

    /// The word of the chunk that `at` lies in.
    pub(super) fn word(&self, at: Pos) -> u64 {
        self.of(at).load(Ordering::Acquire)
    }

    /// Is this the word of a current chunk?
    pub(super) fn is_current(word: u64) -> bool {
        word & CURRENT != 0
    }

    /// Takes the lowest free chunk below `last`, to follow the current one,
    /// whose word is `was`. Returns it and its new word.
    pub(super) fn take(&self, was: u64, last: u32) -> Option<(u32, u64)> {
        let word = CURRENT | (was + 1) & COUNT_MASK;
        (0..last)
            .find(|&c| cas(&self.0[c as usize], FREE, word))
            .map(|c| (c, word))
    }

    /// Gives back a chunk that was taken and that nothing leads to.
    pub(super) fn put_back(&self, chunk: u32, word: u64) {
        cas(&self.0[chunk as usize], word, FREE);
    }

    /// The chunk of `at`, whose word was `was`, is left at `at`. Changes nothing
    /// if that is accounted for already.
    pub(super) fn leave(&self, at: Pos, was: u64) {
        self.change(at, |w| {
            let same_use = w & CURRENT != 0 && w & !HOLDS == was & !HOLDS;
            same_use.then_some(BUSY | w & HOLDS | at.count())
        });
    }

    /// Holds the chunk of `at` if its word is still `was`.
    pub(super) fn hold(&self, at: Pos, was: u64) -> bool {
        cas(self.of(at), was, was + HOLD)
    }

    /// A frame that holds the chunk of `at` writes there no more.
    pub(super) fn let_go(&self, at: Pos) {
        self.change(at, |w| (w & HOLDS != 0).then(|| freed(w - HOLD)));
    }

    /// Frees the chunks that the consumer has left: it has taken a byte of a
    /// later one.
    pub(super) fn sweep(&self, consumed: u64) {
        for word in &self.0 {
            let w = word.load(Ordering::Acquire);
            let beyond = count_sub(consumed, w);
            if w & BUSY != 0 && beyond > 0 && beyond < 1 << 39 {
                // If it fails, the next sweep comes.
                cas(word, w, freed(w & !BUSY));
            }
        }
    }

    /// Chunks that are held, or current and not the last one: such frames may
    /// never go on.
    pub(super) fn lost(&self) -> usize {
        let (current, held) = self.count();
        (current + held).saturating_sub(1)
    }

    /// Chunks that are current, and chunks that are held.
    pub(super) fn count(&self) -> (usize, usize) {
        let count = |mask: u64| {
            let has = |w: &&AtomicU64| w.load(Ordering::Relaxed) & mask != 0;
            self.0.iter().filter(has).count()
        };
        (count(CURRENT), count(HOLDS))
    }

    fn change(&self, at: Pos, to: impl Fn(u64) -> Option<u64>) {
        let word = self.of(at);
        let mut w = word.load(Ordering::Acquire);
        while let Some(new) = to(w) {
            match word.compare_exchange(w, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => w = now,
            }
        }
    }
}

/// The word, or [`FREE`] if nobody needs the chunk any more.
fn freed(word: u64) -> u64 {
    if word & (CURRENT | BUSY | HOLDS) == 0 {
        FREE
    } else {
        word
    }
}
