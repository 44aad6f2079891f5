//! A thread's mark: one word says what the thread is doing, and with which stream.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use rdma_engine::sys;

/// One thread's mark.
#[repr(C, align(64))]
pub struct Mark {
    /// The owner's thread id; 0 is a free mark.
    pub(super) tid: AtomicU32,
    /// An eventfd plus 1, which wakes the thread from a merged sleep.
    pub(super) wake: AtomicI32,
    /// [`Doing`]'s word.
    pub(super) doing: AtomicU64,
    /// With [`Kind::Many`] and [`Kind::SleepMany`]: which streams, as one bit
    /// for each index modulo 64.
    pub(super) set: AtomicU64,
    /// Streams of the calls that a signal handler has interrupted, and that go on
    /// after it: one bit for each index modulo 64.
    pub(super) outer: AtomicU64,
}

impl Mark {
    /// A handler's call begins: the stream of the call that it interrupted,
    /// `before`, stays marked. Returns what [`Mark::outer`] was.
    #[inline(always)]
    pub(super) fn hide(&self, before: u64) -> u64 {
        if before == 0 {
            return 0;
        }
        self.hide_interrupted(before)
    }

    #[cold]
    #[inline(never)]
    fn hide_interrupted(&self, before: u64) -> u64 {
        let outer = self.outer.load(Ordering::Relaxed);
        let kind = before >> 32;
        let bits = if kind == Kind::SleepEpoll as u64 {
            0
        } else if kind == Kind::Many as u64 || kind == Kind::SleepMany as u64 {
            self.set.load(Ordering::Relaxed)
        } else {
            bit(before as u32)
        };
        self.outer.store(outer | bits, Ordering::Relaxed);
        outer
    }

    /// Has a handler of this thread interrupted a call on stream `index`?
    pub(super) fn has_hidden(&self, index: u32) -> bool {
        self.outer.load(Ordering::Acquire) & bit(index) != 0
    }

    /// Does the owner still run? What a dead thread did last is of no account.
    pub(super) fn is_alive(&self) -> bool {
        let tid = self.tid.load(Ordering::Acquire);
        tid != 0 && sys::alive(tid)
    }
}

/// What a thread is doing; 0 is: nothing with streams.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// Using a stream's state or mapping.
    Use = 1,
    /// Inside a kernel receive into the program's buffer.
    PlainRecv = 2,
    /// Inside a kernel send from the program's buffer.
    PlainSend = 3,
    /// Asleep on the stream and its side channel.
    Sleep = 4,
    /// Inside a plain poll or select over several streams.
    Many = 5,
    /// Inside a merged poll or select over several streams.
    SleepMany = 6,
    /// Asleep in an epoll set; the index is the set's.
    SleepEpoll = 7,
}

/// [`Mark::doing`] of a thread that does this with stream `index`.
pub(super) fn word(kind: Kind, index: u32) -> u64 {
    (kind as u64) << 32 | u64::from(index)
}

/// The bit of a stream in a mark's set.
pub fn bit(index: u32) -> u64 {
    1 << (index % 64)
}
