//! Waking threads from merged sleeps, each by an eventfd of its own.

use super::mark::{bit, word, Kind};
use super::single;
use super::table::{marks, mine};
use core::sync::atomic::Ordering;

/// Wakes the other threads of this process that sleep on stream `index`.
pub fn wake_sleepers(index: u32) {
    if single() {
        return;
    }
    let me = mine();
    for m in marks() {
        let doing = m.doing.load(Ordering::SeqCst);
        let sleeps = doing == word(Kind::Sleep, index)
            || (doing == word(Kind::SleepMany, 0)
                && m.set.load(Ordering::Acquire) & bit(index) != 0);
        if sleeps && !core::ptr::eq(m, me) {
            crate::descriptors::ring_eventfd(m.wake.load(Ordering::Acquire) - 1);
        }
    }
}

/// An eventfd of ours is about to be closed by the program.
pub fn forget_eventfd(fd: i32) {
    for m in marks() {
        let _ = m
            .wake
            .compare_exchange(fd + 1, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}
