//! select(2) and pselect(2), by way of the merged poll.

use super::poll::{self, Mask};
use crate::errno;
use crate::threads::{DoingMany, Kind};
use libc::{fd_set, pollfd, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI};

/// Descriptors of a merged select; fd_set itself ends at 1024.
const MOST: usize = 1024;

/// The three sets of a select, of which any may be absent.
pub struct Sets {
    pub read: *mut fd_set,
    pub write: *mut fd_set,
    pub except: *mut fd_set,
}

fn bit(set: *mut fd_set, fd: i32) -> bool {
    if set.is_null() {
        return false;
    }
    // SAFETY: the program passed a set with room for `fd` (below its nfds).
    unsafe { *set.cast::<u64>().add(fd as usize / 64) >> (fd % 64) & 1 != 0 }
}

fn put(set: *mut fd_set, fd: i32, on: bool) {
    if set.is_null() {
        return;
    }
    // SAFETY: as in `bit`.
    unsafe {
        let word = set.cast::<u64>().add(fd as usize / 64);
        let mask = 1u64 << (fd % 64);
        *word = if on { *word | mask } else { *word & !mask };
    }
}

impl Sets {
    /// Are all sets absent, or writable as far as `nfds` goes?
    fn are_sound(&self, nfds: i32) -> bool {
        let size = (nfds as usize).div_ceil(64) * 8;
        [self.read, self.write, self.except]
            .iter()
            .all(|s| s.is_null() || crate::faults::writable(*s as usize, size))
    }

    /// poll(2) bits that `fd` is watched for.
    fn events(&self, fd: i32) -> i16 {
        let mut e = 0;
        if bit(self.read, fd) {
            e |= POLLIN;
        }
        if bit(self.write, fd) {
            e |= POLLOUT;
        }
        if bit(self.except, fd) {
            e |= POLLPRI;
        }
        e
    }

    /// Writes one result, as select(2) maps poll's bits; returns how many of
    /// the sets it is in.
    fn result(&self, p: &pollfd) -> i32 {
        let mut n = 0;
        for (set, asked, mask) in [
            (self.read, POLLIN, POLLIN | POLLHUP | POLLERR),
            (self.write, POLLOUT, POLLOUT | POLLERR),
            (self.except, POLLPRI, POLLPRI),
        ] {
            let on = p.events & asked != 0 && p.revents & mask != 0;
            put(set, p.fd, on);
            n += i32::from(on);
        }
        n
    }
}

/// select(2) and pselect(2); `plain` is the program's own call, for sets with
/// nothing of ours in them. Libc's convention.
pub fn select(
    nfds: i32,
    sets: &Sets,
    timeout_ns: Option<u64>,
    mask: Mask,
    plain: impl FnOnce() -> i32,
) -> i32 {
    if nfds <= 0 || nfds as usize > MOST || !sets.are_sound(nfds) {
        return plain();
    }
    let watched = || (0..nfds).filter(|&fd| sets.events(fd) != 0);
    let mut c = poll::census(watched());
    let mut doing = None;
    if !c.merged && c.streams != 0 {
        doing = Some(DoingMany::begin(Kind::Many, c.streams));
        c = poll::census(watched());
    }
    if !c.merged {
        let r = plain();
        drop(doing);
        return r;
    }
    drop(doing);
    let mut fds = [pollfd {
        fd: -1,
        events: 0,
        revents: 0,
    }; MOST];
    let mut n = 0;
    for fd in watched() {
        fds[n].fd = fd;
        fds[n].events = sets.events(fd);
        n += 1;
    }
    let fds = &mut fds[..n];
    let r = poll::merged_poll(fds, timeout_ns, mask, c.streams);
    if r < 0 {
        return r;
    }
    if fds.iter().any(|p| p.revents & libc::POLLNVAL != 0) {
        errno::set(libc::EBADF);
        return -1;
    }
    fds.iter().map(|p| sets.result(p)).sum()
}
