//! Marking the calling thread for as long as a call lasts.

use super::mark::{word, Kind, Mark};
use super::single;
use super::table::{mine, NOBODYS};
use crate::tls;
use core::sync::atomic::{compiler_fence, Ordering};

/// Sets the calling thread's mark, and sets it back when dropped. A signal
/// handler's calls nest: what it finds is restored.
pub struct Doing {
    mark: &'static Mark,
    before: u64,
    /// [`Mark::outer`] before this call.
    outer: u64,
}

impl Doing {
    /// Marks the thread.
    #[inline(always)]
    pub fn begin(kind: Kind, index: u32) -> Doing {
        let mark = mine();
        let before = mark.doing.load(Ordering::Relaxed);
        let outer = mark.hide(before);
        mark.doing.store(word(kind, index), Ordering::Relaxed);
        // The store comes before what follows in program order; membarrier on
        // the looking side does the rest.
        compiler_fence(Ordering::SeqCst);
        Doing {
            mark,
            before,
            outer,
        }
    }

    /// As [`Doing::begin`], if the thread has a mark and is doing nothing yet: the
    /// usual case, in few instructions. (A descriptor is known: start-up is over.)
    #[inline(always)]
    pub fn begin_first(kind: Kind, index: u32) -> Option<Doing> {
        let mark = tls::mark()?;
        if mark.doing.load(Ordering::Relaxed) != 0 {
            return None;
        }
        mark.doing.store(word(kind, index), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(Doing {
            mark,
            before: 0,
            outer: 0,
        })
    }

    /// Changes what the thread is doing with the same stream.
    #[inline]
    pub fn now(&self, kind: Kind, index: u32) {
        self.mark.doing.store(word(kind, index), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// The eventfd that wakes this thread from a merged sleep, made on first
    /// use. A process with a single thread needs none; -1 if there is none.
    pub fn wake_fd(&self) -> i32 {
        if single() || core::ptr::eq(self.mark, &NOBODYS) {
            return -1;
        }
        let fd = self.mark.wake.load(Ordering::Relaxed) - 1;
        if fd >= 0 {
            return fd;
        }
        let fd = crate::descriptors::eventfd();
        self.mark.wake.store(fd + 1, Ordering::Release);
        fd
    }
}

impl Drop for Doing {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.mark.doing.store(self.before, Ordering::Release);
        if self.before != 0 {
            self.mark.outer.store(self.outer, Ordering::Release);
        }
    }
}

/// Marks the thread as inside a poll or select over several streams.
pub struct DoingMany {
    /// What stood in the mark's set, for a poll in a handler that has interrupted one.
    before_set: u64,
    doing: Doing,
}

impl DoingMany {
    /// Marks the thread as inside a poll or select over the streams of `set`.
    pub fn begin(kind: Kind, set: u64) -> DoingMany {
        let mark = mine();
        let before = mark.doing.load(Ordering::Relaxed);
        // The interrupted frame's streams stay marked.
        let many = [Kind::Many, Kind::SleepMany].map(|k| word(k, 0));
        let before_set = mark.set.load(Ordering::Relaxed);
        let nested = if many.contains(&before) {
            before_set
        } else {
            0
        };
        let outer = mark.hide(before);
        mark.set.store(set | nested, Ordering::Relaxed);
        mark.doing.store(word(kind, 0), Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        DoingMany {
            before_set,
            doing: Doing {
                mark,
                before,
                outer,
            },
        }
    }

    /// As [`Doing::wake_fd`].
    pub fn wake_fd(&self) -> i32 {
        self.doing.wake_fd()
    }
}

impl Drop for DoingMany {
    fn drop(&mut self) {
        // What the thread does is set back behind it.
        let mark = self.doing.mark;
        mark.set.store(self.before_set, Ordering::Release);
    }
}
