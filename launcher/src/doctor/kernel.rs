//! The kernel's features that the two ends of a stream prove each other with.

use super::Finding;
use rdma_engine::{arena, sys};
use std::ffi::CStr;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;

/// Linux 5.14 is the first with all of them.
const NEEDED: (u32, u32) = (5, 14);
const SO_NETNS_COOKIE: i32 = 71;

/// Looks at all of them.
pub fn findings() -> Vec<Finding> {
    let mut list = vec![release()];
    match pair() {
        Some((near, far)) => {
            let cookie = sys::getsockopt(near.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, 0u64);
            list.push(Finding::of(
                cookie.is_ok(),
                "SO_NETNS_COOKIE tells network namespaces apart",
                "no SO_NETNS_COOKIE (Linux 5.14): all streams stay on TCP",
            ));
            list.push(Finding::of(
                finds_owner(&near, &far),
                "sock_diag names a connection's owner",
                "sock_diag does not answer (tcp_diag, inet_diag modules?): all streams stay on TCP",
            ));
        }
        None => list.push(Finding::bad("no TCP connection over 127.0.0.1 is possible")),
    }
    list.push(Finding::of(
        membarrier(),
        "membarrier is there",
        "no membarrier (seccomp?): all streams stay on TCP",
    ));
    list.push(Finding::of(
        sealed_memory(),
        "sealed shared memory (memfd) is there",
        "no memfd with seals (seccomp? memory limit?): all streams stay on TCP",
    ));
    list.push(Finding::of(
        std::path::Path::new("/proc/self/fd").exists(),
        "/proc is mounted",
        "/proc is not mounted: all streams stay on TCP, and `ps` sees nothing",
    ));
    list
}

fn release() -> Finding {
    // SAFETY: uname(2) fills a plain C struct of C strings.
    let text = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        CStr::from_ptr(name.release.as_ptr())
            .to_string_lossy()
            .into_owned()
    };
    let (major, minor) = NEEDED;
    match version(&text) {
        Some(v) if v >= NEEDED => {
            Finding::good(format!("Linux {text} ({major}.{minor} or later is needed)"))
        }
        _ => Finding::bad(format!("Linux {text}: too old, {major}.{minor} is needed")),
    }
}

/// Major and minor number.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Two ends of a loopback connection.
fn pair() -> Option<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let near = TcpStream::connect(listener.local_addr().ok()?).ok()?;
    let far = listener.accept().ok()?.0;
    Some((near, far))
}

fn membarrier() -> bool {
    const QUERY: usize = 0;
    const PRIVATE_EXPEDITED: isize = 8;
    // SAFETY: membarrier(2)'s query touches no memory.
    let r = unsafe { rdma_engine::syscall!(libc::SYS_membarrier, QUERY, 0, 0) };
    r >= 0 && r & PRIVATE_EXPEDITED != 0
}

fn sealed_memory() -> bool {
    let Ok(fd) = arena::create() else {
        return false;
    };
    let mapped = arena::map(fd).is_some();
    sys::close(fd);
    mapped
}

/// Asks sock_diag for `far` by its exact addresses; is the answer its inode?
fn finds_owner(near: &TcpStream, far: &TcpStream) -> bool {
    use std::os::linux::fs::MetadataExt;
    let inode = std::fs::metadata(format!("/proc/self/fd/{}", far.as_raw_fd()));
    let (Ok(inode), Ok(std::net::SocketAddr::V4(source)), Ok(std::net::SocketAddr::V4(target))) =
        (inode, near.peer_addr(), near.local_addr())
    else {
        return false;
    };
    ask_diag(source, target) == Some(inode.st_ino() as u32)
}

/// The inode of the TCP socket bound to `source` and connected to `target`.
fn ask_diag(source: SocketAddrV4, target: SocketAddrV4) -> Option<u32> {
    const BY_FAMILY: u16 = 20;
    let (kind, protocol) = (libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG);
    // SAFETY: socket(2) with constants; the new descriptor is only ours.
    let socket = unsafe {
        use std::os::fd::FromRawFd;
        let fd = libc::socket(libc::AF_NETLINK, kind, protocol);
        (fd >= 0).then(|| std::os::fd::OwnedFd::from_raw_fd(fd))
    }?;
    // struct nlmsghdr (16 bytes), then struct inet_diag_req_v2 (56 bytes).
    let mut request = Vec::with_capacity(72);
    request.extend(72u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    request.extend([0; 8]);
    request.extend([libc::AF_INET as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(source.port().to_be_bytes());
    request.extend(target.port().to_be_bytes());
    for address in [source, target] {
        request.extend(address.ip().octets());
        request.extend([0; 12]);
    }
    // Any interface, no cookie.
    request.extend(0u32.to_ne_bytes());
    request.extend([0xff; 8]);
    let fd = socket.as_raw_fd();
    if sys::send_nowait(fd, &request) != request.len() as isize {
        return None;
    }
    let mut answer = [0; 512];
    let mut wait = [libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }];
    sys::ppoll(&mut wait, Some(1_000_000_000));
    let n = usize::try_from(sys::recv_nowait(fd, &mut answer)).ok()?;
    let kind = u16::from_ne_bytes([answer[4], answer[5]]);
    // struct inet_diag_msg is 72 bytes; its inode is the last field.
    let inode = answer
        .get(84..88)
        .filter(|_| n >= 88 && kind == BY_FAMILY)?;
    Some(u32::from_ne_bytes(inode.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases() {
        assert_eq!(version("6.1.0-18-amd64"), Some((6, 1)));
        assert_eq!(version("5.14-rc3"), Some((5, 14)));
        assert_eq!(version("strange"), None);
    }

    #[test]
    fn the_owner_of_a_connection_is_found() {
        let (near, far) = pair().unwrap();
        assert!(finds_owner(&near, &far));
        assert!(!finds_owner(&near, &near));
    }
}
