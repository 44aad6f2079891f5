//! What the program has set about waiting: O_NONBLOCK, SO_RCVTIMEO, SO_SNDTIMEO.
//!
//! Before a call sleeps, the kernel is asked, each time: an open file description has
//! other holders than we can know of (clone(2), SCM_RIGHTS, pidfd_getfd(2), vfork(2)
//! and exec), and each may change it. What was heard last only decides whether it is
//! worth spinning.

use super::wait::Want;
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use rdma_engine::{sys, syscall};

/// Values of `Local::nonblocking`; 0 is unknown.
const NO: u32 = 1;
const YES: u32 = 2;

/// Is the open file description non-blocking?
pub fn is_nonblocking(s: &Stream, fd: i32) -> bool {
    let yes = ask_nonblocking(fd);
    let heard = if yes { YES } else { NO };
    s.local.nonblocking.store(heard, Ordering::Relaxed);
    yes
}

/// Was it, when it was last asked?
#[inline]
pub fn was_nonblocking(s: &Stream, fd: i32) -> bool {
    match s.local.nonblocking.load(Ordering::Relaxed) {
        0 => is_nonblocking(s, fd),
        heard => heard == YES,
    }
}

/// The program has changed it: ask again.
pub fn forget(s: &Stream) {
    s.local.nonblocking.store(0, Ordering::Relaxed);
}

/// The same of any descriptor, as the kernel says.
pub fn ask_nonblocking(fd: i32) -> bool {
    // SAFETY: no memory is passed.
    let fl = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_GETFL) };
    fl >= 0 && fl as i32 & libc::O_NONBLOCK != 0
}

/// SO_RCVTIMEO or SO_SNDTIMEO in ns; `None` is «for ever».
pub fn timeout(fd: i32, want: Want) -> Option<u64> {
    let name = match want {
        Want::In => libc::SO_RCVTIMEO,
        Want::Out => libc::SO_SNDTIMEO,
    };
    let zero = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let t = sys::getsockopt(fd, libc::SOL_SOCKET, name, zero).ok()?;
    let ns = (t.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(t.tv_usec as u64 * 1000);
    (ns > 0).then_some(ns)
}
