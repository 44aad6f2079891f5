//! The reading side of a ring.

use super::{Fault, Memory, WINDOW_CHUNKS};
use crate::abi::record::{count_add, count_sub, Pos, Record, HEADER, RING};
use crate::sync::{local_cas, AtomicU64, Ordering};

/// What the reading side knows, in memory that the peer cannot map. All zero is
/// the state of an empty ring.
#[repr(C, align(64))]
pub struct ConsumerState {
    /// [`Pos`]: offset of the record that holds the next byte, and the position
    /// of that byte.
    pos: AtomicU64,
}

#[allow(clippy::new_without_default)]
impl ConsumerState {
    /// An empty state, for the model checker and unit tests.
    pub fn new() -> ConsumerState {
        ConsumerState {
            pos: AtomicU64::new(0),
        }
    }

    /// Sets the state for a ring that nobody has used yet.
    pub fn begin(&self) {
        self.pos.store(0, Ordering::Release);
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

/// The reading side, for as long as its lock is held. Nothing has to be mended
/// after a theft of that lock: all steps are one word, moved by
/// [`local_cas`].
pub struct Consumer<'a, M> {
    mem: &'a M,
    st: &'a ConsumerState,
    /// Our position, published for the producer.
    consumed: &'a AtomicU64,
}

impl<'a, M: Memory> Consumer<'a, M> {
    /// The caller holds the lock that guards `st`.
    pub fn new(mem: &'a M, st: &'a ConsumerState, consumed: &'a AtomicU64) -> Consumer<'a, M> {
        Consumer { mem, st, consumed }
    }

    /// Reads the record at `pos`, once, into private memory, and checks it.
    #[inline]
    fn record(&self, pos: Pos) -> Result<Option<Record>, ()> {
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
    /// (never a SKIP or a GOTO).
    fn settle(&self) -> (Pos, Result<Option<Record>, ()>) {
        for _ in 0..EMPTY_RECORDS {
            let pos = self.pos();
            match self.record(pos) {
                Ok(Some(Record::Skip { len, .. })) => {
                    local_cas(&self.st.pos, pos.0, pos.after_skip(len).0);
                }
                Ok(Some(Record::Goto { chunk, .. })) => self.leave_chunk(pos, chunk),
                head => return (pos, head),
            }
        }
        (self.pos(), Err(()))
    }

    /// Follows a GOTO. A chunk beyond the window was part of a burst: its
    /// memory goes back to the system before the producer may use it again,
    /// which is when we have taken a byte of the next chunk. Signals are
    /// blocked, so that no handler takes that byte between our two steps.
    fn leave_chunk(&self, pos: Pos, next: u32) {
        let to = pos.in_chunk(next).0;
        if pos.chunk() < WINDOW_CHUNKS {
            local_cas(&self.st.pos, pos.0, to);
            return;
        }
        crate::sys::with_signals_blocked(|| {
            if local_cas(&self.st.pos, pos.0, to) {
                self.mem.give_back(pos.chunk());
            }
        });
    }

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
    /// offset and says how many it took.
    pub fn pull<F>(&self, max: usize, mut take: F) -> Pull
    where
        F: FnMut(&M, u32, u32) -> Result<u32, Fault>,
    {
        loop {
            let (pos, head) = self.settle();
            let (len, start) = match head {
                Ok(Some(Record::Data { len, count })) => (len, count),
                Ok(Some(_)) => return Pull::CutBack,
                Ok(None) => return Pull::Empty,
                Err(()) => return Pull::Broken,
            };
            let done = count_sub(pos.count(), start) as u32;
            let want = (len - done).min(max.min(RING) as u32);
            let n = match take(self.mem, pos.off() + HEADER + done, want) {
                Ok(n) => n.min(want),
                Err(fault) => return Pull::Fault(fault),
            };
            let next = if done + n == len {
                Pos::new(pos.off(), start).after_data(len)
            } else {
                Pos::new(pos.off(), count_add(pos.count(), u64::from(n)))
            };
            // Lost to a signal handler that took the same bytes: start again.
            if local_cas(&self.st.pos, pos.0, next.0) {
                self.publish();
                return Pull::Data(n as usize);
            }
        }
    }

    /// Looks at up to `max` bytes from the head without taking them; `look`
    /// copies each piece. Returns the number of bytes.
    pub fn look_ahead<F>(&self, max: usize, mut look: F) -> usize
    where
        F: FnMut(&M, u32, u32),
    {
        let mut pos = self.settle().0;
        let mut total = 0;
        for _ in 0..RING / 8 {
            match self.record(pos) {
                Ok(Some(Record::Data { len, count })) if total < max => {
                    let done = count_sub(pos.count(), count) as u32;
                    let n = ((len - done) as usize).min(max - total) as u32;
                    look(self.mem, pos.off() + HEADER + done, n);
                    total += n as usize;
                    pos = Pos::new(pos.off(), count).after_data(len);
                }
                Ok(Some(Record::Skip { len, .. })) => pos = pos.after_skip(len),
                Ok(Some(Record::Goto { chunk, .. })) => pos = pos.in_chunk(chunk),
                _ => break,
            }
        }
        total
    }

    /// Where the ring ends now, walking on from `from`, an earlier end (or the
    /// head, if the head has passed it). Two equal answers mean that nothing
    /// has arrived between them: the "grew" of edge-triggered waits.
    pub fn tail(&self, from: Pos) -> Pos {
        let (head, _) = self.settle();
        let behind = count_sub(head.count(), from.count());
        let mut pos = if behind > 0 && behind < 1 << 39 {
            head
        } else {
            from
        };
        for _ in 0..RING / 8 {
            pos = match self.record(pos) {
                Ok(Some(Record::Data { len, count })) => {
                    Pos::new(pos.off(), count).after_data(len)
                }
                Ok(Some(Record::Skip { len, .. })) => pos.after_skip(len),
                Ok(Some(Record::Goto { chunk, .. })) => pos.in_chunk(chunk),
                _ => break,
            };
        }
        pos
    }

    /// Takes the cut-back record at the head; false if none stands there.
    pub fn pass_cut_back(&self) -> bool {
        let (pos, head) = self.settle();
        matches!(head, Ok(Some(Record::CutBack { .. })))
            && local_cas(&self.st.pos, pos.0, pos.after_skip(0).0)
    }

    /// Publishes our position. Exact at each receive: when we die, the peer
    /// tells from it whether we had read everything.
    #[inline]
    fn publish(&self) {
        loop {
            let count = self.pos().count();
            // Partner: the producer's acquire load in `in_flight`.
            self.consumed.store(count, Ordering::Release);
            // A signal handler may have moved on, and stored, in between.
            if self.pos().count() == count {
                return;
            }
        }
    }
}
