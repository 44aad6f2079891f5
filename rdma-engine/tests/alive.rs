//! Which processes and threads count as alive.

use rdma_engine::sys::{alive, process_alive};
use std::time::{Duration, Instant};

extern "C" fn lives_on(_: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: sleeps, and then ends the process.
    unsafe {
        libc::sleep(30);
        libc::_exit(1)
    }
}

/// Waits until `it` is so, for five seconds.
fn soon(mut it: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        if it() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

/// A program may leave main by pthread_exit(3): its first thread is a zombie then, and
/// the others go on.
#[test]
fn a_process_outlives_its_first_thread() {
    // SAFETY: the child makes a thread and ends its own; it allocates nothing that a
    // lock of the parent could guard but the thread's stack, which comes from mmap(2).
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe {
            let mut thread = core::mem::zeroed();
            let none = core::ptr::null_mut();
            libc::pthread_create(&mut thread, core::ptr::null(), lives_on, none);
            libc::syscall(libc::SYS_exit, 0);
            libc::_exit(1)
        }
    }
    assert!(child > 0);
    let pid = child as u32;
    assert!(soon(|| !alive(pid)), "its first thread has ended");
    assert!(process_alive(pid), "its second has not");
    // SAFETY: our own child.
    unsafe { libc::kill(child, libc::SIGKILL) };
    assert!(soon(|| !process_alive(pid)), "a zombie, until we wait");
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, core::ptr::null_mut(), 0) };
    assert!(!alive(pid) && !process_alive(pid));
    let me = std::process::id();
    assert!(alive(me) && process_alive(me));
}
