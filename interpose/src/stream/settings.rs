//! What the program has set about waiting (O_NONBLOCK, SO_RCVTIMEO, SO_SNDTIMEO),
//! remembered: to ask the kernel before each sleep costs more than some sleeps.
//!
//! The hooks forget it with each change. Another process that has, or ever had, a
//! descriptor changes it unseen, so then the kernel is asked each time.

use super::wait::Want;
use crate::streams::Stream;
use core::sync::atomic::{AtomicU64, Ordering};
use rdma_engine::abi::arena::flags;
use rdma_engine::{sys, syscall};

/// What is remembered of a stream. All zero is nothing.
#[derive(Default)]
pub struct Settings {
    /// Counts the changes.
    changes: AtomicU64,
    /// [`NO`] or [`YES`].
    nonblocking: AtomicU64,
    /// In us, plus 1; [`NEVER`] is no timeout.
    receive: AtomicU64,
    send: AtomicU64,
}

const NO: u64 = 1;
const YES: u64 = 2;
/// Answers have 48 bits; above them stands the number of changes that went before, so
/// that an answer which is kept too late is none.
const NEVER: u64 = (1 << NUMBER) - 1;
const NUMBER: u32 = 48;

impl Settings {
    /// The program has changed something, or another stream begins.
    pub fn forget(&self) {
        // Partner: the loads of `known` and `recall`.
        self.changes.fetch_add(1, Ordering::SeqCst);
        for word in [&self.nonblocking, &self.receive, &self.send] {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// The answer that `word` keeps, if nothing was changed since.
    #[inline]
    fn known(&self, word: &AtomicU64) -> Option<u64> {
        let kept = word.load(Ordering::Relaxed);
        let now = self.changes.load(Ordering::SeqCst);
        (kept & NEVER != 0 && kept >> NUMBER == now & 0xffff).then_some(kept & NEVER)
    }

    /// What `word` says, or else the kernel. Where another process may have a
    /// descriptor, by fork or passed, the kernel.
    fn recall(&self, s: &Stream, word: &AtomicU64, ask: impl FnOnce() -> u64) -> u64 {
        let known = self.known(word);
        if let (Some(known), false) = (known, s.slot.has(flags::SHARED) || s.pinned()) {
            return known;
        }
        let before = self.changes.load(Ordering::SeqCst);
        let answer = ask();
        word.store(before << NUMBER | answer, Ordering::Relaxed);
        answer
    }
}

/// Is the open file description non-blocking?
pub fn is_nonblocking(s: &Stream, fd: i32) -> bool {
    let settings = &s.local.settings;
    let ask = || if ask_nonblocking(fd) { YES } else { NO };
    settings.recall(s, &settings.nonblocking, ask) == YES
}

/// The same, as it was when it was last asked.
#[inline]
pub fn was_nonblocking(s: &Stream, fd: i32) -> bool {
    let settings = &s.local.settings;
    match settings.known(&settings.nonblocking) {
        None => is_nonblocking(s, fd),
        Some(known) => known == YES,
    }
}

/// The same of any descriptor, as the kernel says.
pub fn ask_nonblocking(fd: i32) -> bool {
    // SAFETY: no memory is passed.
    let fl = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_GETFL) };
    fl >= 0 && fl as i32 & libc::O_NONBLOCK != 0
}

/// SO_RCVTIMEO or SO_SNDTIMEO in ns; `None` is «for ever».
pub fn timeout(s: &Stream, fd: i32, want: Want) -> Option<u64> {
    let settings = &s.local.settings;
    let (word, name) = match want {
        Want::In => (&settings.receive, libc::SO_RCVTIMEO),
        Want::Out => (&settings.send, libc::SO_SNDTIMEO),
    };
    let ask = || ask_timeout(fd, name).map_or(NEVER, |us| us + 1);
    match settings.recall(s, word, ask) {
        NEVER => None,
        us => Some((us - 1).saturating_mul(1000)),
    }
}

/// In us, well below [`NEVER`].
fn ask_timeout(fd: i32, name: i32) -> Option<u64> {
    let zero = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let t = sys::getsockopt(fd, libc::SOL_SOCKET, name, zero).ok()?;
    let us = (t.tv_sec as u64)
        .saturating_mul(1_000_000)
        .saturating_add(t.tv_usec as u64);
    (us > 0).then_some(us.min(NEVER - 2))
}
