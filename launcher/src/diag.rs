//! What the kernel says of a TCP connection of this network namespace (sock_diag(7)).

use rdma_engine::sys;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const BY_FAMILY: u16 = 20;
/// INET_DIAG_INFO: an attribute with a struct tcp_info (linux/tcp.h).
const INFO: u8 = 2;
/// struct nlmsghdr, and struct inet_diag_msg behind it.
const HEADER: usize = 16;
const MESSAGE: usize = 72;

/// A socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    pub inode: u32,
    /// Bytes that its program has sent and received; `None` before Linux 4.19.
    pub carried: Option<(u64, u64)>,
}

/// The socket bound to `source` and connected to `target`.
pub fn find(source: SocketAddr, target: SocketAddr) -> Option<Socket> {
    let (kind, protocol) = (libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG);
    // SAFETY: socket(2) with constants; the new descriptor is only ours.
    let socket = unsafe {
        let fd = libc::socket(libc::AF_NETLINK, kind, protocol);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }?;
    let (fd, request) = (socket.as_raw_fd(), request(source, target));
    if sys::send_nowait(fd, &request) != request.len() as isize {
        return None;
    }
    let mut answer = [0; 1024];
    let mut wait = [libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }];
    sys::ppoll(&mut wait, Some(1_000_000_000));
    let n = usize::try_from(sys::recv_nowait(fd, &mut answer)).ok()?;
    parse(answer.get(..n)?)
}

/// struct nlmsghdr (16 bytes), then struct inet_diag_req_v2 (56 bytes).
fn request(source: SocketAddr, target: SocketAddr) -> Vec<u8> {
    let family = match source {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    let mut r = Vec::with_capacity(72);
    r.extend(72u32.to_ne_bytes());
    r.extend(BY_FAMILY.to_ne_bytes());
    r.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    r.extend([0; 8]);
    r.extend([family as u8, libc::IPPROTO_TCP as u8, 1 << (INFO - 1), 0]);
    r.extend(u32::MAX.to_ne_bytes());
    r.extend(source.port().to_be_bytes());
    r.extend(target.port().to_be_bytes());
    for address in [source, target] {
        match address.ip() {
            IpAddr::V4(ip) => r.extend([&ip.octets()[..], &[0; 12]].concat()),
            IpAddr::V6(ip) => r.extend(ip.octets()),
        }
    }
    // Any interface, no cookie.
    r.extend(0u32.to_ne_bytes());
    r.extend([0xff; 8]);
    r
}

fn parse(answer: &[u8]) -> Option<Socket> {
    let word = |bytes: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let half = |bytes: &[u8], at: usize| -> Option<u16> {
        Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
    };
    if half(answer, 4)? != BY_FAMILY {
        return None;
    }
    let message = answer.get(HEADER..HEADER + MESSAGE)?;
    // idiag_rqueue, and idiag_inode, the last field.
    let (unread, inode) = (word(message, 56)?, word(message, 68)?);
    let mut rest = &answer[HEADER + MESSAGE..];
    let mut carried = None;
    while let (Some(len), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let len = usize::from(len);
        let Some(payload) = rest.get(4..len) else {
            break;
        };
        if kind == u16::from(INFO) {
            carried = of_info(payload, unread);
        }
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
    }
    Some(Socket { inode, carried })
}

/// From struct tcp_info: what `unread` bytes in the receive queue leave of the rest.
fn of_info(info: &[u8], unread: u32) -> Option<(u64, u64)> {
    let long = |at: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?))
    };
    let unsent = u32::from_ne_bytes(info.get(144..148)?.try_into().ok()?);
    let (received, sent, again) = (long(128)?, long(200)?, long(208)?);
    Some((
        sent.saturating_sub(again).saturating_add(unsent.into()),
        received.saturating_sub(unread.into()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::linux::fs::MetadataExt;

    #[test]
    fn bytes_and_owner_of_a_connection() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(host).unwrap();
            let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let mut far = listener.accept().unwrap().0;
            near.write_all(&[1; 3000]).unwrap();
            far.read_exact(&mut [0; 1000]).unwrap();
            let of = |s: &TcpStream| find(s.local_addr().unwrap(), s.peer_addr().unwrap()).unwrap();
            let meta = std::fs::metadata(format!("/proc/self/fd/{}", far.as_raw_fd())).unwrap();
            assert_eq!(of(&far).inode, meta.st_ino() as u32);
            assert_eq!(of(&far).carried, Some((0, 1000)));
            assert_eq!(of(&near).carried, Some((3000, 0)));
        }
    }

    #[test]
    fn strange_answers_are_none() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[0; 200]), None);
        let mut answer = [0; 100];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[88..92].copy_from_slice(&[200, 0, 2, 0]);
        assert_eq!(parse(&answer).unwrap().carried, None);
        answer[88..92].fill(0);
        assert_eq!(parse(&answer).unwrap().carried, None);
    }
}
