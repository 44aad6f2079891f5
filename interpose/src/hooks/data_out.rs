//! write, send and their kin, sendfile and splice.

use super::data_in::{parts, MSG_CMSG_COMPAT};
use crate::stream::iov::One;
use crate::stream::send::send as put;
use crate::stream::{open, transfer};
use crate::threads::Kind;
use crate::{errno, real};
use core::ffi::{c_int, c_void};
use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use rdma_engine::abi::reason::Reason;

crate::hooks! {
    fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t {
        let plain = move || unsafe { real::write(fd, buf, len) };
        if crate::fdtable::is_other(fd) {
            return plain();
        }
        put(fd, One::new(buf.cast_mut(), len), 0, plain)
    }

    fn writev(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t {
        let plain = move || unsafe { real::writev(fd, iov, n) };
        match unsafe { parts(iov, n as usize) } {
            Some(p) => put(fd, p, 0, plain),
            None => plain(),
        }
    }

    fn pwritev2(fd: c_int, iov: *const iovec, n: c_int, offset: off_t, flags: c_int) -> ssize_t {
        let plain = move || unsafe { real::pwritev2(fd, iov, n, offset, flags) };
        // At the offset -1 it is writev(2), and works on sockets.
        match (offset, unsafe { parts(iov, n as usize) }) {
            (-1, Some(p)) => {
                let dontwait = flags & libc::RWF_NOWAIT != 0;
                put(fd, p, if dontwait { libc::MSG_DONTWAIT } else { 0 }, plain)
            }
            _ => plain(),
        }
    }

    fn pwritev64v2(fd: c_int, iov: *const iovec, n: c_int, offset: off_t, flags: c_int) -> ssize_t {
        unsafe { pwritev2(fd, iov, n, offset, flags) }
    }

    fn send(fd: c_int, buf: *const c_void, len: size_t, flags: c_int) -> ssize_t {
        let plain = move || unsafe { real::send(fd, buf, len, flags) };
        if flags & libc::MSG_FASTOPEN != 0 {
            return fast_open(fd, plain);
        }
        put(fd, One::new(buf.cast_mut(), len), flags, plain)
    }

    fn sendto(fd: c_int, buf: *const c_void, len: size_t, flags: c_int, addr: *const sockaddr, alen: socklen_t) -> ssize_t {
        let plain = move || unsafe { real::sendto(fd, buf, len, flags, addr, alen) };
        if flags & libc::MSG_FASTOPEN != 0 {
            return fast_open(fd, plain);
        }
        put(fd, One::new(buf.cast_mut(), len), flags, plain)
    }

    fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
        unsafe { send_message(fd, msg, flags) }
    }

    fn sendmmsg(fd: c_int, vec: *mut mmsghdr, n: u32, flags: c_int) -> c_int {
        let size = n.min(1024) as usize * core::mem::size_of::<mmsghdr>();
        if crate::stream::of(fd).is_none() || !crate::faults::writable(vec as usize, size) {
            return unsafe { real::sendmmsg(fd, vec, n, flags) };
        }
        for i in 0..n.min(1024) {
            let r = unsafe {
                let m = &mut *vec.add(i as usize);
                let r = send_message(fd, &m.msg_hdr, flags);
                m.msg_len = r.max(0) as u32;
                r
            };
            if r < 0 {
                return if i > 0 { i as c_int } else { -1 };
            }
        }
        n.min(1024) as c_int
    }

    fn sendfile(out: c_int, from: c_int, offset: *mut off_t, n: size_t) -> ssize_t {
        let call = || unsafe { real::sendfile(out, from, offset, n) };
        let at = (!offset.is_null()).then_some(offset);
        for _ in 0..transfer::TRIES {
            let served = transfer::sendfile(out, from, at, n)
                .or_else(|| transfer::by_kernel(out, Kind::PlainSend, call));
            if let Some(n) = served {
                return n;
            }
        }
        transfer::refused()
    }

    fn sendfile64(out: c_int, from: c_int, offset: *mut off_t, n: size_t) -> ssize_t {
        unsafe { sendfile(out, from, offset, n) }
    }

    fn splice(from: c_int, off_in: *mut i64, to: c_int, off_out: *mut i64, n: size_t, flags: u32) -> ssize_t {
        let call = || unsafe { real::splice(from, off_in, to, off_out, n, flags) };
        let odd = !off_in.is_null() || !off_out.is_null() || n == 0;
        if odd || !(transfer::is_pipe(from) || transfer::is_pipe(to)) {
            return call();
        }
        for _ in 0..transfer::TRIES {
            let served = transfer::splice_in(from, to, n, flags)
                .or_else(|| transfer::splice_out(from, to, n, flags))
                .or_else(|| {
                    if crate::stream::of(to).is_some() {
                        transfer::by_kernel(to, Kind::PlainSend, call)
                    } else {
                        transfer::by_kernel(from, Kind::PlainRecv, call)
                    }
                });
            if let Some(n) = served {
                return n;
            }
        }
        transfer::refused()
    }
}

/// A call with MSG_FASTOPEN, which connects: data in the SYN shifts the kernel's counts. On a
/// connection it is refused.
#[cold]
fn fast_open(fd: c_int, call: impl Fn() -> ssize_t) -> ssize_t {
    let r = call();
    if r < 0 && errno::get() == libc::EISCONN {
        return r;
    }
    if crate::stream::of(fd).is_none() {
        open::connected(fd, true);
    }
    if let Some(s) = crate::stream::of(fd) {
        open::pin(&s, Reason::KernelOption);
    }
    r
}

/// sendmsg(2).
///
/// # Safety
/// `msg` is null or valid, as the system call has it.
unsafe fn send_message(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise, in each of these blocks.
    let plain = move || unsafe { real::sendmsg(fd, msg, flags) };
    if flags & MSG_CMSG_COMPAT != 0 || !crate::faults::ready() {
        return plain();
    }
    let Some(header) = crate::faults::load(msg) else {
        return plain();
    };
    let has_control = header.msg_controllen > 0
        && header.msg_controllen < 1 << 20
        && crate::faults::readable(header.msg_control as usize, header.msg_controllen);
    if has_control {
        unsafe { look_at_control(msg) };
    }
    if crate::fdtable::is_other(fd) {
        return plain();
    }
    if flags & libc::MSG_FASTOPEN != 0 {
        return fast_open(fd, plain);
    }
    if has_control {
        if let Some(s) = crate::stream::of(fd) {
            if crate::stream::leave::leave_wire(&s, Reason::KernelOption) {
                return plain();
            }
            // Control data means little to TCP, the order of bytes everything.
        }
    }
    match unsafe { parts(header.msg_iov, header.msg_iovlen) } {
        Some(p) => put(fd, p, flags, plain),
        None => plain(),
    }
}

/// A process that we do not know gets the stream, too.
fn pass(s: &crate::streams::Stream) {
    if s.phase() == rdma_engine::abi::arena::Phase::Offered {
        crate::rendezvous::retract(s);
    }
    crate::stream::leave::leave_to_others(s, Reason::Passed);
    crate::stream::handback::go_away(s);
}

/// Streams that are passed with SCM_RIGHTS (over whatever socket) get a holder
/// that we do not know.
///
/// # Safety
/// `msg` is a valid header with control data.
unsafe fn look_at_control(msg: *const msghdr) {
    // SAFETY: the CMSG macros walk the program's own buffer, whose length the
    // header gives.
    unsafe {
        let mut c = libc::CMSG_FIRSTHDR(msg);
        let mut bound = 0;
        while !c.is_null() && bound < 64 {
            bound += 1;
            if (*c).cmsg_level == libc::SOL_SOCKET && (*c).cmsg_type == libc::SCM_RIGHTS {
                let n = (*c).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize) / 4;
                let fds = libc::CMSG_DATA(c).cast::<c_int>();
                for i in 0..n.min(256) {
                    let passed = fds.add(i).read_unaligned();
                    if let Some(s) = crate::stream::of(passed) {
                        pass(&s);
                    }
                }
            }
            c = libc::CMSG_NXTHDR(msg, c);
        }
    }
}
