//! Children that run another program at once. libc makes them by calls that no
//! hook sees, and they share nothing with us but the descriptors that they inherit.

use crate::inherit::{self, Spawn};
use crate::real;
use crate::stream::leave::leave_to_others;
use core::ffi::{c_char, c_int, c_void};
use libc::{pid_t, FILE};
use rdma_engine::abi::reason::Reason;

/// posix_spawn(3); `call` is given the place for the child's process id.
fn spawn(pid: *mut pid_t, call: impl FnOnce(*mut pid_t) -> c_int) -> c_int {
    let mut child: pid_t = -1;
    let before = inherit::before_spawn();
    let r = call(&mut child);
    inherit::after_spawn(
        before,
        if r == 0 {
            Spawn::Child(child)
        } else {
            Spawn::Over
        },
    );
    if r == 0 && !pid.is_null() {
        // SAFETY: null or valid, as the man page has it.
        unsafe { *pid = child };
    }
    r
}

crate::hooks! {
    fn posix_spawn(pid: *mut pid_t, path: *const c_char, actions: *const c_void, attributes: *const c_void, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        spawn(pid, |p| unsafe { real::posix_spawn(p, path, actions, attributes, argv, envp) })
    }

    fn posix_spawnp(pid: *mut pid_t, file: *const c_char, actions: *const c_void, attributes: *const c_void, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
        spawn(pid, |p| unsafe { real::posix_spawnp(p, file, actions, attributes, argv, envp) })
    }

    fn posix_spawn_file_actions_adddup2(actions: *mut c_void, from: c_int, to: c_int) -> c_int {
        // Whoever names a stream here means the child to use it.
        if let Some(s) = crate::stream::of(from) {
            leave_to_others(&s, Reason::Passed);
        }
        unsafe { real::posix_spawn_file_actions_adddup2(actions, from, to) }
    }

    fn system(command: *const c_char) -> c_int {
        let before = inherit::before_spawn();
        let r = unsafe { real::system(command) };
        inherit::after_spawn(before, Spawn::Over);
        r
    }

    fn popen(command: *const c_char, mode: *const c_char) -> *mut FILE {
        let before = inherit::before_spawn();
        let r = unsafe { real::popen(command, mode) };
        inherit::after_spawn(before, if r.is_null() { Spawn::Over } else { Spawn::Nameless });
        r
    }
}
