//! Are we really the two ends of one connection? All checks must hold, or both
//! stay Plain. A check that the kernel cannot make is a check that failed.

use super::diag;
use crate::process;
use crate::stream::open::{self, End};
use core::ffi::c_int;
use rdma_engine::abi::message::{Answer, Hello};
use rdma_engine::abi::reason::Reason;
use rdma_engine::{sys, syscall};

/// SO_NETNS_COOKIE, since Linux 5.14 (asm-generic/socket.h).
const SO_NETNS_COOKIE: c_int = 71;
/// SO_ORIGINAL_DST and its IPv6 twin (linux/netfilter_ipv4.h).
const SO_ORIGINAL_DST: c_int = 80;

/// What can be told from our own socket alone.
pub fn is_offerable(fd: i32, own: End, peer: End) -> Result<(), Reason> {
    if own == peer {
        return Err(Reason::SelfConnect);
    }
    if open::protocol(fd) != Ok(libc::IPPROTO_TCP) {
        return Err(Reason::Protocol);
    }
    is_untranslated(fd, own, peer)
}

/// Is the other end a socket of this network namespace?
pub fn is_here(own: End, peer: End) -> Result<(), Reason> {
    diag::find(peer, own).map(|_| ())
}

/// With address translation, equal 4-tuples may be different connections.
fn is_untranslated(fd: i32, own: End, peer: End) -> Result<(), Reason> {
    let six = i32::from(own.0) == libc::AF_INET6;
    let level = if six { libc::SOL_IPV6 } else { libc::SOL_IP };
    // SAFETY: all zero is a valid address.
    let zero: libc::sockaddr_storage = unsafe { core::mem::zeroed() };
    match sys::getsockopt(fd, level, SO_ORIGINAL_DST, zero) {
        // No connection tracking, or none of this connection.
        Err(libc::ENOENT | libc::ENOPROTOOPT | libc::EOPNOTSUPP) => Ok(()),
        Err(_) => Err(Reason::Kernel),
        Ok(a) => {
            // The destination as the connecting end meant it: one of our ends.
            let (port, ip) = original(&a);
            let is = |e: &End| e.1 == port && e.2 == ip;
            if is(&own) || is(&peer) {
                Ok(())
            } else {
                Err(Reason::Nat)
            }
        }
    }
}

fn original(a: &libc::sockaddr_storage) -> (u16, [u32; 4]) {
    // SAFETY: the storage is large and aligned enough for both.
    unsafe {
        if i32::from(a.ss_family) == libc::AF_INET6 {
            let v6 = &*(a as *const _ as *const libc::sockaddr_in6);
            let b = v6.sin6_addr.s6_addr;
            let w = |i: usize| u32::from_ne_bytes([b[i], b[i + 1], b[i + 2], b[i + 3]]);
            (u16::from_be(v6.sin6_port), [w(0), w(4), w(8), w(12)])
        } else {
            let v4 = &*(a as *const _ as *const libc::sockaddr_in);
            (u16::from_be(v4.sin_port), [v4.sin_addr.s_addr, 0, 0, 0])
        }
    }
}

fn cookie(fd: i32, name: c_int) -> Result<u64, Reason> {
    sys::getsockopt(fd, libc::SOL_SOCKET, name, 0u64).map_err(|_| Reason::Kernel)
}

/// Our own identity.
pub fn hello(fd: i32) -> Hello {
    Hello {
        pid: process::pid(),
        fd: fd as u32,
        cookie: cookie(fd, libc::SO_COOKIE).unwrap_or(0),
    }
}

/// Our own identity, for an answer.
pub fn answer(fd: i32) -> Answer {
    let h = hello(fd);
    Answer {
        verdict: Reason::None,
        pid: h.pid,
        fd: h.fd,
        cookie: h.cookie,
    }
}

/// Is the process behind `side` the one that holds the other end of our TCP
/// connection `fd`?
pub fn verify(fd: i32, side: i32, own: End, peer: End, claim: &Hello) -> Result<(), Reason> {
    let zero = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let cred = sys::getsockopt(side, libc::SOL_SOCKET, libc::SO_PEERCRED, zero)
        .map_err(|_| Reason::Kernel)?;
    if cookie(fd, SO_NETNS_COOKIE)? != cookie(side, SO_NETNS_COOKIE)? {
        return Err(Reason::Namespace);
    }
    // SAFETY: no arguments.
    let me = unsafe { syscall!(libc::SYS_geteuid) } as u32;
    if cred.uid == overflow_uid() || cred.uid != me {
        return Err(Reason::Owner);
    }
    // The socket at the other end, as the kernel names it.
    let other = diag::find(peer, own)?;
    if other.uid != cred.uid {
        return Err(Reason::Owner);
    }
    if other.cookie != claim.cookie || claim.pid != cred.pid as u32 {
        return Err(Reason::Identity);
    }
    if !holds(claim.pid, claim.fd, other.inode) {
        return Err(Reason::Identity);
    }
    is_untranslated(fd, own, peer)
}

/// The uid that stands for all uids of foreign user namespaces.
fn overflow_uid() -> u32 {
    65534
}

/// Does process `pid` have socket `inode` as its descriptor `fd`? Where /proc may
/// not be read, the cookie has to do.
fn holds(pid: u32, fd: u32, inode: u32) -> bool {
    use core::fmt::Write;
    let mut path = Text::default();
    let _ = write!(path, "/proc/{pid}/fd/{fd}\0");
    let mut want = Text::default();
    let _ = write!(want, "socket:[{inode}]");
    let mut link = [0u8; 64];
    // SAFETY: a nul-terminated path and our own buffer.
    let n = unsafe {
        syscall!(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            path.bytes.as_ptr(),
            link.as_mut_ptr(),
            link.len()
        )
    };
    if n < 0 {
        let e = -n as i32;
        // No /proc, or not ours to read. A process that is there but does not
        // have the descriptor is another matter.
        return e == libc::EACCES || e == libc::EPERM || !has_proc();
    }
    link[..n as usize] == want.bytes[..want.len]
}

fn has_proc() -> bool {
    // SAFETY: a constant path.
    let r = unsafe {
        syscall!(
            libc::SYS_faccessat,
            libc::AT_FDCWD,
            c"/proc/self/fd".as_ptr(),
            libc::F_OK
        )
    };
    r == 0
}

/// A short text without allocation.
struct Text {
    bytes: [u8; 48],
    len: usize,
}

impl Default for Text {
    fn default() -> Text {
        Text {
            bytes: [0; 48],
            len: 0,
        }
    }
}

impl core::fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let n = s.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}
