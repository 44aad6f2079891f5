//! TCP_ZEROCOPY_RECEIVE: a getsockopt(2) that reads, from the kernel's own pages.

use crate::stream::{leave, options, ready, tcp};
use crate::streams::Stream;
use crate::{errno, faults};
use core::ffi::{c_int, c_void};
use libc::socklen_t;
use rdma_engine::abi::arena::RxMode;
use rdma_engine::abi::reason::Reason;

/// The head of `struct tcp_zerocopy_receive` (linux/tcp.h); more may follow.
#[derive(Clone, Copy)]
#[repr(C)]
struct Head {
    address: u64,
    length: u32,
    recv_skip_hint: u32,
}

/// Is it that option? Then the stream stays on TCP from now on.
#[inline]
pub fn asks_for(level: c_int, name: c_int) -> bool {
    (level, name) == (libc::IPPROTO_TCP, options::TCP_ZEROCOPY_RECEIVE)
}

/// Answers as long as the input is not all TCP's: nothing can be mapped, and so many bytes are
/// to be read by recv(2), as for pages that are not full. `None`: the kernel may answer.
#[cold]
pub fn receive(s: &Stream, fd: c_int, value: *mut c_void, len: *const socklen_t) -> Option<c_int> {
    leave::leave_wire(s, Reason::KernelOption);
    if s.slot.rx_mode() == RxMode::Plain {
        return None;
    }
    let size = core::mem::size_of::<Head>();
    let len = faults::load(len).unwrap_or(0) as usize;
    let whole = len >= size && len <= 256 && faults::writable(value as usize, len);
    let Some(mut head) = faults::load(value.cast::<Head>()).filter(|_| whole) else {
        errno::set(libc::EINVAL);
        return Some(-1);
    };
    let there = ready::unread(s).saturating_add(tcp::queued(fd).max(0) as usize);
    if there == 0 {
        let mut byte = 0u8;
        let at = (&mut byte as *mut u8).cast();
        let flags = libc::MSG_PEEK | libc::MSG_DONTWAIT;
        // SAFETY: one byte of our own.
        if unsafe { super::data_in::recv(fd, at, 1, flags) } == 0 {
            // The end of the stream, in the kernel's words.
            errno::set(libc::EIO);
            return Some(-1);
        }
    }
    head.recv_skip_hint = there as u32;
    head.length = 0;
    // SAFETY: writable for `len` bytes, the head's at least; the rest is the kernel's to fill
    // in: no error, and nothing copied.
    unsafe {
        value.cast::<Head>().write_unaligned(head);
        let rest = [(16, there as u32), (20, 0), (32, 0), (36, 0)];
        for (at, word) in rest.into_iter().filter(|(at, _)| at + 4 <= len) {
            value.byte_add(at).cast::<u32>().write_unaligned(word);
        }
    }
    Some(0)
}
