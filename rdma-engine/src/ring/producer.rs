//! The writing side of a ring.

use super::{Fault, Memory, WINDOW_CHUNKS};
use crate::abi::record::{
    count_sub, padded, Pos, Record, CHUNK, CHUNKS, CHUNK_SHIFT, HEADER, RING, TAIL,
};
use crate::sync::{local_cas, AtomicU64, Ordering};

/// What the writing side knows, in memory that the peer cannot map. All zero is
/// the state of an empty ring whose position is 0 and that has not begun:
/// [`ProducerState::begin`] comes first.
#[repr(C, align(64))]
pub struct ProducerState {
    /// [`Pos`] of the next record.
    pos: AtomicU64,
    /// [`Pos`] (offset and *length*) that a copy is under way to.
    reserved: AtomicU64,
    /// The consumer's position when it was last looked at.
    seen: AtomicU64,
    /// What each chunk is: free, current (with a number that no other use of
    /// the chunk has), or busy until the consumer passes a position.
    chunks: [AtomicU64; CHUNKS as usize],
}

const FREE: u64 = 0;
const CURRENT: u64 = 1 << 63;
const BUSY: u64 = 1 << 62;

/// What [`Producer::push`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// So many bytes are published, at least one.
    Done(usize),
    /// No room within the limit (or within the window, if so asked).
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
            reserved: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            chunks: core::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Sets the state for a ring that nobody has used yet.
    pub fn begin(&self) {
        for c in &self.chunks {
            c.store(FREE, Ordering::Relaxed);
        }
        self.chunks[0].store(CURRENT, Ordering::Relaxed);
        self.reserved.store(u64::MAX, Ordering::Relaxed);
        self.seen.store(0, Ordering::Relaxed);
        self.pos.store(0, Ordering::Release);
    }

    /// Stream position of the next byte, modulo 2^40.
    pub fn count(&self) -> u64 {
        Pos(self.pos.load(Ordering::Acquire)).count()
    }
}

/// What leaving a chunk came to.
enum Step {
    Again,
    Full,
    Broken,
}

/// The writing side, for as long as its lock is held.
pub struct Producer<'a, M> {
    mem: &'a M,
    st: &'a ProducerState,
    /// The consumer's published position, in memory that the peer writes.
    consumed: &'a AtomicU64,
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
        let p = Producer { mem, st, consumed };
        if stolen {
            p.walk()?;
            p.evade();
        }
        Some(p)
    }

    /// Bytes that the consumer has not taken yet; `None` if it claims what
    /// cannot be.
    pub fn in_flight(&self) -> Option<usize> {
        let seen = self.consumed.load(Ordering::Acquire);
        let n = count_sub(self.st.count(), seen) as usize;
        self.st.seen.store(seen, Ordering::Relaxed);
        (n <= RING).then_some(n)
    }

    /// Bytes that may be written now with at most `limit` in flight.
    fn room(&self, pos: Pos, want: usize, limit: usize) -> Option<usize> {
        // The reader's line is looked at only when the last look does not do.
        let known = count_sub(pos.count(), self.st.seen.load(Ordering::Relaxed)) as usize;
        if known + want <= limit {
            return Some(want);
        }
        Some(limit.saturating_sub(self.in_flight()?).min(want))
    }

    /// Writes one record of up to `want` bytes (at least 1), which `fill` copies
    /// to the given offset; it may copy fewer, and says how many.
    ///
    /// `limit` bounds the bytes in flight; `window_only` refuses to spread over
    /// chunks beyond the window.
    pub fn push<F>(&self, want: usize, limit: usize, window_only: bool, mut fill: F) -> Push
    where
        F: FnMut(&M, u32, u32) -> Result<u32, Fault>,
    {
        loop {
            let pos = self.pos();
            let len = match self.room(pos, want, limit) {
                Some(0) => return Push::Full,
                Some(n) => n,
                None => return Push::Broken,
            };
            let free = CHUNK - pos.at();
            // A sliver at the end of a chunk is not worth a record of its own,
            // unless the whole message fits.
            let fits = free.saturating_sub(HEADER + TAIL);
            if fits == 0 || (len as u32 > fits && fits < 64) {
                match self.next_chunk(pos, window_only) {
                    Step::Again => continue,
                    Step::Full => return Push::Full,
                    Step::Broken => return Push::Broken,
                }
            }
            let len = len.min(fits as usize) as u32;
            match self.publish(pos, len, &mut fill) {
                Some(Ok(n)) => return Push::Done(n as usize),
                Some(Err(fault)) => return Push::Fault(fault),
                // A signal handler of this thread used the ring meanwhile.
                None if self.pos() != pos => continue,
                None => return Push::Broken,
            }
        }
    }

    /// Reserve, copy, publish. `None`: the place was lost to a signal handler.
    #[inline]
    fn publish<F>(&self, pos: Pos, len: u32, fill: &mut F) -> Option<Result<u32, Fault>>
    where
        F: FnMut(&M, u32, u32) -> Result<u32, Fault>,
    {
        self.st
            .reserved
            .store(Pos::new(pos.off(), u64::from(len)).0, Ordering::Release);
        // From here on a handler evades the reservation; one that came before
        // this line has moved on, and is seen now.
        if self.st.pos.load(Ordering::Acquire) != pos.0 {
            return None;
        }
        let got = match fill(self.mem, pos.off() + HEADER, len) {
            Ok(n) => n.min(len),
            Err(fault) => return Some(Err(fault)),
        };
        if got == 0 {
            return Some(Ok(0));
        }
        let next = pos.after_data(got);
        self.mem.header(next.off()).store(0, Ordering::Relaxed);
        let record = Record::Data {
            len: got,
            count: pos.count(),
        };
        self.publish_header(pos, record).then(|| {
            local_cas(&self.st.pos, pos.0, next.0);
            Ok(got)
        })
    }

    /// Publishes `record` at `pos`. Sequentially consistent, so that the look
    /// at the consumer's *armed* word that follows cannot move before it
    /// (partner: the fence in [`crate::doorbell::Bell::arm`]).
    #[inline]
    fn publish_header(&self, pos: Pos, record: Record) -> bool {
        // Partner of the release: the consumer's acquire load of this header.
        self.mem
            .header(pos.off())
            .compare_exchange(0, record.encode(), Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Publishes the record that ends this epoch: TCP carries on from here.
    /// False if the ring has no place for it at the moment.
    pub fn push_cut_back(&self) -> bool {
        loop {
            let pos = self.pos();
            if CHUNK - pos.at() < HEADER + TAIL {
                match self.next_chunk(pos, false) {
                    Step::Again => continue,
                    Step::Full | Step::Broken => return false,
                }
            }
            let next = pos.after_skip(0);
            self.mem.header(next.off()).store(0, Ordering::Relaxed);
            let record = Record::CutBack { count: pos.count() };
            if self.publish_header(pos, record) {
                local_cas(&self.st.pos, pos.0, next.0);
                return true;
            }
            if self.pos() == pos {
                return false;
            }
        }
    }

    /// Leaves the chunk of `pos` for the lowest free one.
    #[cold]
    fn next_chunk(&self, pos: Pos, window_only: bool) -> Step {
        let was = self.chunk(pos).load(Ordering::Acquire);
        if self.in_flight().is_none() {
            return Step::Broken;
        }
        self.sweep(pos);
        let last = if window_only { WINDOW_CHUNKS } else { CHUNKS };
        let number = (was & !CURRENT).wrapping_add(1) & (BUSY - 1);
        let Some(next) = (0..last).find(|&c| {
            let word = &self.st.chunks[c as usize];
            word.load(Ordering::Acquire) == FREE && local_cas(word, FREE, CURRENT | number)
        }) else {
            return Step::Full;
        };
        self.mem
            .header(next << CHUNK_SHIFT)
            .store(0, Ordering::Relaxed);
        let record = Record::Goto {
            chunk: next,
            count: pos.count(),
        };
        if self.publish_header(pos, record) {
            self.enter_chunk(pos, was, next);
            return Step::Again;
        }
        // A handler went elsewhere; give our chunk back.
        local_cas(&self.st.chunks[next as usize], CURRENT | number, FREE);
        if self.pos() == pos {
            Step::Broken
        } else {
            Step::Again
        }
    }

    /// Accounts for a GOTO at `pos`; repeating it changes nothing.
    fn enter_chunk(&self, pos: Pos, was: u64, next: u32) {
        local_cas(self.chunk(pos), was, BUSY | pos.count());
        local_cas(&self.st.pos, pos.0, pos.in_chunk(next).0);
    }

    /// Frees the chunks that the consumer has left. It has left one when it has
    /// taken a byte of the next.
    fn sweep(&self, pos: Pos) {
        let in_flight = count_sub(pos.count(), self.st.seen.load(Ordering::Relaxed));
        for word in &self.st.chunks {
            let w = word.load(Ordering::Acquire);
            if w & BUSY != 0 && count_sub(pos.count(), w & (BUSY - 1)) > in_flight {
                local_cas(word, w, FREE);
            }
        }
    }

    fn chunk(&self, pos: Pos) -> &AtomicU64 {
        &self.st.chunks[pos.chunk() as usize % CHUNKS as usize]
    }

    /// The place of the next record.
    #[inline]
    fn pos(&self) -> Pos {
        Pos(self.st.pos.load(Ordering::Acquire))
    }

    /// After a theft: accounts for records that were published, but not yet
    /// accounted for. Each frame that was robbed leaves one at most.
    fn walk(&self) -> Option<()> {
        for _ in 0..64 {
            let pos = self.pos();
            let word = self.mem.header(pos.off()).load(Ordering::Acquire);
            if word == 0 {
                return Some(());
            }
            let next = match Record::decode(word, pos.at())? {
                Record::Data { len, .. } => pos.after_data(len),
                Record::Skip { len, .. } => pos.after_skip(len),
                Record::CutBack { .. } => pos.after_skip(0),
                Record::Goto { chunk, .. } => {
                    let was = self.chunk(pos).load(Ordering::Acquire);
                    self.enter_chunk(pos, was, chunk);
                    continue;
                }
            };
            local_cas(&self.st.pos, pos.0, next.0);
        }
        None
    }

    /// After a theft: if the interrupted frame was copying to a reserved place,
    /// makes that place a SKIP record, which its late writes may scribble on.
    fn evade(&self) {
        let pos = self.pos();
        let reserved = Pos(self.st.reserved.load(Ordering::Acquire));
        if reserved.off() != pos.off() {
            return;
        }
        // One header more than the record: the frame zeroes the next header.
        let len = padded(reserved.count() as u32) + HEADER;
        if pos.at() + HEADER + len + HEADER > CHUNK {
            return;
        }
        let next = pos.after_skip(len);
        self.mem.header(next.off()).store(0, Ordering::Relaxed);
        let record = Record::Skip {
            len,
            count: pos.count(),
        };
        self.publish_header(pos, record);
        local_cas(&self.st.pos, pos.0, next.0);
    }
}
