//! seccomp(2) filters. What a filter kills for is the program's secret, and we
//! make system calls that the program does not: from its first filter on the
//! process keeps to the calls that the program makes itself.

use crate::{process, real};
use core::ffi::c_int;

const FILTER: usize = libc::SECCOMP_MODE_FILTER as usize;
const STRICT: usize = libc::SECCOMP_MODE_STRICT as usize;

crate::hooks! {
    fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
        // A filter that is no filter only asks whether the kernel has them.
        if option == libc::PR_SET_SECCOMP && (a == STRICT || (a == FILTER && b != 0)) {
            process::confine();
        }
        unsafe { real::prctl(option, a, b, c, d) }
    }
}

/// seccomp(2) by way of syscall(2): `operation` and its argument.
pub fn seccomp(operation: usize, argument: usize) {
    const SET_STRICT: usize = libc::SECCOMP_SET_MODE_STRICT as usize;
    const SET_FILTER: usize = libc::SECCOMP_SET_MODE_FILTER as usize;
    if operation == SET_STRICT || (operation == SET_FILTER && argument != 0) {
        process::confine();
    }
}
