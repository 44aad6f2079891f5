//! sock_diag(7): one exact question to the kernel about one TCP socket.

use crate::stream::open::End;
use rdma_engine::abi::reason::Reason;
use rdma_engine::{sys, syscall};

/// What the kernel says of a socket.
pub struct Found {
    pub uid: u32,
    pub inode: u32,
    pub cookie: u64,
}

const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;

/// struct inet_diag_sockid (linux/inet_diag.h).
#[repr(C)]
#[derive(Clone, Copy)]
struct SockId {
    sport: u16,
    dport: u16,
    src: [u32; 4],
    dst: [u32; 4],
    interface: u32,
    cookie: [u32; 2],
}

/// A request: struct nlmsghdr and struct inet_diag_req_v2.
#[repr(C)]
struct Request {
    len: u32,
    ty: u16,
    flags: u16,
    seq: u32,
    pid: u32,
    family: u8,
    protocol: u8,
    ext: u8,
    pad: u8,
    states: u32,
    id: SockId,
}

/// The answer: struct nlmsghdr and the beginning of struct inet_diag_msg.
#[repr(C)]
#[derive(Clone, Copy)]
struct Reply {
    len: u32,
    ty: u16,
    flags: u16,
    seq: u32,
    pid: u32,
    family: u8,
    state: u8,
    timer: u8,
    retrans: u8,
    id: SockId,
    expires: u32,
    rqueue: u32,
    wqueue: u32,
    uid: u32,
    inode: u32,
}

const _: () = {
    assert!(core::mem::size_of::<SockId>() == 48);
    assert!(core::mem::size_of::<Request>() == 72);
    assert!(core::mem::size_of::<Reply>() == 88);
};

/// The socket whose own end is `own` and whose remote end is `peer`.
pub fn find(own: End, peer: End) -> Result<Found, Reason> {
    let ty = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = unsafe { syscall!(libc::SYS_socket, libc::AF_NETLINK, ty, NETLINK_SOCK_DIAG) };
    if fd < 0 {
        return Err(Reason::Kernel);
    }
    let fd = fd as i32;
    let found = ask(fd, own, peer);
    sys::close(fd);
    found
}

fn ask(fd: i32, own: End, peer: End) -> Result<Found, Reason> {
    let r = Request {
        len: core::mem::size_of::<Request>() as u32,
        ty: SOCK_DIAG_BY_FAMILY,
        flags: NLM_F_REQUEST,
        seq: 1,
        pid: 0,
        family: own.0 as u8,
        protocol: libc::IPPROTO_TCP as u8,
        ext: 0,
        pad: 0,
        states: u32::MAX,
        id: SockId {
            sport: own.1.to_be(),
            dport: peer.1.to_be(),
            src: own.2,
            dst: peer.2,
            interface: 0,
            // INET_DIAG_NOCOOKIE
            cookie: [u32::MAX; 2],
        },
    };
    let len = core::mem::size_of::<Request>();
    // SAFETY: the request lives across the call.
    let sent = unsafe { syscall!(libc::SYS_sendto, fd, &r as *const Request, len, 0, 0, 0) };
    if sent != len as isize {
        return Err(Reason::Kernel);
    }
    // The kernel answers before sendto returns; nothing to wait for.
    let mut buffer = [0u8; 512];
    let n = sys::recv_nowait(fd, &mut buffer);
    if n < 16 {
        return Err(Reason::Kernel);
    }
    let ty = u16::from_ne_bytes([buffer[4], buffer[5]]);
    if ty == NLMSG_ERROR {
        let e = i32::from_ne_bytes([buffer[16], buffer[17], buffer[18], buffer[19]]);
        // No such socket: the peer is not on this host (or in this namespace).
        return Err(if e == -libc::ENOENT {
            Reason::Remote
        } else {
            Reason::Kernel
        });
    }
    if ty != SOCK_DIAG_BY_FAMILY || (n as usize) < core::mem::size_of::<Reply>() {
        return Err(Reason::Kernel);
    }
    // SAFETY: the buffer is long enough, and any bytes are a valid Reply.
    let reply = unsafe { buffer.as_ptr().cast::<Reply>().read_unaligned() };
    if reply.id.sport != own.1.to_be() || reply.id.dport != peer.1.to_be() {
        return Err(Reason::Identity);
    }
    Ok(Found {
        uid: reply.uid,
        inode: reply.inode,
        cookie: u64::from(reply.id.cookie[0]) | u64::from(reply.id.cookie[1]) << 32,
    })
}
