//! Both ends of a wire, and frames that push and pull while they interrupt each
//! other. Nothing here allocates while it runs, but to report a failure.

use super::wire::*;
use crate::abi::record::CHUNK;
use crate::ring::*;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Frames at once: the victim, its handler, the handler's handler, the peer.
pub const FRAMES: usize = 4;
pub const VICTIM: usize = 0;
pub const HANDLER: usize = 1;
pub const NESTED: usize = 2;
/// The frame that fills and drains when nobody is interrupted.
pub const PEER: usize = 3;
/// Room enough for all tests.
pub const LIMIT: usize = 1 << 24;

/// A list that a handler may append to while the interrupted frame does.
pub struct Log {
    len: AtomicUsize,
    tags: Box<[AtomicU64]>,
}

impl Log {
    fn new() -> Log {
        Log {
            len: AtomicUsize::new(0),
            tags: (0..1024).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn add(&self, tag: Tag) {
        let i = self.len.fetch_add(1, Ordering::Relaxed);
        let word = u64::from(tag.source) << 32 | u64::from(tag.number);
        self.tags[i].store(word, Ordering::Relaxed);
    }

    fn all(&self) -> Vec<Tag> {
        let tag = |w: &AtomicU64| {
            let w = w.load(Ordering::Relaxed);
            let (source, number) = ((w >> 32) as u32, w as u32);
            Tag { source, number }
        };
        let n = self.len.load(Ordering::Relaxed);
        self.tags[..n].iter().map(tag).collect()
    }
}

pub struct World {
    pub wire: Wire,
    pub pushed: Log,
    pub pulled: Log,
    numbers: [AtomicU32; FRAMES],
    buffers: [UnsafeCell<Vec<u8>>; FRAMES],
}

// SAFETY: each buffer is used by its own frame alone.
unsafe impl Sync for World {}

impl World {
    pub fn new() -> World {
        World {
            wire: Wire::new(),
            pushed: Log::new(),
            pulled: Log::new(),
            numbers: [const { AtomicU32::new(0) }; FRAMES],
            buffers: std::array::from_fn(|_| UnsafeCell::new(Vec::with_capacity(CHUNK as usize))),
        }
    }

    /// An empty world again, whose memory is full of old records.
    pub fn reset(&self) {
        self.wire.reset();
        self.pushed.len.store(0, Ordering::Relaxed);
        self.pulled.len.store(0, Ordering::Relaxed);
        for n in &self.numbers {
            n.store(0, Ordering::Relaxed);
        }
    }

    /// Frame `me` pushes a record of up to `n` bytes.
    pub fn push(&self, me: usize, n: usize, limit: usize, stolen: bool) -> Push {
        self.push_by(&self.wire.producer(stolen), me, n, limit)
    }

    pub fn push_by(&self, p: &Producer<'_, RawMemory>, me: usize, n: usize, limit: usize) -> Push {
        let tag = self.next_tag(me);
        let pushed = self.push_unnoted(p, tag, n, limit);
        if let Push::Done(1..) = pushed {
            self.numbers[me].fetch_add(1, Ordering::Relaxed);
            self.pushed.add(tag);
        }
        pushed
    }

    fn next_tag(&self, me: usize) -> Tag {
        let (source, number) = (me as u32, self.numbers[me].load(Ordering::Relaxed));
        Tag { source, number }
    }

    /// The push alone. Only within the window: beyond it the consumer blocks
    /// signals, and a trap that is blocked ends the process.
    pub fn push_unnoted(
        &self,
        p: &Producer<'_, RawMemory>,
        tag: Tag,
        n: usize,
        limit: usize,
    ) -> Push {
        p.push(n, limit, true, |mem, off, n| {
            tag.fill(mem, off, n);
            Ok(n)
        })
    }

    /// Frame `me` pulls a record; [`World::check`] looks at it.
    pub fn pull_unseen(&self, me: usize) -> Pull {
        // SAFETY: only frame `me` uses this buffer.
        let buffer = unsafe { &mut *self.buffers[me].get() };
        self.wire.consumer().pull(CHUNK as usize, |mem, off, n| {
            buffer.clear();
            copy_out(mem, off, n, buffer);
            Ok(n)
        })
    }

    /// Is what frame `me` has pulled a record? Then it is noted.
    pub fn check(&self, me: usize, pulled: Pull) {
        if let Pull::Data(n) = pulled {
            // SAFETY: as above.
            let buffer = unsafe { &*self.buffers[me].get() };
            match Tag::read(&buffer[..n]) {
                Ok(tag) => self.pulled.add(tag),
                Err(bad) => panic!("frame {me} pulled {bad:?}"),
            }
        }
    }

    /// Both.
    pub fn pull(&self, me: usize) -> Pull {
        let pulled = self.pull_unseen(me);
        self.check(me, pulled);
        pulled
    }

    /// Pulls all there is.
    pub fn drain(&self, me: usize) {
        loop {
            match self.pull(me) {
                Pull::Data(_) => {}
                Pull::Empty | Pull::CutBack => return,
                other => panic!("frame {me}: {other:?}"),
            }
        }
    }

    /// So much traffic that every chunk of the window is used and used again.
    pub fn laps(&self, me: usize, stolen: bool) {
        for _ in 0..12 {
            let pushed = self.push(me, 100_000, LIMIT, stolen);
            assert!(matches!(pushed, Push::Done(_)), "{pushed:?}");
            self.drain(me);
        }
    }

    /// Fills the window with records that nobody reads yet.
    pub fn fill(&self, me: usize, stolen: bool) {
        while let Push::Done(_) = self.push(me, 50_000, LIMIT, stolen) {}
    }

    /// Advances the end of the empty ring to `left` bytes before the chunk's end.
    pub fn advance(&self, left: u32) {
        let n = CHUNK - left - 8;
        let pushed = self.push(PEER, n as usize, LIMIT, false);
        assert_eq!(pushed, Push::Done(n as usize));
        self.drain(PEER);
    }

    /// Whatever was pushed was pulled, once and whole, and nothing else was; in
    /// order, unless several frames were pulling.
    pub fn assert_whole(&self, in_order: bool) {
        let (pushed, pulled) = self.finish(0);
        if in_order {
            for source in 0..FRAMES as u32 {
                let numbers = self.pulled.all().into_iter().filter(|t| t.source == source);
                assert!(numbers.is_sorted(), "out of order: {:?}", self.pulled.all());
            }
        }
        assert_eq!(pushed, pulled);
    }

    /// The same, but for one record of a victim that died before it noted what
    /// it had published or taken. At most one chunk is lost with it.
    pub fn assert_whole_but_for_one(&self) {
        let (pushed, mut pulled) = self.finish(1);
        let all = pulled.len();
        pulled.retain(|t| t.source != VICTIM as u32);
        let published = all - pulled.len();
        assert!(pulled.windows(2).all(|w| w[0] < w[1]), "twice: {pulled:?}");
        assert!(pulled.iter().all(|t| pushed.contains(t)), "from nowhere");
        let taken = pushed.len() - pulled.len();
        assert!(published + taken <= 1, "{pushed:?} {pulled:?}");
    }

    /// Takes what is left; returns what was pushed and what was pulled.
    fn finish(&self, lost: usize) -> (Vec<Tag>, Vec<Tag>) {
        self.drain(PEER);
        let (taken, held) = self.wire.tx.taken_and_held();
        assert!(taken <= 1 + lost && held <= lost, "{taken} {held}");
        let left = self.wire.tx.in_flight(&self.wire.mem, self.wire.consumed());
        assert_eq!(left, 0);
        let (mut pushed, mut pulled) = (self.pushed.all(), self.pulled.all());
        pushed.sort();
        pulled.sort();
        (pushed, pulled)
    }
}
