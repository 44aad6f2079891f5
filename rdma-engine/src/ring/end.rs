//! The end of a ring, where the next record goes.

use super::chunks::Chunks;
use super::Memory;
use crate::abi::record::{count_sub, Pos, Record, CHUNKS, HEADER, RING};
use crate::sync::{cas, cas_alone, AtomicU64, Ordering};

/// What the writing side knows, in memory that the peer cannot map. All zero is
/// the state of an empty ring whose position is 0 and that has not begun:
/// [`ProducerState::begin`] comes first.
#[repr(C, align(64))]
pub struct ProducerState {
    /// [`Pos`] of the last place claimed, with [`CLAIMED`], or of the first place,
    /// which nobody has claimed yet. Once left, a place never comes back (within
    /// 2^40 bytes).
    pos: AtomicU64,
    /// A position that the consumer has reached, checked.
    pub(super) seen: AtomicU64,
    pub(super) chunks: Chunks,
}

/// The place is claimed. Without it: free.
const CLAIMED: u64 = 1 << 63;

/// The position in a word of [`ProducerState::pos`].
#[inline]
fn place(word: u64) -> Pos {
    Pos(word & !CLAIMED)
}

/// A place for the next record, and the word that a claim of it replaces.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) word: u64,
    pub(super) at: Pos,
}

/// What stands at the end of the ring.
pub(super) enum Look {
    /// Nothing: the place can be claimed.
    Free(Place),
    /// A claim without a header.
    Pending(Place),
    /// A cut-back record that came after this producer was made.
    Ended(Pos),
    /// A header that is not ours.
    Broken,
}

#[allow(clippy::new_without_default)]
impl ProducerState {
    /// An empty state, for the model checker and unit tests (elsewhere the
    /// state lies in zeroed shared memory).
    pub fn new() -> ProducerState {
        ProducerState {
            pos: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            chunks: Chunks::new(),
        }
    }

    /// Sets the state for a ring that nobody has used yet.
    pub fn begin(&self) {
        self.chunks.begin();
        self.seen.store(0, Ordering::Relaxed);
        self.pos.store(0, Ordering::Release);
    }

    /// Stream position of the next byte, modulo 2^40.
    pub(super) fn count<M: Memory>(&self, mem: &M) -> u64 {
        loop {
            let word = self.pos.load(Ordering::Acquire);
            let at = place(word);
            let mut count = at.count();
            if word & CLAIMED != 0 {
                let header = mem.header(at.off()).load(Ordering::Acquire);
                if let Some(Record::Data { len, .. }) = Record::decode(header, at.at()) {
                    count = at.after_data(len).count();
                }
            }
            // Else what we saw may be the bytes of another use of the chunk.
            if self.pos.load(Ordering::Acquire) == word {
                return count;
            }
        }
    }

    /// A record of about `len` bytes will be written next: asks for its lines, which
    /// the reader has still from the last time round, but not for the first, which it
    /// polls. A hint, that needs no lock.
    pub fn will_write<M: Memory>(&self, mem: &M, len: u32) {
        let word = self.pos.load(Ordering::Acquire);
        let mut at = place(word);
        if word & CLAIMED != 0 {
            let header = mem.header(at.off()).load(Ordering::Acquire);
            match Record::decode(header, at.at()) {
                Some(Record::Data { len, .. }) => at = at.after_data(len),
                _ => return,
            }
        }
        for off in (at.off() + 64..at.off() + HEADER + len).step_by(64) {
            mem.will_write(off);
        }
    }

    /// Bytes that the consumer, whose position is `consumed`, has not taken yet.
    /// Needs no lock: it is the value of a moment. More than [`RING`] if the
    /// consumer claims what cannot be.
    pub fn in_flight<M: Memory>(&self, mem: &M, consumed: &AtomicU64) -> u64 {
        // First the consumer's position, then our own, which is never behind it.
        let taken = consumed.load(Ordering::Acquire);
        count_sub(self.count(mem), taken)
    }

    /// [`ProducerState::begin`] in mid-stream.
    #[cfg(all(test, not(loom)))]
    pub(super) fn begin_at(&self, count: u64) {
        self.begin();
        self.seen.store(count, Ordering::Relaxed);
        self.pos.store(Pos::new(0, count).0, Ordering::Release);
    }

    /// Chunks that are current, and chunks that are held.
    #[cfg(test)]
    pub(super) fn taken_and_held(&self) -> (usize, usize) {
        self.chunks.count()
    }

    /// Is half of the ring lost to frames that never went on?
    /// Then the direction should go back to TCP, for good.
    pub fn is_worn(&self) -> bool {
        self.chunks.lost() > CHUNKS as usize / 2
    }

    /// Finds the end of the ring, and accounts for the chunk that a GOTO there
    /// has left. `epoch` is the cut-back record that the caller knows.
    #[inline(always)]
    pub(super) fn look<M: Memory>(&self, mem: &M, epoch: Option<Pos>) -> Look {
        loop {
            let word = self.pos.load(Ordering::Acquire);
            let at = place(word);
            if word & CLAIMED == 0 {
                return Look::Free(Place { word, at });
            }
            let header = mem.header(at.off()).load(Ordering::Acquire);
            let behind = |at| Look::Free(Place { word, at });
            let found = if header == 0 {
                Look::Pending(Place { word, at })
            } else {
                match Record::decode(header, at.at()).filter(|r| r.count() == at.count()) {
                    Some(Record::Data { len, .. }) => behind(at.after_data(len)),
                    Some(Record::CutBack { .. }) if epoch != Some(at) => Look::Ended(at),
                    Some(Record::CutBack { .. }) => behind(at.after_cut_back()),
                    Some(Record::Goto { chunk, .. }) => {
                        let was = self.chunks.word(at);
                        if self.pos.load(Ordering::Acquire) != word {
                            continue;
                        }
                        self.chunks.leave(at, was);
                        behind(at.in_chunk(chunk))
                    }
                    None => Look::Broken,
                }
            };
            // Else what we saw may be the bytes of another use of the chunk.
            if self.pos.load(Ordering::Acquire) == word {
                return found;
            }
        }
    }

    /// Claims `place` for the caller's record; false if it is taken. `alone`: no
    /// other thread claims anything.
    #[inline]
    pub(super) fn claim(&self, place: Place, alone: bool) -> bool {
        let claimed = place.at.0 | CLAIMED;
        if alone {
            return cas_alone(&self.pos, place.word, claimed);
        }
        cas(&self.pos, place.word, claimed)
    }

    /// Takes our claim of `at` back: nothing is to be published. If a GOTO got
    /// in there, the next claim of `at` will fail in our place.
    #[cold]
    pub(super) fn give_up(&self, at: Pos) {
        if !cas(&self.pos, at.0 | CLAIMED, at.0) {
            self.chunks.let_go(at);
        }
    }

    /// The word of the chunk of `place`, if the ring still ends there.
    pub(super) fn chunk_of(&self, place: Place) -> Option<u64> {
        let was = self.chunks.word(place.at);
        (self.pos.load(Ordering::Acquire) == place.word).then_some(was)
    }
}

const _: () = assert!(RING / 8 <= 1 << 22, "an offset leaves room for the mark");
