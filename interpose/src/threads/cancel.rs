//! Cancellation where no system call is made.
//!
//! recv, send and poll are cancellation points (pthreads(7)): in libc's functions. A
//! call that is served in memory goes by those, and a thread that never has to wait
//! would never end.

use core::sync::atomic::{AtomicBool, Ordering};

/// Set for ever by the program's first pthread_cancel(3): few have any.
static CANCELS: AtomicBool = AtomicBool::new(false);

/// Ends the calling thread if it has been cancelled. At the beginning of a call only: what
/// a call has received must not be lost.
#[inline(always)]
pub fn cancellation_point() {
    if CANCELS.load(Ordering::Relaxed) {
        test();
    }
}

#[cold]
#[inline(never)]
fn test() {
    // Not the `libc` crate's, which may not unwind.
    extern "C-unwind" {
        fn pthread_testcancel();
    }
    // SAFETY: a cancellation unwinds, as from any libc call here.
    unsafe { pthread_testcancel() }
}

/// A thread is about to be cancelled.
pub fn cancels() {
    CANCELS.store(true, Ordering::Relaxed);
}
