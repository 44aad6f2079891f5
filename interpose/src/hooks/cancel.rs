//! pthread_cancel(3): calls that are served in memory have to look out from then on.

use crate::real::maker;
use crate::threads;
use core::ffi::c_int;
use libc::pthread_t;

crate::hooks! {
    fn pthread_cancel(thread: pthread_t) -> c_int {
        threads::cancels();
        maker!(pthread_cancel(thread: pthread_t))
    }
}
