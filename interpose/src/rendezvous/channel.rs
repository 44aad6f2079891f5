//! The side channel's sockets: abstract, SOCK_SEQPACKET, never blocking.

use crate::descriptors;
use crate::stream::open::End;
use rdma_engine::abi::message::{Answer, Hello};
use rdma_engine::abi::reason::Reason;
use rdma_engine::{sys, syscall};

/// An abstract Unix address (unix(7)), which is scoped to the network namespace
/// and vanishes with its socket.
pub struct Name {
    addr: libc::sockaddr_un,
    len: usize,
}

/// The name for a connection: its two ends, sorted, so that both ends arrive at
/// the same.
pub fn name(a: End, b: End) -> Name {
    let (x, y) = if a <= b { (a, b) } else { (b, a) };
    // SAFETY: all zero is a valid address.
    let mut addr: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    addr.sun_family = libc::AF_UNIX as u16;
    let mut n = 1;
    let mut put = |byte: u8| {
        addr.sun_path[n] = byte as libc::c_char;
        n += 1;
    };
    b"sidewire-".iter().for_each(|&c| put(c));
    for (family, port, ip) in [x, y] {
        let six = i32::from(family) == libc::AF_INET6;
        for w in &ip[..if six { 4 } else { 1 }] {
            for b in w.to_ne_bytes() {
                put(hex(b >> 4));
                put(hex(b & 15));
            }
        }
        put(b'.');
        for shift in [12, 8, 4, 0] {
            put(hex((port >> shift) as u8 & 15));
        }
        put(b'-');
    }
    let len = core::mem::offset_of!(libc::sockaddr_un, sun_path) + n;
    Name { addr, len }
}

fn hex(n: u8) -> u8 {
    b"0123456789abcdef"[usize::from(n & 15)]
}

fn socket() -> Result<i32, Reason> {
    let ty = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed.
    let fd = descriptors::adopt(unsafe { syscall!(libc::SYS_socket, libc::AF_UNIX, ty, 0) } as i32);
    if fd < 0 {
        return Err(Reason::Resources);
    }
    Ok(fd)
}

/// Binds and listens. `None`: the other end was first.
pub fn listen(name: &Name) -> Result<Option<i32>, Reason> {
    let fd = socket()?;
    // SAFETY: the address lives across the call.
    let r = unsafe { syscall!(libc::SYS_bind, fd, &name.addr as *const _, name.len) };
    // SAFETY: no memory is passed.
    if r == 0 && unsafe { syscall!(libc::SYS_listen, fd, 1) } == 0 {
        return Ok(Some(fd));
    }
    descriptors::close(fd);
    if r == -(libc::EADDRINUSE as isize) {
        Ok(None)
    } else {
        Err(Reason::Resources)
    }
}

/// Connects to the other end's listener.
pub fn connect(name: &Name) -> Result<i32, Reason> {
    let fd = socket()?;
    // SAFETY: the address lives across the call.
    let r = unsafe { syscall!(libc::SYS_connect, fd, &name.addr as *const _, name.len) };
    if r == 0 {
        return Ok(fd);
    }
    descriptors::close(fd);
    // Refused: it is about to listen, or has just taken its offer back.
    Err(match r {
        r if r == -(libc::ECONNREFUSED as isize) => Reason::Offered,
        _ => Reason::NoPeer,
    })
}

/// Takes the connection that has come, if one has.
pub fn accept(listener: i32) -> Result<Option<i32>, Reason> {
    let fl = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no addresses are asked for.
    let r = unsafe { syscall!(libc::SYS_accept4, listener, 0, 0, fl) };
    if r == -(libc::EAGAIN as isize) || r == -(libc::EINTR as isize) {
        return Ok(None);
    }
    match descriptors::adopt(r as i32) {
        fd if fd >= 0 => Ok(Some(fd)),
        _ => Err(Reason::Resources),
    }
}

/// Room for one descriptor, aligned as cmsg(3) wants it.
#[repr(C, align(8))]
struct Control([u8; 24]);

/// Sends our identity with the segment's descriptor.
pub fn send_hello(side: i32, hello: &Hello, memory: i32) -> bool {
    let bytes = hello.encode();
    let mut control = Control([0; 24]);
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr() as *mut _,
        iov_len: bytes.len(),
    };
    // SAFETY: a header over our own buffers; CMSG_FIRSTHDR points into `control`,
    // which has room for one int.
    let r = unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = &mut part;
        msg.msg_iovlen = 1;
        msg.msg_control = control.0.as_mut_ptr().cast();
        msg.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let c = libc::CMSG_FIRSTHDR(&msg);
        (*c).cmsg_level = libc::SOL_SOCKET;
        (*c).cmsg_type = libc::SCM_RIGHTS;
        (*c).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(c).cast::<i32>().write_unaligned(memory);
        let fl = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        syscall!(libc::SYS_sendmsg, side, &msg as *const libc::msghdr, fl)
    };
    r == bytes.len() as isize
}

/// Receives the other's identity and the segment's descriptor, which is the
/// caller's to close. `None`: not there yet.
pub fn receive_hello(side: i32) -> Result<Option<(Hello, i32)>, Reason> {
    let mut bytes = [0u8; Hello::SIZE + 1];
    let mut control = Control([0; 24]);
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: a header over our own buffers; what the kernel writes there is
    // read only where it says that it has written.
    let (r, memory) = unsafe {
        let mut msg: libc::msghdr = core::mem::zeroed();
        msg.msg_iov = &mut part;
        msg.msg_iovlen = 1;
        msg.msg_control = control.0.as_mut_ptr().cast();
        msg.msg_controllen = control.0.len();
        let fl = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        let r = syscall!(libc::SYS_recvmsg, side, &mut msg as *mut libc::msghdr, fl);
        let mut memory = -1;
        if r >= 0 {
            let c = libc::CMSG_FIRSTHDR(&msg);
            if !c.is_null()
                && (*c).cmsg_level == libc::SOL_SOCKET
                && (*c).cmsg_type == libc::SCM_RIGHTS
                && (*c).cmsg_len >= libc::CMSG_LEN(4) as usize
            {
                memory = libc::CMSG_DATA(c).cast::<i32>().read_unaligned();
            }
        }
        (r, memory)
    };
    match r {
        r if r == -(libc::EAGAIN as isize) => Ok(None),
        r if r <= 0 => Err(Reason::Offered),
        r => match Hello::decode(&bytes[..r as usize]) {
            Ok(hello) if memory >= 0 => Ok(Some((hello, memory))),
            verdict => {
                sys::close(memory);
                Err(verdict.err().unwrap_or(Reason::Broken))
            }
        },
    }
}

/// Sends the verdict.
pub fn send_answer(side: i32, answer: &Answer) -> bool {
    let bytes = answer.encode();
    sys::send_nowait(side, &bytes) == bytes.len() as isize
}

/// Receives the verdict. `None`: not there yet.
pub fn receive_answer(side: i32) -> Result<Option<Answer>, Reason> {
    let mut bytes = [0u8; Answer::SIZE + 1];
    match sys::recv_nowait(side, &mut bytes) {
        r if r == -(libc::EAGAIN as isize) => Ok(None),
        r if r <= 0 => Err(Reason::Offered),
        r => Answer::decode(&bytes[..r as usize]).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_arrive_at_one_name() {
        let a = (libc::AF_INET as u16, 5000, [0x0100_007f, 0, 0, 0]);
        let b = (libc::AF_INET as u16, 40000, [0x0100_007f, 0, 0, 0]);
        let (x, y) = (name(a, b), name(b, a));
        assert_eq!(x.len, y.len);
        assert_eq!(x.addr.sun_path, y.addr.sun_path);
        let six = (libc::AF_INET6 as u16, 65535, [u32::MAX; 4]);
        assert!(name(six, six).len <= core::mem::size_of::<libc::sockaddr_un>());
    }
}
