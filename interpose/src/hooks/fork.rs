//! fork and its kin, and exec.

use crate::stream::send::leave_wire;
use crate::{process, real, streams};
use core::ffi::{c_char, c_int, c_void};
use libc::pid_t;
use rdma_engine::abi::arena::Phase;
use rdma_engine::abi::reason::Reason;

fn around(call: impl FnOnce() -> pid_t) -> pid_t {
    if process::in_vfork_child() {
        return call();
    }
    process::before_fork();
    match call() {
        0 => {
            process::after_fork_in_child();
            0
        }
        pid => {
            process::after_fork_in_parent(pid);
            pid
        }
    }
}

/// Before another program takes our place: streams that it inherits go back to
/// TCP, as far as the peer can be brought to it in a bounded time.
fn before_exec() {
    if process::in_vfork_child() {
        return;
    }
    for s in streams::ours() {
        let kept = |fd| {
            // SAFETY: no memory is passed.
            let fl = unsafe { rdma_engine::syscall!(libc::SYS_fcntl, fd, libc::F_GETFD) };
            fl >= 0 && fl as c_int & libc::FD_CLOEXEC == 0
        };
        if s.phase() != Phase::Plain && s.descriptors().any(kept) {
            leave_wire(&s, Reason::SharedEnd);
        }
    }
}

crate::hooks! {
    fn fork() -> pid_t {
        around(|| unsafe { real::fork() })
    }

    fn _Fork() -> pid_t {
        around(|| unsafe { real::_Fork() })
    }

    fn daemon(nochdir: c_int, noclose: c_int) -> c_int {
        // The parent never returns; in the child it is as after a fork, with the
        // unborn holder to be named.
        process::before_fork();
        let r = unsafe { real::daemon(nochdir, noclose) };
        if r == 0 {
            process::after_fork_in_child();
        } else {
            process::after_fork_in_parent(-1);
        }
        r
    }

    fn forkpty(master: *mut c_int, name: *mut c_char, termp: *const c_void, winp: *const c_void) -> pid_t {
        around(|| unsafe { real::forkpty(master, name, termp, winp) })
    }

    fn execve(path: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        before_exec();
        unsafe { real::execve(path, argv, envp) }
    }

    fn execv(path: *const c_char, argv: *const *const c_char) -> c_int {
        before_exec();
        unsafe { real::execv(path, argv) }
    }

    fn execvp(file: *const c_char, argv: *const *const c_char) -> c_int {
        before_exec();
        unsafe { real::execvp(file, argv) }
    }

    fn execvpe(file: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        before_exec();
        unsafe { real::execvpe(file, argv, envp) }
    }

    fn fexecve(fd: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        before_exec();
        unsafe { real::fexecve(fd, argv, envp) }
    }

    fn execveat(dir: c_int, path: *const c_char, argv: *const *const c_char, envp: *const *const c_char, flags: c_int) -> c_int {
        before_exec();
        unsafe { real::execveat(dir, path, argv, envp, flags) }
    }
}
