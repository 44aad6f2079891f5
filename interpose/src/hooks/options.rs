//! Options and control calls: what the kernel alone can honour pins a stream.

use super::lifecycle::duplicated;
use super::pages;
use crate::real;
use crate::stream::leave;
use crate::stream::options::Change;
use crate::stream::{cutover, ending, options, ready, settings};
use crate::streams::Stream;
use core::ffi::{c_int, c_void};
use libc::{sockaddr, socklen_t};
use rdma_engine::abi::reason::Reason;

/// After a successful setsockopt on a stream.
fn changed(s: &Stream, fd: c_int, level: c_int, name: c_int) {
    if level != libc::SOL_SOCKET {
        return;
    }
    match name {
        libc::SO_SNDBUF | libc::SO_SNDBUFFORCE => cutover::update_limit(s, fd),
        libc::SO_RCVBUF | libc::SO_RCVBUFFORCE => cutover::tell_buffer(s, fd),
        _ => {}
    }
}

/// fcntl(2) on anything; `call` is the program's own.
fn control(fd: c_int, cmd: c_int, arg: usize, call: impl FnOnce() -> c_int) -> c_int {
    if cmd == libc::F_SETFL && arg as c_int & libc::O_ASYNC != 0 {
        if let Some(s) = crate::stream::of(fd) {
            leave::leave_wire(&s, Reason::Sigio);
        }
    }
    let r = call();
    if cmd == libc::F_SETFL {
        if let Some(s) = crate::stream::of(fd) {
            settings::forget(&s);
        }
    }
    if r >= 0
        && matches!(cmd, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC)
        && !crate::process::in_vfork_child()
    {
        duplicated(fd, r);
    }
    r
}

/// Before an option that only the kernel can honour.
fn leave_for(s: &Stream, reason: Reason) {
    if reason == Reason::Ulp {
        // The kernel wants to see every byte from here on.
        leave::leave_to_others(s, reason);
    } else {
        leave::leave_wire(s, reason);
    }
}

crate::hooks! {
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int {
        let stream = crate::stream::of(fd);
        let Some(s) = stream else {
            return unsafe { real::setsockopt(fd, level, name, value, len) };
        };
        let change = options::change(level, name, value, len);
        if let Change::Pins(reason) = change {
            leave_for(&s, reason);
        }
        let r = unsafe { real::setsockopt(fd, level, name, value, len) };
        if r == 0 {
            if change == Change::Unknown {
                leave::leave_wire(&s, Reason::KernelOption);
            }
            changed(&s, fd, level, name);
        }
        r
    }

    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int {
        if pages::asks_for(level, name) {
            let answer = crate::stream::of(fd).and_then(|s| pages::receive(&s, fd, value, len));
            if let Some(r) = answer {
                return r;
            }
        }
        let r = unsafe { real::getsockopt(fd, level, name, value, len) };
        if r == 0 && level == libc::SOL_SOCKET && name == libc::SO_ERROR {
            let told = crate::stream::of(fd).is_some_and(|s| ending::tell_reset(&s));
            if told && unsafe { *len } >= 4 && unsafe { *value.cast::<c_int>() } == 0 {
                // The reset that we emulate is an error like any other.
                unsafe { *value.cast::<c_int>() = libc::ECONNRESET };
            }
        }
        r
    }

    fn getsockname(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
        unsafe { real::getsockname(fd, addr, len) }
    }

    fn getpeername(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
        unsafe { real::getpeername(fd, addr, len) }
    }

    fn bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
        unsafe { real::bind(fd, addr, len) }
    }

    fn listen(fd: c_int, backlog: c_int) -> c_int {
        unsafe { real::listen(fd, backlog) }
    }

    fn sockatmark(fd: c_int) -> c_int {
        let r = unsafe { real::sockatmark(fd) };
        // What came by the wire stands before the mark.
        if r == 1 && crate::stream::of(fd).is_some_and(|s| ready::unread(&s) > 0) {
            return 0;
        }
        r
    }

    fn fcntl(fd: c_int, cmd: c_int, arg: usize) -> c_int {
        control(fd, cmd, arg, || unsafe { real::fcntl(fd, cmd, arg) })
    }

    fn fcntl64(fd: c_int, cmd: c_int, arg: usize) -> c_int {
        control(fd, cmd, arg, || unsafe { real::fcntl64(fd, cmd, arg) })
    }

    fn ioctl(fd: c_int, request: u64, arg: usize) -> c_int {
        const FIOASYNC: u64 = 0x5452;
        let stream = crate::stream::of(fd);
        if let (FIOASYNC, Some(s)) = (request, &stream) {
            if crate::faults::load(arg as *const c_int).is_some_and(|on| on != 0) {
                leave::leave_wire(s, Reason::Sigio);
            }
        }
        let r = unsafe { real::ioctl(fd, request, arg) };
        if let (0, Some(s)) = (r, &stream) {
            if request == libc::FIONBIO {
                settings::forget(s);
            }
            let more = match request {
                libc::FIONREAD => ready::unread(s),
                libc::TIOCOUTQ if ready::tx_is_fast(s) => ready::unread_by_peer(s) as usize,
                _ => 0,
            };
            const SIOCATMARK: u64 = 0x8905;
            if request == SIOCATMARK && ready::unread(s) > 0 {
                // SAFETY: the kernel has just written an int there.
                unsafe { *(arg as *mut c_int) = 0 };
            }
            if more > 0 {
                // The kernel has just written an int there.
                unsafe { *(arg as *mut c_int) += more as c_int };
            }
        }
        r
    }
}
