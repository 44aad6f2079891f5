//! The library's own descriptors.
//!
//! They are close-on-exec, stand a little above the program's (at the limit
//! they would make every fork dear, see `interpose/docs/design.md`), are marked
//! [`Entry::Internal`] so that the program's `close` and `close_range` pass them
//! by, and are bounded: a share of RLIMIT_NOFILE stays the program's.

use crate::fdtable::{self, Entry};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use rdma_engine::{sys, syscall};

/// Where our descriptors begin, if the limit allows.
const BASE: c_int = 192;

/// Our descriptors open now.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Takes a fresh descriptor into our care: moves it up, marks it. Returns the
/// new number, or -1 if the budget or the limit does not allow it (then `fd` is
/// closed).
pub fn adopt(fd: c_int) -> c_int {
    if fd < 0 {
        return -1;
    }
    let limit = sys::soft_limit(libc::RLIMIT_NOFILE);
    let used = u64::from(COUNT.load(Ordering::Relaxed));
    let base = (BASE as u64).min(limit / 2) as c_int;
    let moved = if used >= limit / 3 || limit < 64 {
        -1
    } else {
        // SAFETY: no memory is passed.
        unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, base) as c_int }
    };
    sys::close(fd);
    if moved < 0 {
        return -1;
    }
    if moved as u64 + 8 > limit {
        // The program's last numbers are the program's.
        sys::close(moved);
        return -1;
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
    fdtable::set(moved, Entry::Internal);
    moved
}

/// Closes one of ours.
pub fn close(fd: c_int) {
    if fd < 0 {
        return;
    }
    if fdtable::replace(fd, Entry::Internal, Entry::Unknown) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
        sys::close(fd);
    }
}

/// A new eventfd of ours, or -1.
pub fn eventfd() -> c_int {
    let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
    // SAFETY: no memory is passed.
    adopt(unsafe { syscall!(libc::SYS_eventfd2, 0, flags) as c_int })
}

/// Makes an eventfd readable.
pub fn ring_eventfd(fd: c_int) {
    if fd >= 0 {
        let one = 1u64;
        // SAFETY: eight bytes of our own stack.
        unsafe { syscall!(libc::SYS_write, fd, &one as *const u64, 8) };
    }
}

/// Makes an eventfd unreadable again.
pub fn drain_eventfd(fd: c_int) {
    let mut n = 0u64;
    // SAFETY: eight bytes of our own stack.
    unsafe { syscall!(libc::SYS_read, fd, &mut n as *mut u64, 8) };
}

/// The program wants to have the number of one of ours (dup2 onto it): ours
/// moves to another.
pub fn step_aside(fd: c_int) {
    let owner = crate::streams::owner_of(fd);
    // SAFETY: no memory is passed.
    let moved = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_DUPFD_CLOEXEC, BASE) as c_int };
    if moved >= 0 {
        fdtable::set(moved, Entry::Internal);
        match owner {
            Some(word) => word.store(moved + 1, Ordering::Release),
            None if crate::streams::ARENA_FD.load(Ordering::Relaxed) == fd => {
                crate::streams::ARENA_FD.store(moved, Ordering::Release);
            }
            None => {
                // An eventfd of a thread or a set: it makes itself another.
                crate::threads::forget_eventfd(fd);
                crate::readiness::epoll::forget_eventfd(fd);
                close(moved);
            }
        }
    }
    fdtable::set(fd, Entry::Unknown);
}
