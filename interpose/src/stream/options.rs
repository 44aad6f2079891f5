//! Options that only the kernel can honour: a stream that has one stays on TCP.

use super::option_list::{fate, Fate, SOCKET, TCP};
use core::ffi::{c_int, c_void};
use rdma_engine::abi::reason::Reason;
use rdma_engine::{sys, syscall};

/// TCP_ZEROCOPY_RECEIVE: getsockopt(2) reads with it.
pub const TCP_ZEROCOPY_RECEIVE: c_int = 35;

/// What setsockopt(2) with an option means for the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing, or what the caller knows.
    None,
    /// The stream is pinned before the call.
    Pins(Reason),
    /// An option that we have not heard of: it pins if the kernel takes it.
    Unknown,
}

/// Looks an option up, and its value, of which `len` bytes stand at `value`.
pub fn change(level: c_int, name: c_int, value: *const c_void, len: u32) -> Change {
    match fate(level, name) {
        Some(Fate::Kernel | Fate::Emulated) => Change::None,
        Some(Fate::Always(reason)) => Change::Pins(reason),
        Some(Fate::Unless(idle, reason)) => {
            let number = (len >= 4).then(|| crate::faults::load(value.cast::<c_int>()));
            match number.flatten() {
                Some(n) if idle.contains(&n) => Change::None,
                _ => Change::Pins(reason),
            }
        }
        None => Change::Unknown,
    }
}

/// Is any of them in force? The program may have set it before the connection was
/// there, or on the listening socket.
pub fn in_force(fd: c_int) -> Option<Reason> {
    for entry in SOCKET.iter().chain(TCP) {
        if let Fate::Unless(idle, reason) = entry.fate {
            let number = sys::getsockopt(fd, entry.level, entry.number, 0);
            if number.is_ok_and(|n| !idle.contains(&n)) {
                return Some(reason);
            }
        }
    }
    // SAFETY: no memory is passed.
    let fl = unsafe { syscall!(libc::SYS_fcntl, fd, libc::F_GETFL) };
    if fl >= 0 && fl as c_int & libc::O_ASYNC != 0 {
        return Some(Reason::Sigio);
    }
    has_filter(fd).then_some(Reason::KernelOption)
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
            (
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                -1,
                Reason::KernelOption,
            ),
            (
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                1 << 20,
                Reason::KernelOption,
            ),
            // SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW, SO_TIMESTAMPING_NEW; TCP_INQ
            (libc::SOL_SOCKET, 63, 1, Reason::KernelOption),
            (libc::SOL_SOCKET, 64, 1, Reason::KernelOption),
            (libc::SOL_SOCKET, 65, 16, Reason::KernelOption),
            (libc::IPPROTO_TCP, 36, 1, Reason::KernelOption),
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
        let client = new();
        let accepted = loop {
            let (s, from) = listener.accept().unwrap();
            if from == client.local_addr().unwrap() {
                break s;
            }
        };
        assert_eq!(in_force(accepted.as_raw_fd()), Some(Reason::KernelOption));
    }
}
