//! The kernel's features that the two ends of a stream prove each other with.

use super::Finding;
use crate::diag;
use rdma_engine::{arena, sys};
use std::ffi::CStr;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
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
    let (Ok(inode), Ok(source), Ok(target)) = (inode, near.peer_addr(), near.local_addr()) else {
        return false;
    };
    diag::find(source, target).is_some_and(|s| s.inode == inode.st_ino() as u32)
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
