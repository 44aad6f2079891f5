//! The writing side of a ring.
//!
//! A record is written in two steps, each one compare-and-swap: a frame *claims*
//! the place (in the producer's private state), copies the bytes there, and
//! *publishes* the header (in the ring). Who finds a claim whose header is still
//! missing has interrupted the claiming frame, or outlived it, and *robs* it: a
//! GOTO in the header's place leads on to another chunk. Header or GOTO, only one
//! of the two gets in, and the loser sees it.
//!
//! ```text
//!                 claim                   publish
//!   free at P -------------> claimed at P ---------> = free behind that record
//!             <-- give up --              -- rob --> = free at the next chunk's start
//! ```
//!
//! So a frame that lost the lock without knowing harms nobody, whether it goes on
//! beside the thief or never: no step here relies on the lock, which only keeps
//! frames from robbing each other in vain.

use super::chunks::Chunks;
use super::end::{Look, Place, ProducerState};
use super::{Fault, Memory, WINDOW_CHUNKS};
use crate::abi::record::{count_sub, Pos, Record, CHUNK, CHUNKS, CHUNK_SHIFT, HEADER, RING, TAIL};
use crate::sync::{AtomicU64, Ordering};
use core::cell::Cell;

/// How far ahead of a record its successors' lines are asked for, in bytes.
const AHEAD: u32 = 384;

/// Looks at a claim of another frame before we rob it, while that frame may be
/// running.
const PATIENCE: u32 = if cfg!(loom) { 1 } else { 256 };
/// Losses in one push before it gives up, which only a storm of signals causes.
const LOSSES: u32 = 4096;

/// What [`Producer::push`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// So many bytes are published, at least one unless the source gave none.
    Done(usize),
    /// No room within the limit (or within the window, if so asked), or the
    /// epoch has ended since the producer was made.
    Full,
    /// The consumer's position is impossible: the peer breaks the protocol.
    Broken,
    /// The source of the bytes failed, and nothing was published.
    Fault(Fault),
}

/// What leaving a chunk came to.
enum Step {
    Again,
    Full,
    Broken,
}

/// The writing side, for as long as its lock is held (and, harmlessly, longer).
pub struct Producer<'a, M> {
    mem: &'a M,
    st: &'a ProducerState,
    /// The consumer's published position, in memory that the peer writes.
    consumed: &'a AtomicU64,
    /// The lock was stolen: a claim that we find is that of a frame that cannot
    /// go on before we have done.
    stolen: bool,
    /// No other thread and no other process works on `st`.
    alone: bool,
    /// The consumer waits for this record, on another processor.
    awaited: bool,
    /// The cut-back record that was the last record when this was made.
    epoch: Option<Pos>,
    /// The free place that stood at the end of the ring then, for the first push: its
    /// word, and its position or [`NOWHERE`]. (Words of 8 bytes each: one that is
    /// stored as two and loaded as one keeps the processor waiting.)
    first: (u64, Cell<u64>),
}

const NOWHERE: u64 = u64::MAX;

impl<'a, M: Memory> Producer<'a, M> {
    /// The caller holds the lock that guards `st`. `stolen`: it was taken from a
    /// frame that may yet go on (a signal handler interrupted it) or is dead.
    /// `None` if the peer has scribbled over our own headers.
    #[inline(always)]
    pub fn new(
        mem: &'a M,
        st: &'a ProducerState,
        consumed: &'a AtomicU64,
        stolen: bool,
    ) -> Option<Producer<'a, M>> {
        let look = st.look(mem, None);
        let (epoch, word, at) = match look {
            Look::Broken => return None,
            Look::Ended(at) => (Some(at), 0, NOWHERE),
            Look::Free(place) => (None, place.word, place.at.0),
            Look::Pending(_) => (None, 0, NOWHERE),
        };
        Some(Producer {
            mem,
            st,
            consumed,
            stolen,
            alone: false,
            awaited: false,
            epoch,
            first: (word, Cell::new(at)),
        })
    }

    /// Says that no other thread and no other process works on this direction, so
    /// that there are only our own signal handlers to beware of.
    #[inline]
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// Says that the consumer probably waits for this very record, on another
    /// processor: then its lines are moved to the cache that both share, which pays for
    /// some KiB, and would slow a stream of records down to a third.
    #[inline]
    pub fn awaited(mut self, awaited: bool) -> Self {
        self.awaited = awaited;
        self
    }

    /// The end of the ring. It may be out of date at once: a claim finds out.
    #[inline(always)]
    fn look(&self) -> Look {
        match self.first.1.replace(NOWHERE) {
            NOWHERE => self.look_again(),
            at => Look::Free(Place {
                word: self.first.0,
                at: Pos(at),
            }),
        }
    }

    #[inline(never)]
    fn look_again(&self) -> Look {
        self.st.look(self.mem, self.epoch)
    }

    /// Bytes that the consumer has not taken yet; `None` if it claims what
    /// cannot be.
    pub fn in_flight(&self) -> Option<usize> {
        // As in [`ProducerState::in_flight`].
        let seen = self.consumed.load(Ordering::Acquire);
        let n = count_sub(self.st.count(self.mem), seen) as usize;
        if n > RING {
            return None;
        }
        self.st.seen.store(seen, Ordering::Relaxed);
        Some(n)
    }

    /// Bytes that may be written at `at` with at most `limit` in flight.
    #[inline]
    fn room(&self, at: Pos, want: usize, limit: usize) -> Option<usize> {
        // The reader's line is looked at only when the last look does not do.
        let known = count_sub(at.count(), self.st.seen.load(Ordering::Relaxed)) as usize;
        if known.saturating_add(want) <= limit {
            return Some(want);
        }
        Some(limit.saturating_sub(self.in_flight()?).min(want))
    }

    /// Writes one record of up to `want` bytes (at least 1), which `fill` copies
    /// to the given offset; it may copy fewer, and says how many. It is called
    /// *again*, for the same bytes, if a signal handler has robbed us meanwhile.
    ///
    /// `limit` bounds the bytes in flight; `window_only` refuses to spread over
    /// chunks beyond the window.
    #[inline(always)]
    pub fn push<F>(&self, want: usize, limit: usize, window_only: bool, mut fill: F) -> Push
    where
        F: FnMut(&M, u32, u32) -> Result<u32, Fault>,
    {
        let mut patience = if self.stolen { 0 } else { PATIENCE };
        for _ in 0..LOSSES {
            let look = self.look();
            let place = match look {
                Look::Free(place) | Look::Pending(place) => place,
                Look::Ended(_) => return Push::Full,
                Look::Broken => return Push::Broken,
            };
            let len = match self.room(place.at, want, limit) {
                Some(0) => return Push::Full,
                Some(n) => n,
                None => return Push::Broken,
            };
            let fits = (CHUNK - place.at.at()).saturating_sub(HEADER + TAIL);
            let step = if let Look::Pending(_) = look {
                self.rob(place, &mut patience)
            } else if fits == 0 || (fits < 64 && len > fits as usize && place.at.at() > 0) {
                // A sliver at the end of a chunk is not worth a record of its
                // own, unless the whole message fits.
                self.next_chunk(place, window_only)
            } else if !self.st.claim(place, self.alone) {
                Step::Again
            } else {
                match self.write(place.at, len.min(fits as usize) as u32, &mut fill) {
                    Some(Ok(n)) => return Push::Done(n as usize),
                    Some(Err(fault)) => return Push::Fault(fault),
                    // Whoever robbed us may be running, beside us.
                    None => patience = PATIENCE,
                }
                Step::Again
            };
            match step {
                Step::Again => {}
                Step::Full => return Push::Full,
                Step::Broken => return Push::Broken,
            }
        }
        Push::Full
    }

    /// Publishes the record that ends this epoch: TCP carries on from here. What
    /// other producers, made before, still push behind it is refused. False if
    /// the ring has no place for it at the moment.
    pub fn push_cut_back(&self) -> bool {
        let mut patience = if self.stolen { 0 } else { PATIENCE };
        for _ in 0..LOSSES {
            let step = match self.look() {
                Look::Free(place) if CHUNK - place.at.at() < 2 * HEADER => {
                    self.next_chunk(place, false)
                }
                Look::Free(place) => {
                    let record = Record::CutBack {
                        count: place.at.count(),
                    };
                    if self.st.claim(place, self.alone)
                        && self.publish(place.at, place.at.after_cut_back(), record)
                    {
                        return true;
                    }
                    Step::Again
                }
                Look::Pending(place) => self.rob(place, &mut patience),
                Look::Ended(_) | Look::Broken => return false,
            };
            match step {
                Step::Again => {}
                Step::Full | Step::Broken => return false,
            }
        }
        false
    }

    /// Copies and publishes a data record at `at`, which we have claimed.
    /// `None`: we were robbed.
    #[inline]
    fn write<F>(&self, at: Pos, len: u32, fill: &mut F) -> Option<Result<u32, Fault>>
    where
        F: FnMut(&M, u32, u32) -> Result<u32, Fault>,
    {
        // The reader has these lines still, from the last time round. To ask for
        // them one by one, between locked instructions, would cost a miss each.
        self.mem.will_write(at.off() + AHEAD);
        self.mem.will_write(at.off() + AHEAD + 64);
        let got = match fill(self.mem, at.off() + HEADER, len) {
            Ok(0) => {
                self.st.give_up(at);
                return Some(Ok(0));
            }
            Err(fault) => {
                self.st.give_up(at);
                return Some(Err(fault));
            }
            Ok(n) => n.min(len),
        };
        let record = Record::Data {
            len: got,
            count: at.count(),
        };
        if !self.publish(at, at.after_data(got), record) {
            return None;
        }
        if self.awaited {
            for line in (at.off()..at.off() + HEADER + got).step_by(64) {
                self.mem.was_written(line);
            }
        }
        Some(Ok(got))
    }

    /// Publishes `record` at `at`, which we have claimed; `next` is the place
    /// behind it. False: we were robbed.
    #[inline]
    fn publish(&self, at: Pos, next: Pos, record: Record) -> bool {
        self.mem.header(next.off()).store(0, Ordering::Relaxed);
        let published = self.publish_header(at, record);
        if !published {
            // The thief held the chunk for us.
            self.st.chunks.let_go(at);
        }
        published
    }

    /// Publishes `record` at `at`. Sequentially consistent, so that the look
    /// at the consumer's *armed* word that follows cannot move before it
    /// (partner: the fence in [`crate::doorbell::Bell::arm`]).
    #[inline]
    fn publish_header(&self, at: Pos, record: Record) -> bool {
        // Partner of the release: the consumer's acquire load of this header;
        // of the acquire: the thief that held the chunk before it wrote here.
        self.mem
            .header(at.off())
            .compare_exchange(0, record.encode(), Ordering::SeqCst, Ordering::Acquire)
            .is_ok()
    }

    /// Takes a chunk to follow that of `place`, whose word is `was`.
    fn take_chunk(&self, was: u64, window_only: bool) -> Result<(u32, u64), Step> {
        if !Chunks::is_current(was) || self.in_flight().is_none() {
            return Err(Step::Broken);
        }
        self.st.chunks.sweep(self.st.seen.load(Ordering::Relaxed));
        let last = if window_only { WINDOW_CHUNKS } else { CHUNKS };
        let taken = self.st.chunks.take(was, last).ok_or(Step::Full)?;
        // Nobody else looks there before a GOTO leads to it.
        self.mem
            .header(taken.0 << CHUNK_SHIFT)
            .store(0, Ordering::Relaxed);
        Ok(taken)
    }

    /// Leaves the chunk of `place`, which is free, for the lowest free one.
    #[cold]
    fn next_chunk(&self, place: Place, window_only: bool) -> Step {
        let Some(was) = self.st.chunk_of(place) else {
            return Step::Again;
        };
        let (next, word) = match self.take_chunk(was, window_only) {
            Ok(taken) => taken,
            Err(step) => return step,
        };
        if !self.st.claim(place, self.alone) {
            self.st.chunks.put_back(next, word);
        } else if !self.publish_goto(place.at, next) {
            self.st.chunks.put_back(next, word);
            self.st.chunks.let_go(place.at);
        }
        Step::Again
    }

    /// Robs the frame that has claimed `place`: leads on to another chunk, and
    /// leaves this one held, for that frame to let go.
    #[cold]
    fn rob(&self, place: Place, patience: &mut u32) -> Step {
        if *patience > 0 {
            *patience -= 1;
            crate::sync::relax(PATIENCE - *patience);
            return Step::Again;
        }
        let Some(was) = self.st.chunk_of(place) else {
            return Step::Again;
        };
        let (next, word) = match self.take_chunk(was, false) {
            Ok(taken) => taken,
            Err(step) => return step,
        };
        if !self.st.chunks.hold(place.at, was) {
            self.st.chunks.put_back(next, word);
        } else if !self.publish_goto(place.at, next) {
            self.st.chunks.put_back(next, word);
            self.st.chunks.let_go(place.at);
        }
        Step::Again
    }

    fn publish_goto(&self, at: Pos, chunk: u32) -> bool {
        let count = at.count();
        self.publish_header(at, Record::Goto { chunk, count })
    }
}
