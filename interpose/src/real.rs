//! The next definitions of the symbols that we hook: libc's, as a rule.
//!
//! They are resolved on first use, each into an atomic of its own: another
//! library's constructor, or an allocator, calls hooks before ours has run.
//! Called as `extern "C-unwind"`: they are cancellation points (pthreads(7)).

use crate::anchors::ANCHORS;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use libc::{
    epoll_event, fd_set, iovec, mmsghdr, msghdr, nfds_t, off_t, pid_t, pollfd, size_t, sockaddr,
    socklen_t, ssize_t, timespec, timeval, FILE,
};

/// Calls the next definition of a function that returns an int; -1 and ENOSYS if
/// there is none. An `unsafe` call of a C function.
macro_rules! maker {
    ($name:ident($($arg:ident: $ty:ty),*)) => {{
        use core::sync::atomic::AtomicPtr;
        static NEXT: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(core::ptr::null_mut());
        let p = $crate::real::cached(&NEXT, concat!(stringify!($name), "\0"));
        if p.is_null() {
            -1
        } else {
            // SAFETY: the symbol of that name has this C signature.
            let f: extern "C-unwind" fn($($ty),*) -> core::ffi::c_int =
                unsafe { core::mem::transmute(p) };
            f($($arg),*)
        }
    }};
}
pub(crate) use maker;

/// The symbol that `slot` caches, resolved on first use; null (and ENOSYS) if
/// nobody defines it.
#[inline]
pub fn cached(slot: &AtomicPtr<c_void>, name: &str) -> *mut c_void {
    let mut next = slot.load(Ordering::Relaxed);
    if next.is_null() {
        if let Ok(name) = core::ffi::CStr::from_bytes_with_nul(name.as_bytes()) {
            next = resolve(name);
        }
        if next.is_null() {
            crate::errno::set(libc::ENOSYS);
        }
        slot.store(next, Ordering::Relaxed);
    }
    next
}

/// Looks a symbol up behind us; null if nobody defines it.
#[cold]
fn resolve(name: &core::ffi::CStr) -> *mut c_void {
    // SAFETY: dlsym(3) with a constant string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

macro_rules! real {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty;)*) => {$(
        real_at! {
            {
                static NEXT: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
                &NEXT
            }
            $(#[$doc])* fn $name($($arg: $ty),*) -> $ret;
        }
    )*};
}

/// One of `real!`; its address is kept where the first block says.
macro_rules! real_at {
    ($slot:block $(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty;) => {
        $(#[$doc])*
        /// The next definition; `ENOSYS` if there is none.
        ///
        /// # Safety
        /// As the C function of that name.
        #[inline]
        #[allow(clippy::too_many_arguments, non_snake_case)]
        pub unsafe fn $name($($arg: $ty),*) -> $ret {
            let next = cached($slot, concat!(stringify!($name), "\0"));
            if next.is_null() {
                // SAFETY: all return types here are integers or pointers, for
                // which all ones (-1) is a value.
                return unsafe { Wide::<$ret> { bits: -1 }.value };
            }
            // SAFETY: the symbol of that name has this C signature.
            unsafe {
                let f: extern "C-unwind" fn($($ty),*) -> $ret = core::mem::transmute(next);
                f($($arg),*)
            }
        }
    };
}

/// A return value in the register that carries it.
#[repr(C)]
union Wide<T: Copy> {
    bits: isize,
    value: T,
}

real! {
    fn socket(domain: c_int, ty: c_int, protocol: c_int) -> c_int;
    fn socketpair(domain: c_int, ty: c_int, protocol: c_int, sv: *mut c_int) -> c_int;
    fn bind(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int;
    fn listen(fd: c_int, backlog: c_int) -> c_int;
    fn accept(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn accept4(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t, flags: c_int) -> c_int;
    fn connect(fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int;
    fn shutdown(fd: c_int, how: c_int) -> c_int;
    fn getsockname(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn getpeername(fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int;
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut socklen_t) -> c_int;
    fn setsockopt(fd: c_int, level: c_int, name: c_int, value: *const c_void, len: socklen_t) -> c_int;
    fn close(fd: c_int) -> c_int;
    fn close_range(first: u32, last: u32, flags: c_int) -> c_int;
    fn dup(fd: c_int) -> c_int;
    fn dup2(from: c_int, to: c_int) -> c_int;
    fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int;
    fn fcntl(fd: c_int, cmd: c_int, arg: usize) -> c_int;
    fn fcntl64(fd: c_int, cmd: c_int, arg: usize) -> c_int;
    fn ioctl(fd: c_int, request: u64, arg: usize) -> c_int;
    fn sockatmark(fd: c_int) -> c_int;
    fn preadv2(fd: c_int, iov: *const iovec, n: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn pwritev2(fd: c_int, iov: *const iovec, n: c_int, offset: off_t, flags: c_int) -> ssize_t;
    fn readv(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t;
    fn recvfrom(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int, addr: *mut sockaddr, alen: *mut socklen_t) -> ssize_t;
    fn recvmsg(fd: c_int, msg: *mut msghdr, flags: c_int) -> ssize_t;
    fn recvmmsg(fd: c_int, vec: *mut mmsghdr, n: u32, flags: c_int, timeout: *mut timespec) -> c_int;
    fn writev(fd: c_int, iov: *const iovec, n: c_int) -> ssize_t;
    fn sendto(fd: c_int, buf: *const c_void, len: size_t, flags: c_int, addr: *const sockaddr, alen: socklen_t) -> ssize_t;
    fn sendmsg(fd: c_int, msg: *const msghdr, flags: c_int) -> ssize_t;
    fn sendmmsg(fd: c_int, vec: *mut mmsghdr, n: u32, flags: c_int) -> c_int;
    fn sendfile(out: c_int, from: c_int, offset: *mut off_t, n: size_t) -> ssize_t;
    fn splice(from: c_int, off_in: *mut i64, to: c_int, off_out: *mut i64, n: size_t, flags: u32) -> ssize_t;
    fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int;
    fn ppoll(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const libc::sigset_t) -> c_int;
    fn select(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *mut timeval) -> c_int;
    fn pselect(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *const timespec, mask: *const libc::sigset_t) -> c_int;
    fn epoll_create(size: c_int) -> c_int;
    fn epoll_create1(flags: c_int) -> c_int;
    fn epoll_ctl(ep: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int;
    fn epoll_wait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int;
    fn epoll_pwait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const libc::sigset_t) -> c_int;
    fn epoll_pwait2(ep: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const libc::sigset_t) -> c_int;
    fn syscall(n: i64, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> i64;
    fn fork() -> pid_t;
    fn _Fork() -> pid_t;
    fn daemon(nochdir: c_int, noclose: c_int) -> c_int;
    fn forkpty(master: *mut c_int, name: *mut c_char, termp: *const c_void, winp: *const c_void) -> c_int;
    fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int;
    fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn posix_spawn_file_actions_adddup2(actions: *mut c_void, from: c_int, to: c_int) -> c_int;
    fn system(command: *const c_char) -> c_int;
    fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE;
    fn fdopen(fd: c_int, mode: *const c_char) -> *mut FILE;
    fn fclose(f: *mut FILE) -> c_int;
    fn freopen(path: *const c_char, mode: *const c_char, f: *mut FILE) -> *mut FILE;
    fn vdprintf(fd: c_int, format: *const c_char, args: *mut c_void) -> c_int;
    fn __vdprintf_chk(fd: c_int, flag: c_int, format: *const c_char, args: *mut c_void) -> c_int;
    fn sigaction(sig: c_int, act: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn execv(path: *const c_char, argv: *const *const c_char) -> c_int;
    fn execvp(file: *const c_char, argv: *const *const c_char) -> c_int;
    fn execvpe(file: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn fexecve(fd: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int;
    fn execveat(dir: c_int, path: *const c_char, argv: *const *const c_char, envp: *const *const c_char, flags: c_int) -> c_int;
    fn __read_chk(fd: c_int, buf: *mut c_void, len: size_t, size: size_t) -> ssize_t;
    fn __recv_chk(fd: c_int, buf: *mut c_void, len: size_t, size: size_t, flags: c_int) -> ssize_t;
    fn __recvfrom_chk(fd: c_int, buf: *mut c_void, len: size_t, size: size_t, flags: c_int, addr: *mut sockaddr, alen: *mut socklen_t) -> ssize_t;
    fn __poll_chk(fds: *mut pollfd, n: nfds_t, timeout: c_int, size: size_t) -> c_int;
    fn __ppoll_chk(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const libc::sigset_t, size: size_t) -> c_int;
}

real_at! { { &ANCHORS.read } fn read(fd: c_int, buf: *mut c_void, len: size_t) -> ssize_t; }
real_at! { { &ANCHORS.write } fn write(fd: c_int, buf: *const c_void, len: size_t) -> ssize_t; }
real_at! { { &ANCHORS.recv } fn recv(fd: c_int, buf: *mut c_void, len: size_t, flags: c_int) -> ssize_t; }
real_at! { { &ANCHORS.send } fn send(fd: c_int, buf: *const c_void, len: size_t, flags: c_int) -> ssize_t; }
