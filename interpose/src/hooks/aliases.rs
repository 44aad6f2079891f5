//! Other names of the same calls: fortified ones (-D_FORTIFY_SOURCE), and
//! glibc's double-underscore aliases.

use super::{data_in, data_out, fork, lifecycle, options, readiness};
use crate::real;
use core::ffi::{c_int, c_void};
use libc::{nfds_t, pid_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

crate::hooks! {
    fn __read_chk(fd: c_int, buf: *mut c_void, len: size_t, size: size_t) -> ssize_t {
        if len > size {
            // The real one ends the program, with its own words.
            return unsafe { real::__read_chk(fd, buf, len, size) };
        }
        unsafe { data_in::read(fd, buf, len) }
    }

    fn __recv_chk(fd: c_int, buf: *mut c_void, len: size_t, size: size_t, flags: c_int) -> ssize_t {
        if len > size {
            return unsafe { real::__recv_chk(fd, buf, len, size, flags) };
        }
        unsafe { data_in::recv(fd, buf, len, flags) }
    }

    fn __recvfrom_chk(fd: c_int, buf: *mut c_void, len: size_t, size: size_t, flags: c_int, addr: *mut sockaddr, alen: *mut socklen_t) -> ssize_t {
        if len > size {
            return unsafe { real::__recvfrom_chk(fd, buf, len, size, flags, addr, alen) };
        }
        unsafe { data_in::recvfrom(fd, buf, len, flags, addr, alen) }
    }

    fn __poll_chk(fds: *mut pollfd, n: nfds_t, timeout: c_int, size: size_t) -> c_int {
        if size / core::mem::size_of::<pollfd>() < n as usize {
            return unsafe { real::__poll_chk(fds, n, timeout, size) };
        }
        unsafe { readiness::poll(fds, n, timeout) }
    }

    fn __ppoll_chk(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t, size: size_t) -> c_int {
        if size / core::mem::size_of::<pollfd>() < n as usize {
            return unsafe { real::__ppoll_chk(fds, n, timeout, mask, size) };
        }
        unsafe { readiness::ppoll(fds, n, timeout, mask) }
    }

    fn __read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t {
        unsafe { data_in::read(fd, buf, len) }
    }

    fn __write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t {
        unsafe { data_out::write(fd, buf, len) }
    }

    fn __send(fd: c_int, buf: *const c_void, len: size_t, flags: c_int) -> ssize_t {
        unsafe { data_out::send(fd, buf, len, flags) }
    }

    fn __close(fd: c_int) -> c_int {
        unsafe { lifecycle::close(fd) }
    }

    fn __connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
        unsafe { lifecycle::connect(fd, addr, len) }
    }

    fn __dup2(from: c_int, to: c_int) -> c_int {
        unsafe { lifecycle::dup2(from, to) }
    }

    fn __fcntl(fd: c_int, cmd: c_int, arg: usize) -> c_int {
        unsafe { options::fcntl(fd, cmd, arg) }
    }

    fn __poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int {
        unsafe { readiness::poll(fds, n, timeout) }
    }

    fn __select(n: c_int, r: *mut libc::fd_set, w: *mut libc::fd_set, e: *mut libc::fd_set, timeout: *mut libc::timeval) -> c_int {
        unsafe { readiness::select(n, r, w, e, timeout) }
    }

    fn __fork() -> pid_t {
        unsafe { fork::fork() }
    }
}
