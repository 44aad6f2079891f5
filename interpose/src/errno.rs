//! errno: the one place where a negated kernel errno becomes libc's convention.

use core::ffi::c_int;

/// Sets the thread's errno.
#[inline]
pub fn set(e: c_int) {
    // SAFETY: the location is the calling thread's own.
    unsafe { *libc::__errno_location() = e };
}

/// Reads the thread's errno.
#[inline]
pub fn get() -> c_int {
    // SAFETY: the location is the calling thread's own.
    unsafe { *libc::__errno_location() }
}

/// Turns a kernel result (a value, or `-errno`) into libc's.
#[inline]
pub fn result(r: isize) -> isize {
    if r < 0 {
        set(-r as c_int);
        -1
    } else {
        r
    }
}
