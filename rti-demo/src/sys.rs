//! The two system calls that the standard library has no door to.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// What to wait for on a descriptor, and what came.
#[repr(transparent)]
pub struct Interest(libc::pollfd);

impl Interest {
    /// Wait for input, for room for output, or just for faults.
    pub fn new(fd: &impl AsRawFd, input: bool, output: bool) -> Self {
        let wanted = |yes, flag| if yes { flag } else { 0 };
        Self(libc::pollfd {
            fd: fd.as_raw_fd(),
            events: wanted(input, libc::POLLIN) | wanted(output, libc::POLLOUT),
            revents: 0,
        })
    }

    /// A read would not wait: there is input, the end of it, or an error.
    pub fn readable(&self) -> bool {
        self.0.revents & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0
    }

    /// A write would not wait.
    pub fn writable(&self) -> bool {
        self.0.revents & (libc::POLLOUT | libc::POLLERR) != 0
    }
}

/// poll(2): waits until something is ready; how many descriptors are. A signal counts as none.
pub fn poll(interests: &mut [Interest], timeout: Option<Duration>) -> io::Result<usize> {
    // Rounded up, so that no wait turns into a spin.
    let round = |t: Duration| t.as_nanos().div_ceil(1_000_000).min(i32::MAX as u128) as i32;
    let timeout = timeout.map_or(-1, round);
    // SAFETY: `Interest` is a transparent pollfd, and the slice holds exactly so many.
    let n = unsafe {
        libc::poll(
            interests.as_mut_ptr().cast(),
            interests.len() as libc::nfds_t,
            timeout,
        )
    };
    match n {
        0.. => Ok(n as usize),
        _ => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(0),
            e => Err(e),
        },
    }
}

/// send(2) that never waits, whatever the descriptor's mode.
pub fn send_now(fd: BorrowedFd, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the pointer and length are those of one slice, which the call only reads.
    let n = unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    match n {
        0.. => Ok(n as usize),
        _ => Err(io::Error::last_os_error()),
    }
}
