//! sigaction and its kin; see [`crate::signals`].

use crate::signals;
use core::ffi::c_int;

crate::hooks! {
    fn sigaction(sig: c_int, act: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
        unsafe { signals::set(sig, act, old) }
    }

    fn signal(sig: c_int, handler: usize) -> usize {
        unsafe { signals::signal(sig, handler, signals::bsd_flags(sig)) }
    }

    fn bsd_signal(sig: c_int, handler: usize) -> usize {
        unsafe { signals::signal(sig, handler, signals::bsd_flags(sig)) }
    }

    fn ssignal(sig: c_int, handler: usize) -> usize {
        unsafe { signals::signal(sig, handler, signals::bsd_flags(sig)) }
    }

    fn sysv_signal(sig: c_int, handler: usize) -> usize {
        unsafe { signals::signal(sig, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
    }

    fn __sysv_signal(sig: c_int, handler: usize) -> usize {
        unsafe { signals::signal(sig, handler, libc::SA_RESETHAND | libc::SA_NODEFER) }
    }

    fn siginterrupt(sig: c_int, on: c_int) -> c_int {
        signals::interrupt(sig, on != 0)
    }
}
