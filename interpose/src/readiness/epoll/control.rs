//! epoll_ctl(2), and the taking over of registrations.

use super::super::register::{bits, Registration, TAKEN, VALID};
use super::{is_nested, set_of, sets, Set, TOKEN, TOKEN_MASK};
use crate::fdtable::{self, Entry};
use crate::stream::open;
use crate::streams::Stream;
use crate::{errno, real};
use core::sync::atomic::Ordering;
use libc::{epoll_event, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD};
use rdma_engine::abi::arena::{flags, Phase};
use rdma_engine::abi::reason::Reason;

/// Before a promise: every registration of the stream has to be ours. False if
/// that can't be (yet).
pub fn take_over(s: &Stream) -> bool {
    for set in sets() {
        for fd in s.descriptors() {
            let Some(r) = set.registration(fd) else {
                continue;
            };
            if !r.is(VALID) || r.is(TAKEN) {
                continue;
            }
            let mask = r.mask.load(Ordering::Relaxed);
            if set.foreign.load(Ordering::Acquire) != 0 || mask & bits::EXCLUSIVE != 0 {
                open::pin(s, Reason::Epoll);
                return false;
            }
            // Whether a one-shot has fired cannot be known; the program's next
            // MOD takes it over.
            if mask & bits::ONESHOT != 0 {
                return false;
            }
            // The program may have changed it meanwhile: then it is our next try.
            let held = set.hold();
            let same = r.is(VALID) && !r.is(TAKEN) && r.mask.load(Ordering::Relaxed) == mask;
            let taken = same && set.take(s, fd, r);
            drop(held);
            if !same {
                return false;
            }
            if !taken {
                s.because(Reason::Resources);
                return false;
            }
        }
    }
    true
}

/// The program closes descriptor `fd`: the kernel forgets its registrations.
pub fn forget_fd(fd: i32) {
    for set in sets() {
        if let Some(r) = set.registration(fd).filter(|r| r.is(VALID | TAKEN)) {
            let _held = set.hold();
            // As long as a child holds the files too, the kernel forgets nothing. A
            // set that we have inherited is the parent's to change.
            let shared = r.stream().filter(|s| s.slot.has(flags::SHARED));
            if let (Some(s), true, 0) = (shared, r.is(TAKEN), set.foreign.load(Ordering::Acquire)) {
                set.control(EPOLL_CTL_DEL, fd, 0, 0);
                set.control(EPOLL_CTL_DEL, s.side(), 0, 0);
            }
            set.untake(r);
        }
    }
}

impl Set {
    /// Forgets a registration. The set's lock is held.
    pub(super) fn untake(&self, r: &Registration) {
        if r.is(TAKEN) {
            self.taken.fetch_sub(1, Ordering::AcqRel);
            if let Some(s) = r.stream() {
                s.local.epolls.fetch_sub(1, Ordering::AcqRel);
            }
        }
        r.clear(VALID | TAKEN);
    }
}

/// epoll_ctl(2). Libc's convention.
///
/// # Safety
/// `event` is null or valid, as the system call has it.
pub unsafe fn control(ep: i32, op: i32, fd: i32, event: *mut epoll_event) -> i32 {
    // SAFETY: the caller's promise.
    let plain = || unsafe { real::epoll_ctl(ep, op, fd, event) };
    let entry = fdtable::get(fd);
    match entry {
        Entry::Epoll { .. } if op == EPOLL_CTL_ADD => {
            is_nested(fd);
            return plain();
        }
        Entry::Other | Entry::Internal | Entry::Epoll { .. } => return plain(),
        _ => {}
    }
    let stream = crate::stream::of_entry(entry);
    let Some(set) = set_of(ep) else {
        // A set that we have not seen being made.
        let r = plain();
        if let (0, EPOLL_CTL_ADD, Some(s)) = (r, op, stream) {
            open::pin(&s, Reason::Epoll);
        }
        return r;
    };
    if op == EPOLL_CTL_DEL {
        if let Some(r) = set.registration(fd).filter(|r| r.is(TAKEN)) {
            if stream.is_some() {
                return set.park(r);
            }
        }
        let r = plain();
        if r == 0 {
            set.delete(fd);
        }
        return r;
    }
    if event.is_null() {
        return plain();
    }
    // SAFETY: not null, and valid by the caller's promise.
    let (mask, data) = unsafe { ((*event).events, (*event).u64) };
    let Some(r) = set.make(fd) else {
        let done = plain();
        if let (0, Some(s)) = (done, stream) {
            open::pin(&s, Reason::Resources);
        }
        return done;
    };
    // Under the lock, so that nobody takes the registration over in between.
    let held = set.hold();
    let ours = r.is(TAKEN) && stream.is_some_and(|s| r.is_of(&s));
    let done = if ours {
        set.change(op, fd, r, mask, data)
    } else {
        // An exclusive registration cannot be changed any more: one of a stream that
        // may be on the wire is made without. «At least one» set is woken.
        let attached = stream.is_some_and(|s| s.phase() == Phase::Attached);
        let done = if op == EPOLL_CTL_ADD && attached && bits::may_be_exclusive(mask) {
            errno::result(set.control(op, fd, mask & !bits::EXCLUSIVE, data)) as i32
        } else {
            plain()
        };
        if done == 0 && op == EPOLL_CTL_ADD {
            set.untake(r);
        }
        if done == 0 {
            r.record(mask, data);
        }
        done
    };
    drop(held);
    if done != 0 {
        return done;
    }
    if ours {
        set.wake();
        return 0;
    }
    if let Some(s) = stream {
        if s.phase() == Phase::Attached {
            set.adopt(&s, fd, r);
        }
    }
    0
}

impl Set {
    /// A registration of an attached stream was just made by the program: it is
    /// taken over at once, or the stream leaves the wire.
    pub(super) fn adopt(&self, s: &Stream, fd: i32, r: &Registration) {
        let fine = self.foreign.load(Ordering::Acquire) == 0
            && r.data.load(Ordering::Relaxed) & TOKEN_MASK != TOKEN;
        let taken = {
            let _held = self.hold();
            fine && self.take(s, fd, r)
        };
        if !taken {
            open::pin(s, Reason::Epoll);
        }
    }

    /// The program's ADD or MOD of a registration that is ours. The kernel's
    /// stays as it is. The set's lock is held.
    pub(super) fn change(&self, op: i32, fd: i32, r: &Registration, mask: u32, data: u64) -> i32 {
        let error = match (op, r.is(VALID)) {
            (EPOLL_CTL_ADD, true) => libc::EEXIST,
            (EPOLL_CTL_MOD, false) => libc::ENOENT,
            (EPOLL_CTL_MOD, _) if r.mask.load(Ordering::Relaxed) & bits::EXCLUSIVE != 0 => {
                libc::EINVAL
            }
            (EPOLL_CTL_ADD, _) if bits::may_be_exclusive(mask) => 0,
            (EPOLL_CTL_ADD | EPOLL_CTL_MOD, _) if mask & bits::EXCLUSIVE != 0 => libc::EINVAL,
            (EPOLL_CTL_ADD | EPOLL_CTL_MOD, _) => 0,
            _ => libc::EINVAL,
        };
        if error != 0 {
            errno::set(error);
            return -1;
        }
        r.record(mask, data);
        self.heat(fd, r);
        0
    }

    /// The program's DEL of a registration that is ours: it is only parked.
    pub(super) fn park(&self, r: &Registration) -> i32 {
        if !r.is(VALID) {
            errno::set(libc::ENOENT);
            return -1;
        }
        let _held = self.hold();
        r.clear(VALID);
        0
    }

    /// The program's DEL of its own.
    pub(super) fn delete(&self, fd: i32) {
        if let Some(r) = self.registration(fd).filter(|r| r.is(VALID)) {
            let _held = self.hold();
            self.untake(r);
        }
    }
}
