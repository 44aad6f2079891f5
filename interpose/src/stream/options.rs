//! Options that only the kernel can honour: a stream that has one stays on TCP.

use core::ffi::c_int;
use rdma_engine::abi::reason::Reason;
use rdma_engine::{sys, syscall};

const TCP_INQ: c_int = 36;
const SO_ATTACH_REUSEPORT_CBPF: c_int = 51;
const SO_ATTACH_REUSEPORT_EBPF: c_int = 52;
const SO_TXTIME: c_int = 61;

/// Why an option pins the stream, if it does.
pub fn pins(level: c_int, name: c_int) -> Option<Reason> {
    match (level, name) {
        (libc::IPPROTO_TCP, libc::TCP_ULP) => Some(Reason::Ulp),
        (libc::SOL_SOCKET, libc::SO_ZEROCOPY) => Some(Reason::ZeroCopy),
        (libc::IPPROTO_TCP, libc::TCP_REPAIR | libc::TCP_MD5SIG | TCP_INQ)
        | (
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER
            | libc::SO_ATTACH_BPF
            | SO_ATTACH_REUSEPORT_CBPF
            | SO_ATTACH_REUSEPORT_EBPF
            | libc::SO_TIMESTAMP
            | libc::SO_TIMESTAMPNS
            | libc::SO_TIMESTAMPING
            | libc::SO_OOBINLINE
            | SO_TXTIME,
        ) => Some(Reason::KernelOption),
        _ => None,
    }
}

/// Is any of them in force? The program may have set it before the connection was
/// there, or on the listening socket.
pub fn in_force(fd: c_int) -> Option<Reason> {
    const NUMBERS: [(c_int, c_int); 7] = [
        (libc::SOL_SOCKET, libc::SO_ZEROCOPY),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMP),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPING),
        (libc::SOL_SOCKET, libc::SO_OOBINLINE),
        (libc::IPPROTO_TCP, libc::TCP_REPAIR),
        (libc::IPPROTO_TCP, TCP_INQ),
    ];
    let number = |level, name| sys::getsockopt(fd, level, name, 0u32).unwrap_or(0);
    let set = NUMBERS
        .into_iter()
        .find(|&(level, name)| number(level, name) != 0);
    if let Some((level, name)) = set {
        return pins(level, name);
    }
    let ulp = sys::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_ULP, [0u8; 16]);
    if ulp.is_ok_and(|name| name[0] != 0) {
        return Some(Reason::Ulp);
    }
    // SAFETY: no memory is passed.
    let fl = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_GETFL) };
    if fl >= 0 && fl as c_int & libc::O_ASYNC != 0 {
        return Some(Reason::Sigio);
    }
    let waits = number(libc::SOL_SOCKET, libc::SO_RCVLOWAT) > 1;
    (waits || has_filter(fd)).then_some(Reason::KernelOption)
}

/// Has the socket a filter? SO_GET_FILTER with no room tells its length; it refuses
/// to show one of SO_ATTACH_BPF.
fn has_filter(fd: c_int) -> bool {
    let mut len: libc::socklen_t = 0;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_GET_FILTER);
    // SAFETY: no room for a value is given; the length lives across the call.
    let r = unsafe { syscall!(libc::SYS_getsockopt, fd, level, name, 0, &mut len as *mut _) };
    r == -(libc::EACCES as isize) || (r == 0 && len > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    fn set<T>(fd: c_int, level: c_int, name: c_int, value: &T) {
        let size = core::mem::size_of::<T>() as libc::socklen_t;
        // SAFETY: a valid value of that size.
        let r = unsafe { libc::setsockopt(fd, level, name, (value as *const T).cast(), size) };
        assert_eq!(r, 0, "option {name}");
    }

    #[test]
    fn options_are_found_wherever_they_were_set() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let new = || TcpStream::connect(address).unwrap();
        let plain = new();
        assert_eq!(in_force(plain.as_raw_fd()), None);
        for (level, name, value, reason) in [
            (
                libc::SOL_SOCKET,
                libc::SO_OOBINLINE,
                1,
                Reason::KernelOption,
            ),
            (
                libc::SOL_SOCKET,
                libc::SO_TIMESTAMPNS,
                1,
                Reason::KernelOption,
            ),
            (libc::SOL_SOCKET, libc::SO_RCVLOWAT, 2, Reason::KernelOption),
            (libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1, Reason::ZeroCopy),
            (libc::IPPROTO_TCP, TCP_INQ, 1, Reason::KernelOption),
        ] {
            let s = new();
            set(s.as_raw_fd(), level, name, &value);
            assert_eq!(in_force(s.as_raw_fd()), Some(reason), "option {name}");
        }
        let filtered = new();
        let mut accept_all = libc::sock_filter {
            code: 6,
            jt: 0,
            jf: 0,
            k: u32::MAX,
        };
        let program = libc::sock_fprog {
            len: 1,
            filter: &mut accept_all,
        };
        set(
            filtered.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            &program,
        );
        assert_eq!(in_force(filtered.as_raw_fd()), Some(Reason::KernelOption));
        // Inherited by what is accepted.
        set(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_OOBINLINE,
            &1,
        );
        let _client = new();
        let accepted: Vec<_> = (0..8).map(|_| listener.accept().unwrap().0).collect();
        let accepted = &accepted[7];
        assert_eq!(in_force(accepted.as_raw_fd()), Some(Reason::KernelOption));
    }
}
