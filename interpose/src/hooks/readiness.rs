//! poll, select and epoll.

use crate::fdtable::{self, Entry};
use crate::readiness::epoll::{self, Sleep};
use crate::readiness::poll as merged;
use crate::readiness::select::{self as by_select, Sets};
use crate::{errno, faults, real};
use core::ffi::c_int;
use libc::{epoll_event, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};

const NS: u64 = 1_000_000_000;

/// A timeout in ms, as poll and epoll_wait have it: negative is «for ever».
fn from_ms(ms: c_int) -> Option<u64> {
    u64::try_from(ms).ok().map(|ms| ms * 1_000_000)
}

/// A timespec in ns; null is «for ever». `Err`: one that the kernel refuses.
fn from_timespec(t: *const timespec) -> Result<Option<u64>, ()> {
    if t.is_null() {
        return Ok(None);
    }
    match faults::ready().then(|| faults::load(t)).flatten() {
        None => Err(()),
        Some(t) if t.tv_sec < 0 || !(0..NS as i64).contains(&t.tv_nsec) => Err(()),
        Some(t) => Ok(Some(
            (t.tv_sec as u64)
                .saturating_mul(NS)
                .saturating_add(t.tv_nsec as u64),
        )),
    }
}

/// The descriptors of a poll; `None` for what the kernel refuses.
fn slice<'a>(fds: *mut pollfd, n: nfds_t) -> Option<&'a mut [pollfd]> {
    let size = (n as usize).checked_mul(core::mem::size_of::<pollfd>())?;
    if n == 0 || n > fdtable::LIMIT as u64 || !faults::ready() {
        return None;
    }
    if !faults::writable(fds as usize, size) {
        return None;
    }
    // SAFETY: the program passed `n` entries.
    Some(unsafe { core::slice::from_raw_parts_mut(fds, n as usize) })
}

/// A sleep of the epoll family, with the program's signal mask.
struct Wait {
    ep: c_int,
    mask: *const sigset_t,
}

impl Sleep for Wait {
    fn sleep(&self, events: &mut [epoll_event], timeout_ns: Option<u64>) -> c_int {
        let (p, n) = (events.as_mut_ptr(), events.len() as c_int);
        // Whole milliseconds go by the old call, which every kernel has.
        let ms = match timeout_ns {
            None => Some(-1),
            Some(t) if t % 1_000_000 == 0 && t / 1_000_000 <= i32::MAX as u64 => {
                Some((t / 1_000_000) as c_int)
            }
            Some(_) => None,
        };
        if let Some(ms) = ms {
            // SAFETY: the slice lives across the call, the mask is the program's.
            return unsafe { real::epoll_pwait(self.ep, p, n, ms, self.mask) };
        }
        let ns = timeout_ns.unwrap_or(0);
        let t = timespec {
            tv_sec: (ns / NS) as i64,
            tv_nsec: (ns % NS) as i64,
        };
        let saved = errno::get();
        // SAFETY: as above.
        let r = unsafe { real::epoll_pwait2(self.ep, p, n, &t, self.mask) };
        if r < 0 && errno::get() == libc::ENOSYS {
            errno::set(saved);
            let ms = ns.div_ceil(1_000_000).min(i32::MAX as u64) as c_int;
            // SAFETY: as above.
            return unsafe { real::epoll_pwait(self.ep, p, n, ms, self.mask) };
        }
        r
    }
}

fn wait(
    ep: c_int,
    events: *mut epoll_event,
    max: c_int,
    timeout_ns: Option<u64>,
    mask: *const sigset_t,
    plain: impl FnOnce() -> c_int,
) -> c_int {
    if !matches!(fdtable::get(ep), Entry::Epoll { .. }) || max <= 0 || !faults::ready() {
        return plain();
    }
    let size = (max as usize).saturating_mul(core::mem::size_of::<epoll_event>());
    if size > 1 << 30 || !faults::writable(events as usize, size) {
        return plain();
    }
    // SAFETY: the program passed room for `max` events.
    let events = unsafe { core::slice::from_raw_parts_mut(events, max as usize) };
    epoll::wait(ep, events, timeout_ns, &Wait { ep, mask }, plain)
}

/// What is left of a select's timeout, for the caller (select(2), Linux).
fn remaining(timeout: *mut timeval, end: Option<u64>) {
    let left = end.map(|e| e.saturating_sub(rdma_engine::sys::now_ns()));
    // SAFETY: null or valid, as the man page has it.
    if let (Some(t), Some(left)) = (unsafe { timeout.as_mut() }, left) {
        t.tv_sec = (left / NS) as i64;
        t.tv_usec = (left % NS / 1000) as i64;
    }
}

crate::hooks! {
    fn poll(fds: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int {
        let plain = || unsafe { real::poll(fds, n, timeout) };
        match slice(fds, n) {
            Some(s) => merged::poll(s, from_ms(timeout), core::ptr::null(), plain),
            None => plain(),
        }
    }

    fn ppoll(fds: *mut pollfd, n: nfds_t, timeout: *const timespec, mask: *const sigset_t) -> c_int {
        let plain = || unsafe { real::ppoll(fds, n, timeout, mask) };
        match (slice(fds, n), from_timespec(timeout)) {
            (Some(s), Ok(t)) => merged::poll(s, t, mask, plain),
            _ => plain(),
        }
    }

    fn select(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *mut timeval) -> c_int {
        let plain = || unsafe { real::select(n, r, w, e, timeout) };
        if !faults::ready() {
            return plain();
        }
        let given = if timeout.is_null() { None } else { Some(faults::load(timeout)) };
        let ns = match given {
            None => None,
            Some(None) => return plain(),
            Some(Some(t)) if t.tv_sec < 0 || t.tv_usec < 0 => return plain(),
            Some(Some(t)) => Some(
                (t.tv_sec as u64)
                    .saturating_mul(NS)
                    .saturating_add((t.tv_usec as u64).saturating_mul(1000)),
            ),
        };
        let sets = Sets { read: r, write: w, except: e };
        let end = ns.map(|t| rdma_engine::sys::now_ns().saturating_add(t));
        let served = core::cell::Cell::new(true);
        let result = by_select::select(n, &sets, ns, core::ptr::null(), || {
            served.set(false);
            plain()
        });
        if served.get() {
            remaining(timeout, end);
        }
        result
    }

    fn pselect(n: c_int, r: *mut fd_set, w: *mut fd_set, e: *mut fd_set, timeout: *const timespec, mask: *const sigset_t) -> c_int {
        let plain = || unsafe { real::pselect(n, r, w, e, timeout, mask) };
        let sets = Sets { read: r, write: w, except: e };
        match from_timespec(timeout) {
            Ok(ns) => by_select::select(n, &sets, ns, mask, plain),
            Err(()) => plain(),
        }
    }

    fn epoll_create(size: c_int) -> c_int {
        let fd = unsafe { real::epoll_create(size) };
        if fd >= 0 {
            epoll::created(fd);
        }
        fd
    }

    fn epoll_create1(flags: c_int) -> c_int {
        let fd = unsafe { real::epoll_create1(flags) };
        if fd >= 0 {
            epoll::created(fd);
        }
        fd
    }

    fn epoll_ctl(ep: c_int, op: c_int, fd: c_int, event: *mut epoll_event) -> c_int {
        if !event.is_null() && faults::ready() && faults::load(event).is_none() {
            return unsafe { real::epoll_ctl(ep, op, fd, event) };
        }
        unsafe { epoll::control(ep, op, fd, event) }
    }

    fn epoll_wait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int) -> c_int {
        wait(ep, events, max, from_ms(timeout), core::ptr::null(), || unsafe {
            real::epoll_wait(ep, events, max, timeout)
        })
    }

    fn epoll_pwait(ep: c_int, events: *mut epoll_event, max: c_int, timeout: c_int, mask: *const sigset_t) -> c_int {
        wait(ep, events, max, from_ms(timeout), mask, || unsafe {
            real::epoll_pwait(ep, events, max, timeout, mask)
        })
    }

    fn epoll_pwait2(ep: c_int, events: *mut epoll_event, max: c_int, timeout: *const timespec, mask: *const sigset_t) -> c_int {
        let plain = || unsafe { real::epoll_pwait2(ep, events, max, timeout, mask) };
        match from_timespec(timeout) {
            Ok(ns) => wait(ep, events, max, ns, mask, plain),
            Err(()) => plain(),
        }
    }
}
