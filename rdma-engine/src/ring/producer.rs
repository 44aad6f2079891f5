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
use super::{Fault, Memory, WINDOW_CHUNKS};
use crate::abi::record::{count_sub, Pos, Record, CHUNK, CHUNKS, CHUNK_SHIFT, HEADER, RING, TAIL};
use crate::sync::{cas, AtomicU64, Ordering};

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
    seen: AtomicU64,
    chunks: Chunks,
}

/// The place is claimed. Without it: free.
const CLAIMED: u64 = 1 << 63;

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
    fn count<M: Memory>(&self, mem: &M) -> u64 {
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
        (self.chunks.taken(), self.chunks.held())
    }

    /// Is half of the ring lost to frames that were robbed and never went on?
    /// Then the direction should go back to TCP, for good.
    pub fn is_worn(&self) -> bool {
        self.chunks.held() > CHUNKS as usize / 2
    }
}

/// The position in a word of [`ProducerState::pos`].
#[inline]
fn place(word: u64) -> Pos {
    Pos(word & !CLAIMED)
}

/// A place for the next record, and the word that a claim of it replaces.
#[derive(Clone, Copy)]
struct Place {
    word: u64,
    at: Pos,
}

/// What stands at the end of the ring.
enum Look {
    /// Nothing: the place can be claimed.
    Free(Place),
    /// A claim without a header.
    Pending(Place),
    /// A cut-back record that came after this producer was made.
    Ended(Pos),
    /// A header that is not ours.
    Broken,
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
    /// The cut-back record that was the last record when this was made.
    epoch: Option<Pos>,
}

impl<'a, M: Memory> Producer<'a, M> {
    /// The caller holds the lock that guards `st`. `stolen`: it was taken from a
    /// frame that may yet go on (a signal handler interrupted it) or is dead.
    /// `None` if the peer has scribbled over our own headers.
    pub fn new(
        mem: &'a M,
        st: &'a ProducerState,
        consumed: &'a AtomicU64,
        stolen: bool,
    ) -> Option<Producer<'a, M>> {
        let mut p = Producer {
            mem,
            st,
            consumed,
            stolen,
            epoch: None,
        };
        match p.look() {
            Look::Broken => return None,
            Look::Ended(at) => p.epoch = Some(at),
            Look::Free(_) | Look::Pending(_) => {}
        }
        Some(p)
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
            } else if !self.claim(place) {
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
                    if self.claim(place) && self.publish(place.at, place.at.after_skip(0), record) {
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

    /// Finds the end of the ring, and accounts for the chunk that a GOTO there
    /// has left.
    #[inline]
    fn look(&self) -> Look {
        loop {
            let word = self.st.pos.load(Ordering::Acquire);
            let at = place(word);
            if word & CLAIMED == 0 {
                return Look::Free(Place { word, at });
            }
            let header = self.mem.header(at.off()).load(Ordering::Acquire);
            let behind = |at| Look::Free(Place { word, at });
            let found = if header == 0 {
                Look::Pending(Place { word, at })
            } else {
                match Record::decode(header, at.at()).filter(|r| r.count() == at.count()) {
                    Some(Record::Data { len, .. }) => behind(at.after_data(len)),
                    Some(Record::Skip { len, .. }) => behind(at.after_skip(len)),
                    Some(Record::CutBack { .. }) if self.epoch != Some(at) => Look::Ended(at),
                    Some(Record::CutBack { .. }) => behind(at.after_skip(0)),
                    Some(Record::Goto { chunk, .. }) => {
                        let was = self.st.chunks.word(at);
                        if self.st.pos.load(Ordering::Acquire) != word {
                            continue;
                        }
                        self.st.chunks.leave(at, was);
                        behind(at.in_chunk(chunk))
                    }
                    None => Look::Broken,
                }
            };
            // Else what we saw may be the bytes of another use of the chunk.
            if self.st.pos.load(Ordering::Acquire) == word {
                return found;
            }
        }
    }

    #[inline]
    fn claim(&self, place: Place) -> bool {
        cas(&self.st.pos, place.word, place.at.0 | CLAIMED)
    }

    /// Copies and publishes a data record at `at`, which we have claimed.
    /// `None`: we were robbed.
    #[inline]
    fn write<F>(&self, at: Pos, len: u32, fill: &mut F) -> Option<Result<u32, Fault>>
    where
        F: FnMut(&M, u32, u32) -> Result<u32, Fault>,
    {
        let got = match fill(self.mem, at.off() + HEADER, len) {
            Ok(0) => {
                self.give_up(at);
                return Some(Ok(0));
            }
            Err(fault) => {
                self.give_up(at);
                return Some(Err(fault));
            }
            Ok(n) => n.min(len),
        };
        let record = Record::Data {
            len: got,
            count: at.count(),
        };
        self.publish(at, at.after_data(got), record)
            .then_some(Ok(got))
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

    /// Takes our claim of `at` back: nothing is to be published. If a GOTO got
    /// in there, the next claim of `at` will fail in our place.
    #[cold]
    fn give_up(&self, at: Pos) {
        if !cas(&self.st.pos, at.0 | CLAIMED, at.0) {
            self.st.chunks.let_go(at);
        }
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

    /// The word of the chunk of `place`, if the ring still ends there.
    fn chunk_of(&self, place: Place) -> Option<u64> {
        let was = self.st.chunks.word(place.at);
        (self.st.pos.load(Ordering::Acquire) == place.word).then_some(was)
    }

    /// Leaves the chunk of `place`, which is free, for the lowest free one.
    #[cold]
    fn next_chunk(&self, place: Place, window_only: bool) -> Step {
        let Some(was) = self.chunk_of(place) else {
            return Step::Again;
        };
        let (next, word) = match self.take_chunk(was, window_only) {
            Ok(taken) => taken,
            Err(step) => return step,
        };
        if !self.claim(place) {
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
        let Some(was) = self.chunk_of(place) else {
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

const _: () = assert!(RING / 8 <= 1 << 22, "an offset leaves room for the mark");
