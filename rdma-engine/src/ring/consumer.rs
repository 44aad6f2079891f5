//! The reading side of a ring.
//!
//! Bytes are copied out first and taken then, by one compare-and-swap of the
//! position: of two frames that copied the same bytes (one was interrupted by a
//! signal handler, or outlived by a thief of the lock), one takes them and the
//! other starts again. What was read is believed only if the position has not
//! moved meanwhile; else the producer may have used the place again.

mod ahead;

use super::{Fault, Memory, WINDOW_CHUNKS};
use crate::abi::record::{count_add, count_sub, Pos, Record, HEADER, RING};
use crate::sync::{cas, cas_alone, relax, AtomicU64, Ordering};

/// What the reading side knows, in memory that the peer cannot map. All zero is
/// the state of an empty ring.
#[repr(C, align(64))]
pub struct ConsumerState {
    /// [`Pos`]: offset of the record that holds the next byte, and the position
    /// of that byte; with [`CLOSED`], nothing is taken.
    pub(super) pos: AtomicU64,
    /// The thread that is giving a chunk back, or 0. Until it has done, no
    /// position is published by which the producer could take that chunk.
    giving: AtomicU64,
}

/// The rest of the ring was returned to the producer (see [`super::returned`]).
pub(super) const CLOSED: u64 = 1 << 63;

#[allow(clippy::new_without_default)]
impl ConsumerState {
    /// An empty state, for the model checker and unit tests.
    pub fn new() -> ConsumerState {
        ConsumerState {
            pos: AtomicU64::new(0),
            giving: AtomicU64::new(0),
        }
    }

    /// Sets the state for a ring that nobody has used yet.
    pub fn begin(&self) {
        self.giving.store(0, Ordering::Relaxed);
        self.pos.store(0, Ordering::Release);
    }

    /// [`ConsumerState::begin`] in mid-stream.
    #[cfg(all(test, not(loom)))]
    pub(super) fn begin_at(&self, count: u64) {
        self.begin();
        self.pos.store(Pos::new(0, count).0, Ordering::Release);
    }

    /// As if that thread were giving a chunk back.
    #[cfg(all(test, not(loom)))]
    pub(super) fn given_by(&self, thread: u32) {
        self.giving.store(u64::from(thread), Ordering::Relaxed);
    }

    /// Stream position of the next byte, modulo 2^40.
    pub fn count(&self) -> u64 {
        Pos(self.pos.load(Ordering::Acquire)).count()
    }

    /// Is anything at all at the head of the ring? The spin loop's look: one
    /// load of the line that the message itself arrives in. Needs no lock.
    #[inline]
    pub fn anything<M: Memory>(&self, mem: &M) -> bool {
        let pos = Pos(self.pos.load(Ordering::Relaxed));
        if pos.0 & CLOSED != 0 {
            return false;
        }
        // Partner: the producer's compare-and-swap of this header.
        mem.header(pos.off()).load(Ordering::Acquire) != 0
    }
}

/// What stands at the head of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peek {
    /// Nothing yet.
    Empty,
    /// At least one byte.
    Data,
    /// The epoch ends here; TCP carries on.
    CutBack,
    /// No honest producer writes this.
    Broken,
}

/// What [`Consumer::pull`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    /// So many bytes were taken.
    Data(usize),
    /// As in [`Peek`].
    Empty,
    /// The epoch ends here. [`Consumer::pass_cut_back`] takes the record.
    CutBack,
    /// No honest producer writes this.
    Broken,
    /// The destination failed; nothing was taken.
    Fault(Fault),
}

/// Records that carry no data and may stand in a row: a bound that an honest
/// producer never reaches, so that a hostile one cannot keep us walking.
const EMPTY_RECORDS: u32 = 512;

/// The reading side, for as long as its lock is held (and, harmlessly, longer).
pub struct Consumer<'a, M> {
    mem: &'a M,
    st: &'a ConsumerState,
    /// Our position, published for the producer.
    consumed: &'a AtomicU64,
    /// No other thread and no other process works on `st`.
    alone: bool,
}

impl<'a, M: Memory> Consumer<'a, M> {
    /// The caller holds the lock that guards `st`.
    pub fn new(mem: &'a M, st: &'a ConsumerState, consumed: &'a AtomicU64) -> Consumer<'a, M> {
        Consumer {
            mem,
            st,
            consumed,
            alone: false,
        }
    }

    /// Says that no other thread and no other process works on this direction, so
    /// that there are only our own signal handlers to beware of.
    #[inline]
    pub fn alone(mut self, alone: bool) -> Self {
        self.alone = alone;
        self
    }

    /// Moves our position, if it is still `from`.
    #[inline]
    fn advance(&self, from: Pos, to: Pos) -> bool {
        if self.alone {
            return cas_alone(&self.st.pos, from.0, to.0);
        }
        cas(&self.st.pos, from.0, to.0)
    }

    /// Reads the record at `pos`, once, into private memory, and checks it.
    #[inline]
    fn record(&self, pos: Pos) -> Result<Option<Record>, ()> {
        if pos.0 & CLOSED != 0 {
            return Ok(None);
        }
        let word = self.mem.header(pos.off()).load(Ordering::Acquire);
        if word == 0 {
            return Ok(None);
        }
        let record = Record::decode(word, pos.at()).ok_or(())?;
        let ahead = count_sub(pos.count(), record.count());
        let fits = match record {
            Record::Data { len, .. } => ahead < u64::from(len),
            _ => ahead == 0,
        };
        if fits {
            Ok(Some(record))
        } else {
            Err(())
        }
    }

    /// Moves over records without data; returns the head and what stands there
    /// (never a GOTO).
    #[inline]
    fn settle(&self) -> (Pos, Result<Option<Record>, ()>) {
        let mut empty = 0;
        loop {
            let pos = self.pos();
            let head = self.record(pos);
            if self.pos() != pos {
                continue;
            }
            match head {
                Ok(Some(Record::Goto { .. })) if empty == EMPTY_RECORDS => return (pos, Err(())),
                Ok(Some(Record::Goto { chunk, .. })) => self.leave_chunk(pos, chunk),
                Ok(None) => {
                    // A frame may have ended between taking and publishing.
                    self.publish();
                    return (pos, head);
                }
                head => return (pos, head),
            }
            empty += 1;
        }
    }

    /// Follows a GOTO. A chunk beyond the window was part of a burst: its
    /// memory goes back to the system before the producer may use it again,
    /// which is when we have published that a byte of the next chunk is taken.
    #[cold]
    fn leave_chunk(&self, pos: Pos, next: u32) {
        let to = pos.in_chunk(next).0;
        if pos.chunk() < WINDOW_CHUNKS {
            cas(&self.st.pos, pos.0, to);
            return;
        }
        // No handler may wait for us above our own frame.
        let free = crate::sys::with_signals_blocked(|| {
            let free = cas(&self.st.giving, 0, u64::from(crate::sys::gettid()));
            if free {
                if cas(&self.st.pos, pos.0, to) {
                    self.mem.give_back(pos.chunk(), pos.off());
                }
                self.st.giving.store(0, Ordering::Release);
            }
            free
        });
        if !free {
            self.wait_for_giver();
        }
    }

    /// Waits while another thread is giving a chunk back, unless it is dead.
    #[cold]
    fn wait_for_giver(&self) {
        let mut round = 0u32;
        loop {
            let giver = self.st.giving.load(Ordering::Acquire);
            if giver == 0 {
                return;
            }
            round = round.wrapping_add(1);
            if round % 256 == 64 && !crate::sys::alive(giver as u32) {
                cas(&self.st.giving, giver, 0);
            }
            relax(round);
        }
    }

    #[inline]
    fn pos(&self) -> Pos {
        Pos(self.st.pos.load(Ordering::Acquire))
    }

    /// What stands at the head.
    pub fn peek(&self) -> Peek {
        match self.settle().1 {
            Ok(None) => Peek::Empty,
            Ok(Some(Record::CutBack { .. })) => Peek::CutBack,
            Ok(Some(_)) => Peek::Data,
            Err(()) => Peek::Broken,
        }
    }

    /// Takes up to `max` bytes of one record; `take` copies them from the given
    /// offset and says how many it took. It is called *again* if a signal
    /// handler has taken bytes meanwhile.
    pub fn pull<F>(&self, max: usize, mut take: F) -> Pull
    where
        F: FnMut(&M, u32, u32) -> Result<u32, Fault>,
    {
        self.pull_many(max, 1, |mem, off, n, _| take(mem, off, n))
    }

    /// Takes up to `max` bytes, of as many records as are there until `enough`
    /// bytes are taken: small records share the two locked instructions, between
    /// which the processor fetches nothing ahead. `take(mem, off, n, done)` is as
    /// in [`Consumer::pull`], `done` bytes behind the first.
    pub fn pull_many<F>(&self, max: usize, enough: usize, mut take: F) -> Pull
    where
        F: FnMut(&M, u32, u32, usize) -> Result<u32, Fault>,
    {
        loop {
            let (head, found) = self.settle();
            let mut record = match found {
                Ok(Some(Record::Data { len, count })) => (len, count),
                Ok(Some(_)) => return Pull::CutBack,
                Ok(None) => return Pull::Empty,
                Err(()) => return Pull::Broken,
            };
            let (mut pos, mut total) = (head, 0);
            loop {
                let (len, start) = record;
                let done = count_sub(pos.count(), start) as u32;
                let want = (len - done).min((max - total).min(RING) as u32);
                let n = match take(self.mem, pos.off() + HEADER + done, want, total) {
                    Ok(n) => n.min(want),
                    Err(fault) if total == 0 => return Pull::Fault(fault),
                    Err(_) => break,
                };
                total += n as usize;
                if done + n < len {
                    pos = Pos::new(pos.off(), count_add(pos.count(), u64::from(n)));
                    break;
                }
                pos = Pos::new(pos.off(), start).after_data(len);
                if total >= enough || total >= max {
                    break;
                }
                // Whatever else stands there is the next call's business.
                record = match self.record(pos) {
                    Ok(Some(Record::Data { len, count })) => (len, count),
                    _ => break,
                };
            }
            if self.advance(head, pos) {
                self.publish();
                return Pull::Data(total);
            }
        }
    }

    /// Takes the cut-back record at the head; false if none stands there.
    pub fn pass_cut_back(&self) -> bool {
        let (pos, head) = self.settle();
        matches!(head, Ok(Some(Record::CutBack { .. })))
            && cas(&self.st.pos, pos.0, pos.after_cut_back().0)
    }

    /// Publishes our position, if no other frame has published a later one.
    /// Exact at each receive: when we die, the peer tells from it whether we had
    /// read everything. A sequentially consistent read-modify-write, so that
    /// [`crate::doorbell::must_ring`] may follow.
    #[inline]
    fn publish(&self) {
        // Who fails is behind another frame; only a hostile peer writes here too.
        for _ in 0..64 {
            let count = self.pos().count();
            let old = self.consumed.load(Ordering::Relaxed);
            let ahead = count_sub(count, old);
            if ahead == 0 || ahead > RING as u64 {
                return;
            }
            if self.st.giving.load(Ordering::Acquire) != 0 {
                self.wait_for_giver();
            }
            // Partner: the producer's acquire load in `in_flight`.
            let (ok, fail) = (Ordering::SeqCst, Ordering::Relaxed);
            if self.consumed.compare_exchange(old, count, ok, fail).is_ok() {
                return;
            }
        }
    }
}
