//! Sockets come and go: socket, accept, connect, shutdown, close, dup.

use crate::descriptors;
use crate::errno;
use crate::fdtable::{self, Entry};
use crate::real;
use crate::stream::{close as end, open};
use core::ffi::c_int;
use libc::{sockaddr, socklen_t};
use rdma_engine::abi::reason::Reason;

/// What a socket of these kinds is.
fn kind(domain: c_int, ty: c_int, protocol: c_int) -> Entry {
    let inet = domain == libc::AF_INET || domain == libc::AF_INET6;
    let stream = ty & 0xf == libc::SOCK_STREAM;
    let tcp = protocol == 0 || protocol == libc::IPPROTO_TCP;
    if inet && stream && tcp {
        Entry::Socket
    } else {
        Entry::Other
    }
}

/// What `fd` is, after one look if it was never seen.
fn known(fd: c_int) -> Entry {
    if fdtable::get(fd) == Entry::Unknown {
        open::adopt(fd);
    }
    fdtable::get(fd)
}

fn accepted(listener: c_int, fd: c_int) {
    if known(listener) == Entry::Socket {
        open::connected(fd, false);
    } else {
        fdtable::opened(fd, Entry::Other);
    }
}

/// A new descriptor for what `from` names.
pub fn duplicated(from: c_int, to: c_int) {
    let entry = fdtable::get(from);
    match entry {
        Entry::Stream { .. } => {
            if let Some(s) = crate::stream::of_entry(entry) {
                s.add_fd(to);
            }
        }
        Entry::Epoll { index } => crate::readiness::epoll::dup(index),
        _ => {}
    }
    let entry = if entry == Entry::Internal {
        Entry::Other
    } else {
        entry
    };
    fdtable::set(to, entry);
}

/// A vfork child duplicates a stream for the program that it is about to become,
/// whose library knows nothing of the wire.
fn given_away(fd: c_int) {
    if let Some(s) = crate::stream::of(fd) {
        crate::stream::leave::leave_to_others(&s, Reason::Passed);
    }
}

/// dup2 and dup3: `to` is closed on the way. One of ours steps aside.
fn replace(from: c_int, to: c_int, call: impl FnOnce() -> c_int) -> c_int {
    // A source that is not open changes nothing.
    let open = unsafe { rdma_engine::syscall!(libc::SYS_fcntl, from, libc::F_GETFD) } >= 0;
    if from == to || !open {
        return call();
    }
    if crate::process::in_vfork_child() {
        given_away(from);
        return call();
    }
    if fdtable::get(to) == Entry::Internal {
        descriptors::step_aside(to);
    }
    let closing = end::before(to);
    let r = call();
    end::after(closing);
    if r >= 0 {
        duplicated(from, r);
    }
    r
}

crate::hooks! {
    fn socket(domain: c_int, ty: c_int, protocol: c_int) -> c_int {
        let fd = unsafe { real::socket(domain, ty, protocol) };
        fdtable::opened(fd, kind(domain, ty, protocol));
        fd
    }

    fn socketpair(domain: c_int, ty: c_int, protocol: c_int, sv: *mut c_int) -> c_int {
        let r = unsafe { real::socketpair(domain, ty, protocol, sv) };
        if r == 0 {
            unsafe {
                fdtable::opened(*sv, Entry::Other);
                fdtable::opened(*sv.add(1), Entry::Other);
            }
        }
        r
    }

    fn accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
        let r = unsafe { real::accept(fd, addr, len) };
        if r >= 0 {
            accepted(fd, r);
        }
        r
    }

    fn accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int {
        let r = unsafe { real::accept4(fd, addr, len, flags) };
        if r >= 0 {
            accepted(fd, r);
        }
        r
    }

    fn connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
        let entry = fdtable::get(fd);
        if entry == Entry::Other {
            return unsafe { real::connect(fd, addr, len) };
        }
        let unspec = len as usize >= 2
            && crate::faults::ready()
            && crate::faults::load(addr.cast::<u16>()) == Some(libc::AF_UNSPEC as u16);
        if let (true, Some(s)) = (unspec, crate::stream::of_entry(entry)) {
            return dissolve(&s, fd, || unsafe { real::connect(fd, addr, len) });
        }
        let r = unsafe { real::connect(fd, addr, len) };
        let begun = r == 0 || matches!(errno::get(), libc::EINPROGRESS | libc::EINTR);
        if begun && !unspec && known_socket(fd) {
            open::connected(fd, true);
        }
        r
    }

    fn shutdown(fd: c_int, how: c_int) -> c_int {
        match crate::stream::of(fd) {
            Some(s) => end::shutdown(&s, fd, how),
            None => unsafe { real::shutdown(fd, how) },
        }
    }

    fn close(fd: c_int) -> c_int {
        let entry = fdtable::get(fd);
        if entry == Entry::Internal {
            errno::set(libc::EBADF);
            return -1;
        }
        let closing = end::before(fd);
        let r = unsafe { real::close(fd) };
        if entry != Entry::Unknown {
            end::after(closing);
        }
        r
    }

    fn dup(fd: c_int) -> c_int {
        let r = unsafe { real::dup(fd) };
        if r >= 0 && !crate::process::in_vfork_child() {
            duplicated(fd, r);
        }
        r
    }

    fn dup2(from: c_int, to: c_int) -> c_int {
        replace(from, to, || unsafe { real::dup2(from, to) })
    }

    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
        let call = || unsafe { real::dup3(from, to, flags) };
        // With flags that the kernel refuses, nothing is closed.
        if flags & !libc::O_CLOEXEC != 0 {
            return call();
        }
        replace(from, to, call)
    }

    fn close_range(first: u32, last: u32, flags: c_int) -> c_int {
        const CLOSES: c_int = 0;
        if flags != CLOSES || first > last || crate::process::in_vfork_child() {
            return unsafe { real::close_range(first, last, flags) };
        }
        range(first, last)
    }

    fn closefrom(first: c_int) -> () {
        range(first.max(0) as u32, u32::MAX);
    }
}

/// connect(AF_UNSPEC): the connection is dissolved, and another may follow on the
/// same socket. To the stream that is a close.
fn dissolve(s: &crate::streams::Stream, fd: c_int, call: impl FnOnce() -> c_int) -> c_int {
    if s.descriptors().count() != 1 || !s.all_known() {
        crate::stream::leave::leave_wire(s, Reason::KernelOption);
        return call();
    }
    let closing = end::before(fd);
    let r = call();
    end::after(closing);
    fdtable::set(fd, Entry::Socket);
    r
}

fn known_socket(fd: c_int) -> bool {
    match fdtable::get(fd) {
        Entry::Socket => true,
        Entry::Unknown => open::protocol(fd) == Ok(libc::IPPROTO_TCP),
        _ => false,
    }
}

/// Closes a range, and passes our own descriptors by.
fn range(first: u32, last: u32) -> c_int {
    let mut start = first;
    let mut result = 0;
    let mut close = |from: u32, to: u32| {
        if from <= to {
            let r = unsafe { rdma_engine::syscall!(libc::SYS_close_range, from, to, 0) };
            if r < 0 {
                errno::set(-r as c_int);
                result = -1;
            }
        }
    };
    let end_of_ours = last.min(fdtable::highest());
    for fd in first..=end_of_ours {
        match fdtable::get(fd as c_int) {
            Entry::Internal => {
                if fd > start {
                    close(start, fd - 1);
                }
                start = fd + 1;
            }
            Entry::Unknown => {}
            _ => {
                if fd > start {
                    close(start, fd - 1);
                }
                let closing = end::before(fd as c_int);
                close(fd, fd);
                end::after(closing);
                start = fd + 1;
            }
        }
    }
    close(start, last);
    result
}
