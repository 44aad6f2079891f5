//! The process groups that are alive, and what Ctrl-C does to them.
//!
//! Children run in groups of their own, so the terminal's interrupt does not reach them. The handler here
//! ends exactly the groups that we started and raises a flag; the measurement in progress then fails, the
//! loop above it stops, and what was measured so far is still printed. A second Ctrl-C ends us at once.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};

const MAX_GROUPS: usize = 64;

static GROUPS: [AtomicI32; MAX_GROUPS] = [const { AtomicI32::new(0) }; MAX_GROUPS];
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Has the user asked us to stop?
pub fn interrupted() -> bool {
    INTERRUPTED.load(SeqCst)
}

/// Remember a group; one that finds no room is merely not ended by Ctrl-C.
pub fn add(pgid: i32) {
    for slot in &GROUPS {
        if slot.compare_exchange(0, pgid, SeqCst, SeqCst).is_ok() {
            return;
        }
    }
}

pub fn remove(pgid: i32) {
    for slot in &GROUPS {
        if slot.compare_exchange(pgid, 0, SeqCst, SeqCst).is_ok() {
            return;
        }
    }
}

/// Send `signal` to a whole group; a group that is empty already is fine.
pub fn signal_group(pgid: i32, signal: i32) -> bool {
    // SAFETY: kill takes no pointers; pgid is a positive group that we created.
    pgid > 1 && unsafe { libc::kill(-pgid, signal) } == 0
}

extern "C" fn on_interrupt(_signal: libc::c_int) {
    if INTERRUPTED.swap(true, SeqCst) {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(130) }
    }
    for slot in &GROUPS {
        signal_group(slot.load(SeqCst), libc::SIGKILL);
    }
}

/// Install the handler for SIGINT and SIGTERM.
pub fn catch_interrupts() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = on_interrupt as extern "C" fn(libc::c_int);
        // SAFETY: the handler only touches atomics and calls async-signal-safe functions.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}
