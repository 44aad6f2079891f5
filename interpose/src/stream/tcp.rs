//! What the kernel says of a connection's bytes.

use rdma_engine::{sys, syscall};

/// TCP_ESTABLISHED of the kernel's tcp_states.h.
pub(super) const ESTABLISHED: u8 = 1;

/// What TCP_INFO says of the bytes so far.
pub(super) struct Counts {
    pub(super) state: u8,
    /// Bytes that the program has handed to send(2) on this connection.
    pub(super) sent: u64,
    /// Bytes that have arrived in order, read or not.
    pub(super) received: u64,
}

/// `struct tcp_info` of the kernel up to the fields that we need (tcp.h; the
/// libc crate's is shorter).
#[repr(C)]
#[derive(Clone, Copy)]
struct TcpInfo {
    state: u8,
    _a: [u8; 7],
    _b: [u32; 24],
    _c: [u64; 2],
    bytes_acked: u64,
    bytes_received: u64,
    _segs: [u32; 2],
    notsent_bytes: u32,
    _d: [u32; 3],
    _e: [u64; 4],
    _delivered: [u32; 2],
    bytes_sent: u64,
    bytes_retrans: u64,
}

pub(super) fn counts(fd: i32) -> Option<Counts> {
    // SAFETY: all zero is a valid TcpInfo.
    let zero: TcpInfo = unsafe { core::mem::zeroed() };
    let i = sys::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, zero).ok()?;
    Some(Counts {
        state: i.state,
        sent: i.bytes_sent - i.bytes_retrans + u64::from(i.notsent_bytes),
        received: i.bytes_received,
    })
}

/// Bytes that wait in the kernel's receive queue.
pub fn queued(fd: i32) -> i32 {
    let mut n = 0i32;
    // SAFETY: FIONREAD writes one int.
    unsafe { syscall!(libc::SYS_ioctl, fd, libc::FIONREAD, &mut n as *mut i32) };
    n
}

/// Bytes that this end has read from TCP: exact if no thread reads meanwhile.
pub fn read_from_tcp(fd: i32) -> Option<u64> {
    for _ in 0..64 {
        let before = counts(fd)?;
        let queued = queued(fd);
        let after = counts(fd)?;
        // After a FIN the count is one too high; urgent data shifts it.
        if before.state != ESTABLISHED || after.state != ESTABLISHED {
            return None;
        }
        if before.received == after.received {
            return before.received.checked_sub(queued as u64);
        }
    }
    None
}

/// Bytes that the program has sent and received by TCP so far, also when the connection
/// is ending: good enough to be shown.
pub fn carried(fd: i32) -> Option<(u64, u64)> {
    let now = counts(fd)?;
    // The peer's FIN counts as a byte.
    const CLOSE_WAIT: u8 = 8;
    const BEHIND_A_FIN: [u8; 4] = [CLOSE_WAIT, 9, 11, 6];
    let fin = u64::from(BEHIND_A_FIN.contains(&now.state));
    let unread = queued(fd) as u64 + fin;
    Some((now.sent, now.received.saturating_sub(unread)))
}

/// Is urgent data pending (POLLPRI)?
pub(super) fn urgent(fd: i32) -> bool {
    let mut p = [libc::pollfd {
        fd,
        events: libc::POLLPRI,
        revents: 0,
    }];
    sys::ppoll(&mut p, Some(0)) > 0 && p[0].revents & libc::POLLPRI != 0
}
