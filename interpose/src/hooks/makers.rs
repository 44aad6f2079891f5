//! Calls that make descriptors which are none of our business, only to clear
//! what may be stale under their numbers (a close that no hook saw).
//!
//! Variadic functions are defined with their longest argument list: on x86-64
//! the registers of the absent ones are read, and passed on.

use crate::fdtable::{self, Entry};
use core::ffi::{c_char, c_int, c_void};
use libc::pid_t;

/// Looks the next definition up, once for each name, and calls it.
macro_rules! makers {
    ($(fn $name:ident($($arg:ident: $ty:ty),*);)*) => {
        mod next {
            use super::*;
            $(
                #[inline]
                pub unsafe fn $name($($arg: $ty),*) -> c_int {
                    crate::real::maker!($name($($arg: $ty),*))
                }
            )*
        }
        crate::hooks! {$(
            fn $name($($arg: $ty),*) -> c_int {
                let fd = unsafe { next::$name($($arg),*) };
                if fd >= 0 {
                    fdtable::opened(fd, Entry::Other);
                }
                fd
            }
        )*}
    };
}

makers! {
    fn open(path: *const c_char, flags: c_int, mode: usize);
    fn open64(path: *const c_char, flags: c_int, mode: usize);
    fn openat(dir: c_int, path: *const c_char, flags: c_int, mode: usize);
    fn openat64(dir: c_int, path: *const c_char, flags: c_int, mode: usize);
    fn __open_2(path: *const c_char, flags: c_int);
    fn __open64_2(path: *const c_char, flags: c_int);
    fn __openat_2(dir: c_int, path: *const c_char, flags: c_int);
    fn __openat64_2(dir: c_int, path: *const c_char, flags: c_int);
    fn creat(path: *const c_char, mode: u32);
    fn creat64(path: *const c_char, mode: u32);
    fn eventfd(n: u32, flags: c_int);
    fn signalfd(fd: c_int, mask: *const c_void, flags: c_int);
    fn timerfd_create(clock: c_int, flags: c_int);
    fn memfd_create(name: *const c_char, flags: u32);
    fn inotify_init();
    fn inotify_init1(flags: c_int);
    fn pidfd_open(pid: pid_t, flags: u32);
    fn posix_openpt(flags: c_int);
    fn shm_open(name: *const c_char, flags: c_int, mode: u32);
    fn mkstemp(template: *mut c_char);
    fn mkstemp64(template: *mut c_char);
    fn mkostemp(template: *mut c_char, flags: c_int);
    fn mkostemp64(template: *mut c_char, flags: c_int);
}

/// Both ends of a new pipe.
fn piped(r: c_int, fds: *const c_int) -> c_int {
    if r == 0 {
        // SAFETY: the kernel has just written both.
        unsafe {
            fdtable::opened(*fds, Entry::Other);
            fdtable::opened(*fds.add(1), Entry::Other);
        }
    }
    r
}

crate::hooks! {
    fn pipe(fds: *mut c_int) -> c_int {
        piped(crate::real::maker!(pipe(fds: *mut c_int)), fds)
    }

    fn pipe2(fds: *mut c_int, flags: c_int) -> c_int {
        piped(crate::real::maker!(pipe2(fds: *mut c_int, flags: c_int)), fds)
    }
}
