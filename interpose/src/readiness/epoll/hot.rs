//! The streams of a set that are looked at in user space: reported, armed, cooled,
//! and handed over; and the waking of who sleeps in the set.

use super::super::register::{bits, Registration, EDGE, HOT, PUT_OFF, TAKEN, VALID};
use super::{sets, token, Set, KIND, LOCAL, SIDE, TCP, TOKEN, TOKEN_MASK};
use crate::descriptors;
use crate::fdtable;
use crate::stream::bell;
use crate::stream::ready;
use crate::stream::wait::{has_come, Want};
use crate::streams::Stream;
use crate::threads::{self, Kind};
use core::sync::atomic::{fence, Ordering};
use libc::{epoll_event, EPOLL_CTL_ADD};
use rdma_engine::sys;

/// Why the hot streams are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// For what there is.
    Now,
    /// Again and again, for what will come.
    Awake,
    /// For the last time before a sleep: the bells are armed, and streams with nothing
    /// to report leave the list.
    Last,
}

impl Set {
    /// Reports of hot streams into `out`.
    pub(super) fn collect(&self, out: &mut [epoll_event], why: Look) -> usize {
        self.collect_behind(0, out, why)
    }

    /// Reports of hot streams, behind the `kept` events that the kernel had for the
    /// program. Returns the number of both.
    pub(super) fn collect_behind(&self, kept: usize, all: &mut [epoll_event], why: Look) -> usize {
        let (told, out) = all.split_at_mut(kept);
        let (n, left) = self.collect_locked(told, out, why);
        if left {
            // Others that sleep here can have those.
            self.wake();
        }
        kept + n
    }

    /// [`Set::collect_behind`]; also says whether some were not looked at for lack of
    /// room.
    pub(super) fn collect_locked(
        &self,
        told: &[epoll_event],
        out: &mut [epoll_event],
        why: Look,
    ) -> (usize, bool) {
        let _held = self.hold();
        let mut n = 0;
        let mut reported = [0u32; 16];
        let mut left = false;
        let mut fd = self.first.swap(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        // Each is looked at once: those that stay hot go to the end.
        while let Some(r) = (fd as i32)
            .checked_sub(1)
            .and_then(|f| self.registration(f))
        {
            let (this, next) = (fd as i32 - 1, r.next.load(Ordering::Relaxed));
            // Then the links lead through another list.
            if self.is_robbed() {
                break;
            }
            r.clear(HOT);
            fd = next;
            if !r.is(VALID) || !r.is(TAKEN) {
                continue;
            }
            if n == out.len() {
                left = true;
                self.heat(this, r);
                continue;
            }
            // Taken over by another thread after the kernel had reported it: nobody
            // expects two events of one descriptor, and the next wait has this one. (Once:
            // the program may give the same data to all.)
            let data = r.data.load(Ordering::Relaxed);
            if told.iter().any(|e| e.u64 == data) && !r.is(PUT_OFF) {
                r.set(PUT_OFF);
                self.heat(this, r);
                continue;
            }
            if r.is(PUT_OFF) {
                r.clear(PUT_OFF);
            }
            let report = r.stream().map_or(0, |s| {
                // Armed and cooled under one lock: whoever takes the bell down makes
                // the stream hot again, under the same lock.
                if why == Look::Last {
                    self.arm(&s, r);
                }
                let report = r.report(&s, this);
                if why == Look::Awake && report & bits::IN != 0 {
                    has_come(&s);
                }
                report
            });
            if report != 0 {
                out[n] = epoll_event {
                    events: report,
                    u64: r.data.load(Ordering::Relaxed),
                };
                n += 1;
            }
            if report != 0 && n <= reported.len() {
                // To the end of the list, behind those that had no turn.
                reported[n - 1] = this as u32 + 1;
            } else if report != 0 || why != Look::Last {
                self.heat(this, r);
            }
        }
        for fd in reported.iter().filter(|&&f| f != 0) {
            let fd = *fd as i32 - 1;
            if let Some(r) = self.registration(fd) {
                self.heat(fd, r);
            }
        }
        (n, left)
    }

    /// Arms the bells of a stream. The caller looks at it afterwards.
    pub(super) fn arm(&self, s: &Stream, r: &Registration) {
        let (data, room) = r.bells(s);
        if data {
            bell::arm(s, Want::In);
        }
        // With room now the bell would ring for nothing. Who fills the ring later makes
        // the stream hot again (`Waiter::look_once`).
        if room && !s.segment().is_some_and(|g| ready::writable(s, g)) {
            bell::arm(s, Want::Out);
        }
    }

    /// A thread leaves a wait while others may sleep in it: what comes next for the
    /// hot streams has to wake those, since nobody knows when this one comes back.
    pub(super) fn hand_over(&self) {
        // Partner: the fence between a sleeper's mark and its look at the list.
        fence(Ordering::SeqCst);
        if threads::single()
            || self.first.load(Ordering::Relaxed) == 0
            || !threads::anyone(&[Kind::SleepEpoll], self.index())
        {
            return;
        }
        let held = self.hold();
        let mut due = false;
        let mut fd = self.first.load(Ordering::Relaxed);
        while let Some(r) = (fd as i32)
            .checked_sub(1)
            .and_then(|f| self.registration(f))
        {
            let this = fd as i32 - 1;
            fd = r.next.load(Ordering::Relaxed);
            let Some(s) = r.stream().filter(|_| r.is(TAKEN)) else {
                continue;
            };
            self.arm(&s, r);
            due |= r.is_due(&s, this);
        }
        drop(held);
        if due {
            self.wake();
        }
    }

    /// Sorts out what the kernel reported: our tokens make streams hot, the
    /// program's events move to the front. Returns how many of those there are.
    pub(super) fn sift(&self, events: &mut [epoll_event]) -> usize {
        let mut kept = 0;
        for i in 0..events.len() {
            let e = events[i];
            if e.u64 & TOKEN_MASK != TOKEN {
                events[kept] = e;
                kept += 1;
                continue;
            }
            let fd = (e.u64 & 0xff_ffff) as i32;
            match e.u64 & KIND {
                LOCAL => descriptors::drain_eventfd(self.local.load(Ordering::Acquire) - 1),
                kind => self.rung(fd, kind, e.events),
            }
        }
        kept
    }

    /// The kernel has news of a stream that was taken over; or of an earlier one of
    /// the same number that somebody else still holds: so the event itself is not
    /// believed.
    pub(super) fn rung(&self, fd: i32, kind: u64, events: u32) {
        let Some(r) = self.registration(fd).filter(|r| r.is(TAKEN)) else {
            return;
        };
        let Some(s) = r.stream() else { return };
        if kind == SIDE {
            // The end is found by draining, unless too many doorbells stand before it.
            let ended = events as i16 & (libc::POLLHUP | libc::POLLERR) != 0;
            let now = if ended { kernel_bits(s.side()) } else { 0 };
            bell::answer_side(&s, now);
        } else if r.tcp_edge(&s, kernel_bits(s.number(fd)) as u32) {
            r.set(EDGE);
        }
        let _held = self.hold();
        // The number may be closed already, while a duplicate keeps the kernel's
        // registration alive.
        for d in s.descriptors().chain([fd]) {
            if let Some(r) = self.registration(d).filter(|r| r.is(TAKEN)) {
                self.heat(d, r);
            }
        }
    }

    /// A report of the kernel's was lost with the thread that had it: takes all of our
    /// registrations for reported.
    #[cold]
    pub(super) fn ask_again(&self) {
        for fd in 0..=fdtable::highest() as i32 {
            if self.registration(fd).is_some_and(|r| r.is(TAKEN)) {
                self.rung(fd, SIDE, libc::EPOLLHUP as u32);
                self.rung(fd, TCP, 0);
            }
        }
        self.wake();
    }

    /// Wakes threads that sleep in the set, if there are any but us.
    pub(super) fn wake(&self) {
        // Partner: the fence between a sleeper's mark and its last look.
        fence(Ordering::SeqCst);
        if threads::single() || !threads::anyone(&[Kind::SleepEpoll], self.index()) {
            return;
        }
        descriptors::ring_eventfd(self.bell());
    }

    /// The eventfd that wakes sleepers in the set, made when there are several
    /// threads; -1 if there is none.
    pub(super) fn bell(&self) -> i32 {
        let fd = self.local.load(Ordering::Acquire) - 1;
        if fd >= 0 || threads::single() {
            return fd;
        }
        // In a set that the parent sleeps in too, or that another set watches, it would
        // wake those who have nothing to look for.
        if self.foreign.load(Ordering::Acquire) != 0 {
            return -1;
        }
        let fd = descriptors::eventfd();
        if fd < 0 {
            return -1;
        }
        self.touched.store(1, Ordering::Release);
        if self.control(EPOLL_CTL_ADD, fd, bits::IN, token(LOCAL, fd)) < 0 {
            descriptors::close(fd);
            return -1;
        }
        let mine = self
            .local
            .compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Acquire);
        if let Err(theirs) = mine {
            descriptors::close(fd);
            return theirs - 1;
        }
        fd
    }
}

/// What the kernel says of a descriptor now.
fn kernel_bits(fd: i32) -> i16 {
    const ASKED: i16 = libc::POLLIN | libc::POLLOUT | libc::POLLPRI | libc::POLLRDHUP;
    let mut p = [libc::pollfd {
        fd,
        events: ASKED,
        revents: 0,
    }];
    sys::ppoll(&mut p, Some(0));
    p[0].revents & !libc::POLLNVAL
}

/// A direction of the stream has changed its wire: whoever sleeps on it in a set
/// has to look again, and to arm.
pub fn watch(s: &Stream) {
    if s.local.epolls.load(Ordering::Acquire) == 0 {
        return;
    }
    for set in sets() {
        let mut holds = false;
        for fd in s.descriptors() {
            if let Some(r) = set.registration(fd).filter(|r| r.is(TAKEN)) {
                let _held = set.hold();
                // The set may have been closed meanwhile.
                if r.is(TAKEN) {
                    set.heat(fd, r);
                    holds = true;
                }
            }
        }
        if holds {
            set.wake();
        }
    }
}

/// Somebody drained a doorbell that sleepers in sets may have been meant by.
pub fn wake_sets(s: &Stream) {
    if s.local.epolls.load(Ordering::Acquire) != 0 {
        watch(s);
    }
}
