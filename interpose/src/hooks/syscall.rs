//! syscall(2): some programs make socket calls that way (Node closes by it).
//! What a hook knows by name goes to that hook, the rest to the kernel.
#![allow(non_upper_case_globals)]

use super::{confine, data_in, data_out, fork, lifecycle, options, readiness};
use crate::{faults, real};
use core::ffi::c_int;
use libc::*;
use rdma_engine::sys;

/// The kernel's `sigsetsize`, the only one that it takes with a mask.
const SIGSET_SIZE: usize = 8;

/// Can the hook have this mask? What the kernel refuses is the kernel's.
fn is_sound(mask: usize, size: usize) -> bool {
    faults::ready() && (mask == 0 || size == SIGSET_SIZE)
}

/// A call whose timeout the kernel counts down, where libc's function does not.
fn counted_down(timeout: usize, call: impl FnOnce() -> c_int) -> i64 {
    const NS: u64 = 1_000_000_000;
    let at = timeout as *mut timespec;
    let given = (!at.is_null()).then(|| faults::load(at)).flatten();
    let end = given.map(|t| {
        sys::now_ns()
            .saturating_add((t.tv_sec as u64).saturating_mul(NS))
            .saturating_add(t.tv_nsec as u64)
    });
    let r = call();
    if let (Some(end), true) = (end, r >= 0 || crate::errno::get() == EINTR) {
        let left = end.saturating_sub(sys::now_ns());
        let t = timespec {
            tv_sec: (left / NS) as i64,
            tv_nsec: (left % NS) as i64,
        };
        let size = core::mem::size_of::<timespec>();
        // SAFETY: `t` is ours; to a place that cannot be written nothing is told, as
        // the kernel has it.
        unsafe { faults::copy(at.cast(), (&raw const t).cast(), size) };
    }
    r.into()
}

/// pselect6(2)'s sixth argument: the mask and its size.
fn mask_of(pair: usize) -> Option<*const sigset_t> {
    if !faults::ready() {
        return None;
    }
    if pair == 0 {
        return Some(core::ptr::null());
    }
    let [mask, size] = faults::load(pair as *const [usize; 2])?;
    is_sound(mask, size).then_some(mask as _)
}

crate::hooks! {
    fn syscall(n: i64, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> i64 {
        let fd = a as c_int;
        unsafe {
            match n {
                SYS_read => data_in::read(fd, b as _, c) as i64,
                SYS_readv => data_in::readv(fd, b as _, c as _) as i64,
                SYS_preadv2 => data_in::preadv2(fd, b as _, c as _, d as _, f as _) as i64,
                SYS_recvfrom => data_in::recvfrom(fd, b as _, c, d as _, e as _, f as _) as i64,
                SYS_recvmsg => data_in::recvmsg(fd, b as _, c as _) as i64,
                SYS_recvmmsg => data_in::recvmmsg(fd, b as _, c as _, d as _, e as _).into(),
                SYS_write => data_out::write(fd, b as _, c) as i64,
                SYS_writev => data_out::writev(fd, b as _, c as _) as i64,
                SYS_pwritev2 => data_out::pwritev2(fd, b as _, c as _, d as _, f as _) as i64,
                SYS_sendto => data_out::sendto(fd, b as _, c, d as _, e as _, f as _) as i64,
                SYS_sendmsg => data_out::sendmsg(fd, b as _, c as _) as i64,
                SYS_sendmmsg => data_out::sendmmsg(fd, b as _, c as _, d as _).into(),
                SYS_sendfile => data_out::sendfile(fd, b as _, c as _, d) as i64,
                SYS_splice => data_out::splice(fd, b as _, c as _, d as _, e, f as _) as i64,
                SYS_socket => lifecycle::socket(fd, b as _, c as _).into(),
                SYS_socketpair => lifecycle::socketpair(fd, b as _, c as _, d as _).into(),
                SYS_accept => lifecycle::accept(fd, b as _, c as _).into(),
                SYS_accept4 => lifecycle::accept4(fd, b as _, c as _, d as _).into(),
                SYS_connect => lifecycle::connect(fd, b as _, c as _).into(),
                SYS_shutdown => lifecycle::shutdown(fd, b as _).into(),
                SYS_close => lifecycle::close(fd).into(),
                SYS_close_range => lifecycle::close_range(a as _, b as _, c as _).into(),
                SYS_dup => lifecycle::dup(fd).into(),
                SYS_dup2 => lifecycle::dup2(fd, b as _).into(),
                SYS_dup3 => lifecycle::dup3(fd, b as _, c as _).into(),
                SYS_fcntl => options::fcntl(fd, b as _, c).into(),
                SYS_ioctl => options::ioctl(fd, b as _, c).into(),
                SYS_setsockopt => options::setsockopt(fd, b as _, c as _, d as _, e as _).into(),
                SYS_poll => readiness::poll(a as _, b as _, c as _).into(),
                SYS_ppoll if is_sound(d, e) => {
                    counted_down(c, || readiness::ppoll(a as _, b as _, c as _, d as _))
                }
                SYS_select => readiness::select(fd, b as _, c as _, d as _, e as _).into(),
                SYS_pselect6 => match mask_of(f) {
                    Some(mask) => counted_down(e, || {
                        readiness::pselect(fd, b as _, c as _, d as _, e as _, mask)
                    }),
                    None => real::syscall(n, a, b, c, d, e, f),
                },
                SYS_epoll_create => readiness::epoll_create(fd).into(),
                SYS_epoll_create1 => readiness::epoll_create1(fd).into(),
                SYS_epoll_ctl => readiness::epoll_ctl(fd, b as _, c as _, d as _).into(),
                SYS_epoll_wait => readiness::epoll_wait(fd, b as _, c as _, d as _).into(),
                SYS_epoll_pwait if is_sound(e, f) => {
                    readiness::epoll_pwait(fd, b as _, c as _, d as _, e as _).into()
                }
                SYS_epoll_pwait2 if is_sound(e, f) => {
                    readiness::epoll_pwait2(fd, b as _, c as _, d as _, e as _).into()
                }
                // As little as the kernel's own: no handlers of pthread_atfork(3).
                SYS_fork => fork::_Fork().into(),
                SYS_execve => fork::execve(a as _, b as _, c as _).into(),
                SYS_execveat => fork::execveat(fd, b as _, c as _, d as _, e as _).into(),
                SYS_prctl => confine::prctl(fd, b, c, d, e).into(),
                SYS_seccomp => {
                    confine::seccomp(a, c);
                    real::syscall(n, a, b, c, d, e, f)
                }
                SYS_io_uring_setup => {
                    crate::rendezvous::io_uring();
                    real::syscall(n, a, b, c, d, e, f)
                }
                _ => real::syscall(n, a, b, c, d, e, f),
            }
        }
    }
}
