//! Streams are born: by connect, by accept, or seen for the first time.

use crate::fdtable::{self, Entry};
use crate::slots;
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use rdma_engine::abi::arena::{flags, Address};
use rdma_engine::abi::log::Event;
use rdma_engine::abi::reason::Reason;
use rdma_engine::{sys, syscall};

/// `fd` is a connected (or connecting) TCP socket from now on.
pub fn connected(fd: i32, outgoing: bool) {
    let new = begin(fd, outgoing).map_or(Entry::Other, |s| s.entry());
    let old = fdtable::swap(fd, new);
    // Another thread's call on the number may have come between the kernel's and us.
    if let Some(s) = super::of_entry(old).filter(|s| s.is_adopted()) {
        super::close::abandon(s);
    }
}

/// A slot for a new stream.
fn begin(fd: i32, outgoing: bool) -> Option<Stream> {
    let s = slots::open(fd)?;
    if outgoing {
        s.slot.flags.fetch_or(flags::OUTGOING, Ordering::Relaxed);
    }
    super::heat::begin(s.slot);
    let now = sys::tick_ns();
    s.slot.opened.store(now, Ordering::Relaxed);
    s.slot.heat_since.store(now, Ordering::Relaxed);
    s.log(Event::Opened, [fd as u64, u64::from(outgoing)]);
    Some(s)
}

/// `fd` has never been seen: it was inherited, or opened behind our back. It is
/// looked at once. Nobody can know who else holds a connection that was
/// inherited without a record: it stays Plain.
#[cold]
pub fn adopt(fd: i32) {
    let entry = match protocol(fd) {
        Ok(p) if p == libc::IPPROTO_TCP => {
            if peer(fd).is_some() {
                return adopt_stream(fd);
            }
            Entry::Socket
        }
        Ok(_) => Entry::Other,
        Err(libc::ENOTSOCK) => Entry::Other,
        // Not open at all, or we may not ask: ask again next time.
        Err(_) => return,
    };
    fdtable::replace(fd, Entry::Unknown, entry);
}

fn adopt_stream(fd: i32) {
    let Some(s) = begin(fd, false) else {
        fdtable::replace(fd, Entry::Unknown, Entry::Other);
        return;
    };
    pin(&s, Reason::Adopted);
    // Whoever has opened the number meanwhile knows better.
    if !fdtable::replace(fd, Entry::Unknown, s.entry()) {
        super::close::abandon(s);
    }
}

/// The protocol number of a socket, as SO_PROTOCOL tells it.
pub fn protocol(fd: i32) -> Result<i32, i32> {
    sys::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PROTOCOL, 0i32)
}

/// Settles that the stream stays (or goes back to) Plain, and why. The first
/// reason stands.
pub fn pin(s: &Stream, reason: Reason) {
    let first = s
        .slot
        .pin
        .compare_exchange(0, reason as u32, Ordering::AcqRel, Ordering::Acquire);
    if first.is_ok() {
        s.because(reason);
        s.log(Event::Pinned, [reason as u64, 0]);
    }
    super::cutover::recall(s);
}

/// One end of a connection as (family, port, address words), v4-mapped
/// addresses as IPv4.
pub type End = (u16, u16, [u32; 4]);

fn name(fd: i32, call: i64) -> Option<End> {
    // SAFETY: all zero is a valid address; the kernel writes within its size.
    unsafe {
        let mut a: libc::sockaddr_storage = core::mem::zeroed();
        let mut len = core::mem::size_of::<libc::sockaddr_storage>() as u32;
        let (p, l) = (&mut a as *mut _ as usize, &mut len as *mut u32 as usize);
        if syscall!(call, fd, p, l) < 0 {
            return None;
        }
        match i32::from(a.ss_family) {
            libc::AF_INET => {
                let v4 = &*(&a as *const _ as *const libc::sockaddr_in);
                let ip = [v4.sin_addr.s_addr, 0, 0, 0];
                Some((libc::AF_INET as u16, u16::from_be(v4.sin_port), ip))
            }
            libc::AF_INET6 => {
                let v6 = &*(&a as *const _ as *const libc::sockaddr_in6);
                let b = v6.sin6_addr.s6_addr;
                let w = |i: usize| u32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
                let ip = [w(0), w(4), w(8), w(12)];
                let port = u16::from_be(v6.sin6_port);
                if ip[0] == 0 && ip[1] == 0 && ip[2] == u32::from_ne_bytes([0, 0, 0xff, 0xff]) {
                    Some((libc::AF_INET as u16, port, [ip[3], 0, 0, 0]))
                } else {
                    Some((libc::AF_INET6 as u16, port, ip))
                }
            }
            _ => None,
        }
    }
}

/// The local end of a socket.
pub fn own(fd: i32) -> Option<End> {
    name(fd, libc::SYS_getsockname)
}

/// The remote end of a connected socket.
pub fn peer(fd: i32) -> Option<End> {
    name(fd, libc::SYS_getpeername)
}

/// Writes both ends into the slot, once. Returns (local, remote).
pub fn addresses(s: &Stream, fd: i32) -> Option<(End, End)> {
    let ends = (own(fd)?, peer(fd)?);
    let set = |a: &Address, e: End| a.set(e.0, e.1, e.2);
    set(&s.slot.local, ends.0);
    set(&s.slot.remote, ends.1);
    Some(ends)
}
