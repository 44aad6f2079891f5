//! fork and its kin, and exec.

use crate::inherit::{self, Exec};
use crate::{process, real};
use core::ffi::{c_char, c_int, c_void};
use libc::pid_t;

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

/// An exec with environment `env`; streams that the new program inherits go with
/// it.
fn exec(env: *const *const c_char, call: impl FnOnce(&Exec) -> c_int) -> c_int {
    let exec = inherit::before_exec(env);
    let r = call(&exec);
    inherit::failed(exec);
    r
}

fn own_environment() -> *const *const c_char {
    extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: libc's variable; the program keeps other threads from changing it.
    unsafe { environ }
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
        exec(envp, |e| unsafe { real::execve(path, argv, e.env()) })
    }

    fn execv(path: *const c_char, argv: *const *const c_char) -> c_int {
        exec(own_environment(), |e| match e.changed() {
            Some(env) => unsafe { real::execve(path, argv, env) },
            None => unsafe { real::execv(path, argv) },
        })
    }

    fn execvp(file: *const c_char, argv: *const *const c_char) -> c_int {
        exec(own_environment(), |e| match e.changed() {
            Some(env) => unsafe { real::execvpe(file, argv, env) },
            None => unsafe { real::execvp(file, argv) },
        })
    }

    fn execvpe(file: *const c_char, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        exec(envp, |e| unsafe { real::execvpe(file, argv, e.env()) })
    }

    fn fexecve(fd: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        exec(envp, |e| unsafe { real::fexecve(fd, argv, e.env()) })
    }

    fn execveat(dir: c_int, path: *const c_char, argv: *const *const c_char, envp: *const *const c_char, flags: c_int) -> c_int {
        exec(envp, |e| unsafe { real::execveat(dir, path, argv, e.env(), flags) })
    }
}
