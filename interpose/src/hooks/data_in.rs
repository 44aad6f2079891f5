//! read, recv and their kin.

use crate::stream::iov::{Control, Message, One};
use crate::stream::receive::receive;
use crate::{faults, real};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use libc::{iovec, mmsghdr, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

/// The kernel's bound on the number of parts (readv(2)).
const IOV_MAX: usize = 1024;

/// The kernel's own flag for calls of 32-bit programs: EINVAL from anybody else, in calls that
/// take a msghdr.
pub const MSG_CMSG_COMPAT: c_int = 1 << 31;

/// The parts of a scatter array; `None` for what the kernel refuses.
///
/// # Safety
/// `iov` is null or valid for `n` entries.
pub unsafe fn parts<'a>(iov: *const iovec, n: usize) -> Option<&'a [iovec]> {
    let size = n.checked_mul(core::mem::size_of::<iovec>())?;
    if n == 0 || n > IOV_MAX || !faults::ready() || !faults::readable(iov as usize, size) {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(unsafe { core::slice::from_raw_parts(iov, n) })
}

crate::hooks! {
    fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t {
        let plain = move || unsafe { real::read(fd, buf, len) };
        // read(2) of nothing never waits, unlike recv(2) of nothing.
        if len == 0 || crate::fdtable::is_other(fd) {
            return plain();
        }
        receive(fd, One::new(buf, len), 0, plain)
    }

    fn readv(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t {
        let plain = move || unsafe { real::readv(fd, iov, n) };
        match unsafe { parts(iov, n as usize) } {
            Some(p) if p.iter().any(|p| p.iov_len > 0) => receive(fd, p, 0, plain),
            _ => plain(),
        }
    }

    fn preadv2(fd: c_int, iov: *const iovec, n: c_int, offset: off_t, flags: c_int) -> ssize_t {
        let plain = move || unsafe { real::preadv2(fd, iov, n, offset, flags) };
        // At the offset -1 it is readv(2), and works on sockets.
        match (offset, unsafe { parts(iov, n as usize) }) {
            (-1, Some(p)) if p.iter().any(|p| p.iov_len > 0) => {
                let dontwait = flags & libc::RWF_NOWAIT != 0;
                receive(fd, p, if dontwait { libc::MSG_DONTWAIT } else { 0 }, plain)
            }
            _ => plain(),
        }
    }

    fn preadv64v2(fd: c_int, iov: *const iovec, n: c_int, offset: off_t, flags: c_int) -> ssize_t {
        unsafe { preadv2(fd, iov, n, offset, flags) }
    }

    fn recv(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
        receive(fd, One::new(buf, len), flags, move || unsafe { real::recv(fd, buf, len, flags) })
    }

    fn recvfrom(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int, addr: *mut sockaddr, alen: *mut socklen_t) -> ssize_t {
        let plain_called = Cell::new(false);
        let n = receive(fd, One::new(buf, len), flags, || {
            plain_called.set(true);
            unsafe { real::recvfrom(fd, buf, len, flags, addr, alen) }
        });
        if n >= 0 && !plain_called.get() && !addr.is_null() {
            // TCP has no source address to tell.
            if !faults::writable(alen as usize, 4) {
                crate::errno::set(libc::EFAULT);
                return -1;
            }
            unsafe { *alen = 0 };
        }
        n
    }

    fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
        unsafe { receive_message(fd, msg, flags) }
    }

    fn recvmmsg(fd: c_int, vec: *mut mmsghdr, n: u32, flags: c_int, timeout: *mut timespec) -> c_int {
        let size = n.min(IOV_MAX as u32) as usize * core::mem::size_of::<mmsghdr>();
        if crate::stream::of(fd).is_none()
            || !faults::writable(vec as usize, size)
            || (!timeout.is_null() && faults::load(timeout).is_none())
        {
            return unsafe { real::recvmmsg(fd, vec, n, flags, timeout) };
        }
        let deadline = unsafe { timeout.as_ref() }.map(|t| {
            rdma_engine::sys::now_ns()
                .saturating_add((t.tv_sec as u64).saturating_mul(1_000_000_000))
                .saturating_add(t.tv_nsec as u64)
        });
        let mut fl = flags & !libc::MSG_WAITFORONE;
        for i in 0..n.min(IOV_MAX as u32) {
            let r = unsafe {
                let m = &mut *vec.add(i as usize);
                let r = receive_message(fd, &mut m.msg_hdr, fl);
                m.msg_len = r.max(0) as u32;
                r
            };
            if r < 0 {
                return if i > 0 { i as c_int } else { -1 };
            }
            if flags & libc::MSG_WAITFORONE != 0 {
                fl |= libc::MSG_DONTWAIT;
            }
            if deadline.is_some_and(|d| rdma_engine::sys::now_ns() >= d) {
                return i as c_int + 1;
            }
        }
        n.min(IOV_MAX as u32) as c_int
    }
}

/// recvmsg(2). TCP fills in no address, and control data only for what the kernel gives.
///
/// # Safety
/// `msg` is null or valid, as the system call has it.
unsafe fn receive_message(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise, in each of these blocks.
    let plain = move || unsafe { real::recvmsg(fd, msg, flags) };
    let size = core::mem::size_of::<msghdr>();
    if flags & MSG_CMSG_COMPAT != 0 // refused
        || crate::fdtable::is_other(fd)
        || !faults::ready()
        || !faults::writable(msg as usize, size)
    {
        return plain();
    }
    let Some(p) = (unsafe { parts((*msg).msg_iov, (*msg).msg_iovlen) }) else {
        return plain();
    };
    let plain_called = Cell::new(false);
    let control = unsafe { Control::new((*msg).msg_control, (*msg).msg_controllen) };
    let n = receive(fd, Message(p, &control), flags, || {
        plain_called.set(true);
        plain()
    });
    if n >= 0 && !plain_called.get() {
        let (used, cut_short) = control.result();
        unsafe {
            if !(*msg).msg_name.is_null() {
                (*msg).msg_namelen = 0;
            }
            (*msg).msg_controllen = used;
            // The kernel hands this flag back.
            (*msg).msg_flags = cut_short | flags & libc::MSG_CMSG_CLOEXEC;
        }
    }
    n
}
