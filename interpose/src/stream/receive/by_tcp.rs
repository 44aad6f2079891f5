//! Bytes that come by TCP.

use super::super::iov::Iov;
use super::super::{cutover, tcp};
use super::{broken, count_plain, see_cut, Once};
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use libc::{iovec, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL};
use rdma_engine::abi::arena::{flags, RxMode};
use rdma_engine::segment::Segment;
use rdma_engine::{sys, syscall};

/// Reads from TCP without blocking, `most` bytes at the most.
pub(super) fn from_tcp(fd: i32, iov: &Iov, most: usize, fl: i32) -> Once {
    let mut parts = [iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: 0,
    }; 64];
    let n = iov.rest(most, &mut parts);
    // SAFETY: all zero is a valid header; the parts are the program's own.
    let r = unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = parts.as_mut_ptr();
        msg.msg_iovlen = n;
        if let Some(control) = iov.control() {
            control.lend(&mut msg);
        }
        let fl = (fl & !MSG_WAITALL) | MSG_DONTWAIT;
        let r = syscall!(libc::SYS_recvmsg, fd, &mut msg as *mut libc::msghdr, fl);
        if let (0.., Some(control)) = (r, iov.control()) {
            control.take_back(&msg);
        }
        r
    };
    match r {
        n if n >= 0 => Once::Got(n as usize),
        r if r == -(libc::EAGAIN as isize) => Once::Empty,
        r => Once::Failed(-r as i32),
    }
}

/// Reads from TCP after a promise, as long as no cut is seen. The sender may cut over, and
/// back again, at any time: only what stood in the queue when there was no cut yet is
/// sure to come before it.
/// No handler of ours may read between that look and the read.
pub(super) fn before_cut(s: &Stream, fd: i32, segment: Segment, iov: &Iov, fl: i32) -> Once {
    if iov.left() == 0 {
        return counted(s, fd, iov, usize::MAX, fl);
    }
    sys::with_signals_blocked(|| before_cut_undisturbed(s, fd, segment, iov, fl))
}

fn before_cut_undisturbed(s: &Stream, fd: i32, segment: Segment, iov: &Iov, fl: i32) -> Once {
    let queued = tcp::queued(fd);
    if see_cut(s, segment) {
        return Once::Again;
    }
    if queued > 0 {
        return counted(s, fd, iov, queued as usize, fl);
    }
    // Nothing, or the end: a look that takes nothing.
    let mut byte = 0u8;
    let flags = libc::MSG_PEEK | MSG_DONTWAIT;
    // SAFETY: one byte of our own stack.
    match unsafe { syscall!(libc::SYS_recvfrom, fd, &mut byte as *mut u8, 1, flags, 0, 0) } {
        0 => {
            if !s.slot.has(flags::SHUT_RD) {
                s.slot.flags.fetch_or(flags::TCP_END, Ordering::AcqRel);
            }
            Once::Got(0)
        }
        1 => {
            // At the urgent mark the kernel counts none of what it has.
            if tcp::queued(fd) == 0 {
                cutover::withdraw_promise(s);
            }
            Once::Again
        }
        e if e == -(libc::EAGAIN as isize) => Once::Empty,
        e => Once::Failed(-e as i32),
    }
}

/// Reads from TCP and keeps the count of its bytes exact.
pub(super) fn counted(s: &Stream, fd: i32, iov: &Iov, most: usize, fl: i32) -> Once {
    let rx = &s.slot.rx;
    if s.slot.has(flags::UNCOUNTED) {
        // The holder has died, perhaps between reading and counting. If the kernel
        // cannot say now, the next read asks again.
        sys::with_signals_blocked(|| {
            if let Some(n) = tcp::read_from_tcp(fd) {
                rx.tcp_count.store(n, Ordering::Release);
                s.slot.flags.fetch_and(!flags::UNCOUNTED, Ordering::AcqRel);
            }
        });
    }
    // No handler of ours may read between reading and counting.
    let r = sys::with_signals_blocked(|| {
        let r = from_tcp(fd, iov, most, fl);
        if let Once::Got(n) = r {
            if fl & MSG_PEEK == 0 {
                rx.tcp_count.fetch_add(n as u64, Ordering::AcqRel);
            }
        }
        r
    });
    match r {
        Once::Got(n) if n > 0 && fl & MSG_PEEK == 0 => count_plain(s, n),
        Once::Got(0) if iov.left() > 0 && !s.slot.has(flags::SHUT_RD) => {
            if s.slot.rx_mode() == RxMode::Fast {
                // TCP ends before the sender's own X: bytes are missing.
                broken(s);
                return Once::Failed(libc::ECONNRESET);
            }
            s.slot.flags.fetch_or(flags::TCP_END, Ordering::AcqRel);
        }
        _ => {}
    }
    r
}
