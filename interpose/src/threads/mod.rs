//! What each thread is doing right now.
//!
//! Each thread that touches a stream owns a [`Mark`]: one word that it fills
//! with plain stores at the beginning of a call and sets back at its end. Who
//! wants to know whether any thread is inside a plain kernel receive on a
//! stream, or still uses a mapping, issues membarrier(2) and looks at all marks.
//! Nothing is owed by a thread that leaves by `siglongjmp` or dies: a stale
//! mark only keeps a stream Plain, or a mapping mapped.

mod ask;
mod cancel;
mod doing;
mod mark;
mod table;
mod wake;

pub use ask::{anyone, barrier, in_use, others_in_use};
pub use cancel::{cancellation_point, cancels};
pub use doing::{Doing, DoingMany};
pub use mark::{bit, Kind, Mark};
pub use table::{after_fork, init};
pub use wake::{forget_eventfd, wake_sleepers};

/// Has this process (almost certainly) one thread only? glibc's own word, which
/// pthread_create(3) clears before the second thread runs.
#[inline]
pub fn single() -> bool {
    extern "C" {
        static __libc_single_threaded: core::ffi::c_char;
    }
    // SAFETY: a variable of glibc since 2.32.
    unsafe { core::ptr::read_volatile(&raw const __libc_single_threaded) != 0 }
}
