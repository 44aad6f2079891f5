//! Registrations become ours, and the program's own again.

use super::super::register::{bits, Registration, TAKEN, VALID};
use super::{set_of, token, Set, SIDE, TCP};
use crate::stream::{open, ready};
use crate::streams::Stream;
use core::sync::atomic::Ordering;
use libc::{EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD};
use rdma_engine::abi::arena::RxMode;
use rdma_engine::abi::reason::Reason;

/// The program waits on the set itself, in another set or in poll: what the
/// kernel says of it must be the whole truth, so its streams go back to TCP, and
/// their registrations to the program's own.
pub fn is_nested(ep: i32) {
    let Some(set) = set_of(ep) else { return };
    let first = set.foreign.swap(1, Ordering::AcqRel) == 0;
    if set.taken.load(Ordering::Acquire) == 0 {
        return;
    }
    for s in crate::streams::ours() {
        for fd in s.descriptors() {
            let Some(r) = set.registration(fd).filter(|r| r.is(TAKEN)) else {
                continue;
            };
            if first {
                open::pin(&s, Reason::Epoll);
            }
            let _held = set.hold();
            set.give_back(&s, fd, r);
        }
    }
}

impl Set {
    /// Takes a registration over. The set's lock is held. From here on the
    /// kernel's is the same whatever the program's mask is, and stays when the
    /// program deletes its own: programs that delete and add with every message
    /// pay no system call for it.
    pub(super) fn take(&self, s: &Stream, fd: i32, r: &Registration) -> bool {
        let events = bits::IN | bits::OUT | bits::RDHUP | bits::PRI | bits::ET;
        let side = s.side();
        self.touched.store(1, Ordering::Release);
        let added = self.control(EPOLL_CTL_ADD, side, bits::IN | bits::ET, token(SIDE, fd));
        if added < 0 && added != -(libc::EEXIST as isize) {
            return false;
        }
        if self.control(EPOLL_CTL_MOD, fd, events, token(TCP, fd)) < 0 {
            if added >= 0 {
                self.control(EPOLL_CTL_DEL, side, 0, 0);
            }
            return false;
        }
        r.take(s);
        self.stale.store(1, Ordering::Relaxed);
        self.taken.fetch_add(1, Ordering::AcqRel);
        s.local.epolls.fetch_add(1, Ordering::AcqRel);
        self.heat(fd, r);
        true
    }

    /// Makes the kernel's registration the program's own again, as far as the
    /// stream has left the wire. The set's lock is held.
    pub(super) fn give_back(&self, s: &Stream, fd: i32, r: &Registration) {
        let mask = r.mask.load(Ordering::Relaxed);
        if !r.is(VALID) {
            self.control(EPOLL_CTL_DEL, fd, 0, 0);
        } else if s.slot.rx_mode() == RxMode::Plain && !ready::tx_is_fast(s) {
            let mask = mask & !bits::EXCLUSIVE;
            self.control(EPOLL_CTL_MOD, fd, mask, r.data.load(Ordering::Relaxed));
        } else {
            // What stays ours must not look ready to who waits on the set.
            let events = mask & bits::POLL & !bits::OUT | bits::IN | bits::RDHUP | bits::ET;
            self.control(EPOLL_CTL_MOD, fd, events, token(TCP, fd));
            return;
        }
        self.control(EPOLL_CTL_DEL, s.side(), 0, 0);
        let valid = r.is(VALID);
        self.untake(r);
        if valid {
            r.set(VALID);
        }
    }
}
