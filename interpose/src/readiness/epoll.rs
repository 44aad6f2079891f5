//! epoll(7) with streams whose bytes come by rings.
//!
//! The side channel of a stream that was taken over stands in the set beside
//! the TCP descriptor, both edge-triggered and with tokens in place of the
//! program's data. Only *hot* streams are looked at before the kernel is asked;
//! all others keep their bells armed, so a wait costs as many looks as there are
//! active streams, whatever the number of registered ones.
//!
//! Lock order: a set's lock, then a stream direction's.

use super::register::{bits, Registration, HOT, REGISTRATIONS, TAKEN, VALID};
use crate::fdtable::{self, Entry};
use crate::patience::{self, SPINS};
use crate::stream::wait::{self, Want};
use crate::stream::{open, ready};
use crate::streams::Stream;
use crate::threads::{self, Doing, Kind};
use crate::{descriptors, errno, real, tls};
use core::sync::atomic::{fence, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use libc::{epoll_event, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD};
use rdma_engine::abi::arena::{Phase, RxMode};
use rdma_engine::abi::reason::Reason;
use rdma_engine::lock::Lock;
use rdma_engine::{sys, syscall};

/// Epoll sets that a process can have with accelerated streams in them.
const SETS: usize = 256;

/// One epoll set.
#[repr(C, align(64))]
struct Set {
    lock: Lock,
    /// Descriptors of the set (dup), 0 is free.
    users: AtomicU32,
    /// One of them, for our own epoll_ctl.
    fd: AtomicI32,
    /// An eventfd of ours in the set, plus 1: wakes sleepers from our side.
    local: AtomicI32,
    /// Registrations that are taken over.
    taken: AtomicU32,
    /// Not 0: inherited, nested, or otherwise not to be taken over.
    foreign: AtomicU32,
    registrations: AtomicPtr<Registration>,
    /// The list of hot descriptors: first and last, plus 1.
    first: AtomicU32,
    last: AtomicU32,
    /// Waits since the kernel was asked.
    unasked: AtomicU32,
    /// Waits in a row that ended asleep.
    sleeps: AtomicU32,
    /// Not 0: a registration was changed. What the kernel reports of it at once is
    /// the same edge that we report.
    stale: AtomicU32,
}

static TABLE: [Set; SETS] = [const {
    Set {
        lock: Lock::new(),
        users: AtomicU32::new(0),
        fd: AtomicI32::new(-1),
        local: AtomicI32::new(0),
        taken: AtomicU32::new(0),
        foreign: AtomicU32::new(0),
        registrations: AtomicPtr::new(core::ptr::null_mut()),
        first: AtomicU32::new(0),
        last: AtomicU32::new(0),
        unasked: AtomicU32::new(0),
        sleeps: AtomicU32::new(0),
        stale: AtomicU32::new(0),
    }
}; SETS];

/// High half of our tokens. A program's data that begins with it by chance is
/// kept from confusion by taking that registration's stream out of the game.
const TOKEN: u64 = 0x51de_817e << 32;
const TOKEN_MASK: u64 = 0xffff_ffff << 32;
/// Kinds of token: the TCP descriptor, the side channel, our eventfd.
const TCP: u64 = 0;
const SIDE: u64 = 1 << 24;
const LOCAL: u64 = 2 << 24;
const KIND: u64 = 3 << 24;

fn token(kind: u64, fd: i32) -> u64 {
    TOKEN | kind | fd as u64
}

/// Every so many waits the kernel is asked even if rings have events.
const ASK_EVERY: u32 = 8;
/// Sets in use.
fn sets() -> impl Iterator<Item = &'static Set> {
    TABLE.iter().filter(|s| s.users.load(Ordering::Acquire) > 0)
}

fn set_of(ep: i32) -> Option<&'static Set> {
    match fdtable::get(ep) {
        Entry::Epoll { index } => TABLE.get(index as usize),
        _ => None,
    }
}

/// A new epoll set `fd`.
pub fn created(fd: i32) {
    crate::faults::start();
    for (i, set) in TABLE.iter().enumerate() {
        if set
            .users
            .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            set.reset(fd);
            fdtable::set(fd, Entry::Epoll { index: i as u32 });
            return;
        }
    }
    fdtable::set(fd, Entry::Other);
}

/// Another descriptor names the set now.
pub fn dup(index: u32) {
    if let Some(set) = TABLE.get(index as usize) {
        set.users.fetch_add(1, Ordering::AcqRel);
    }
}

/// A descriptor of the set is about to be closed.
pub fn close(index: u32) {
    let Some(set) = TABLE.get(index as usize) else {
        return;
    };
    if set.users.load(Ordering::Acquire) == 1 {
        descriptors::close(set.local.swap(0, Ordering::AcqRel) - 1);
        let p = set
            .registrations
            .swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !p.is_null() && !threads::others_in_use_of_set(index) {
            let size = REGISTRATIONS * core::mem::size_of::<Registration>();
            // SAFETY: nobody finds it any more, and no thread waits in the set.
            unsafe { sys::munmap(p.cast(), size) };
        }
    }
    set.users.fetch_sub(1, Ordering::AcqRel);
}

/// In a forked child: the sets are shared with the parent, and a change that we
/// made would be one of the parent's too.
pub fn after_fork() {
    for set in sets() {
        set.foreign.store(1, Ordering::Release);
        set.local.store(0, Ordering::Release);
    }
}

/// An eventfd of ours is about to be closed by the program.
pub fn forget_eventfd(fd: i32) {
    for set in sets() {
        let _ = set
            .local
            .compare_exchange(fd + 1, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

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
    /// Do tokens of ours stand in the set?
    fn is_touched(&self) -> bool {
        self.taken.load(Ordering::Acquire) != 0 || self.local.load(Ordering::Acquire) != 0
    }

    fn reset(&self, fd: i32) {
        self.fd.store(fd, Ordering::Relaxed);
        for word in [&self.taken, &self.foreign, &self.first, &self.last] {
            word.store(0, Ordering::Relaxed);
        }
        self.sleeps.store(0, Ordering::Relaxed);
        self.stale.store(0, Ordering::Relaxed);
        self.local.store(0, Ordering::Release);
    }

    fn index(&self) -> u32 {
        let at = self as *const Set as usize - TABLE.as_ptr() as usize;
        (at / core::mem::size_of::<Set>()) as u32
    }

    /// The record of `fd`, if the set has records at all.
    fn registration(&self, fd: i32) -> Option<&'static Registration> {
        let p = self.registrations.load(Ordering::Acquire);
        if p.is_null() || fd < 0 || fd as usize >= REGISTRATIONS {
            return None;
        }
        // SAFETY: in bounds of the mapping; all zero is a valid record.
        Some(unsafe { &*p.add(fd as usize) })
    }

    /// The record of `fd`, made if need be.
    fn make(&self, fd: i32) -> Option<&'static Registration> {
        if self.registrations.load(Ordering::Acquire).is_null() {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let size = REGISTRATIONS * core::mem::size_of::<Registration>();
            // SAFETY: a new anonymous range.
            let p = unsafe { sys::mmap(core::ptr::null_mut(), size, flags, -1) }?;
            let none = core::ptr::null_mut();
            let won = self.registrations.compare_exchange(
                none,
                p.cast(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if won.is_err() {
                // SAFETY: nobody has seen our mapping.
                unsafe { sys::munmap(p, size) };
            }
        }
        self.registration(fd)
    }

    /// Our own epoll_ctl, past the hooks. True on success.
    fn control(&self, op: i32, fd: i32, events: u32, data: u64) -> isize {
        let mut e = epoll_event { events, u64: data };
        let ep = self.fd.load(Ordering::Relaxed);
        // SAFETY: the event lives across the call.
        unsafe { syscall!(libc::SYS_epoll_ctl, ep, op, fd, &mut e as *mut epoll_event) }
    }

    /// Takes a registration over. The set's lock is held. From here on the
    /// kernel's is the same whatever the program's mask is, and stays when the
    /// program deletes its own: programs that delete and add with every message
    /// pay no system call for it.
    fn take(&self, s: &Stream, fd: i32, r: &Registration) -> bool {
        let events = bits::IN | bits::OUT | bits::RDHUP | bits::PRI | bits::ET;
        let side = s.side();
        let added = self.control(EPOLL_CTL_ADD, side, bits::IN | bits::ET, token(SIDE, fd));
        if added < 0 && added != -(libc::EEXIST as isize) {
            return false;
        }
        if self.control(EPOLL_CTL_MOD, fd, events, token(TCP, fd)) < 0 {
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
    fn give_back(&self, s: &Stream, fd: i32, r: &Registration) {
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

    /// Appends to the list of hot descriptors. The set's lock is held.
    fn heat(&self, fd: i32, r: &Registration) {
        if r.is(HOT) {
            return;
        }
        r.set(HOT);
        r.next.store(0, Ordering::Relaxed);
        let me = fd as u32 + 1;
        match self.last.swap(me, Ordering::Relaxed) {
            0 => self.first.store(me, Ordering::Relaxed),
            last => {
                if let Some(l) = self.registration(last as i32 - 1) {
                    l.next.store(me, Ordering::Relaxed);
                }
            }
        }
    }

    /// Reports of hot streams into `out`; with `cool`, before a sleep, the bells are
    /// armed, and streams with nothing to report leave the list.
    fn collect(&self, out: &mut [epoll_event], cool: bool) -> usize {
        let (n, left) = self.collect_locked(out, cool);
        if left {
            // Others that sleep here can have those.
            self.wake();
        }
        n
    }

    /// [`Set::collect`]; also says whether some were not looked at for lack of
    /// room.
    fn collect_locked(&self, out: &mut [epoll_event], cool: bool) -> (usize, bool) {
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
            let report = r.stream().map_or(0, |s| {
                // Armed and cooled under one lock: whoever takes the bell down makes
                // the stream hot again, under the same lock.
                if cool {
                    self.arm(&s, r);
                }
                r.report(&s, this)
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
            } else if report != 0 || !cool {
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
    fn arm(&self, s: &Stream, r: &Registration) {
        let (data, room) = r.bells(s);
        if data {
            wait::arm(s, Want::In);
        }
        if room {
            wait::arm(s, Want::Out);
        }
    }

    /// A thread leaves a wait while others may sleep in it: what comes next for the
    /// hot streams has to wake those, since nobody knows when this one comes back.
    fn hand_over(&self) {
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
    fn sift(&self, events: &mut [epoll_event]) -> usize {
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

    /// The kernel has news of a stream that was taken over.
    fn rung(&self, fd: i32, kind: u64, events: u32) {
        let Some(r) = self.registration(fd).filter(|r| r.is(TAKEN)) else {
            return;
        };
        let Some(s) = r.stream() else { return };
        if kind == SIDE {
            wait::answer_side(&s, events as i16);
        } else if r.tcp_edge(&s, events) {
            r.set(super::register::EDGE);
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

    /// Wakes threads that sleep in the set, if there are any but us.
    fn wake(&self) {
        // Partner: the fence between a sleeper's mark and its last look.
        fence(Ordering::SeqCst);
        if threads::single() || !threads::anyone(&[Kind::SleepEpoll], self.index()) {
            return;
        }
        descriptors::ring_eventfd(self.bell());
    }

    /// The eventfd that wakes sleepers in the set, made when there are several
    /// threads; -1 if there is none.
    fn bell(&self) -> i32 {
        let fd = self.local.load(Ordering::Acquire) - 1;
        if fd >= 0 || threads::single() {
            return fd;
        }
        let fd = descriptors::eventfd();
        if fd < 0 {
            return -1;
        }
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
                set.heat(fd, r);
                holds = true;
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

/// The program closes descriptor `fd`: the kernel forgets its registrations.
pub fn forget_fd(fd: i32) {
    for set in sets() {
        if let Some(r) = set.registration(fd).filter(|r| r.is(VALID | TAKEN)) {
            let _held = set.hold();
            set.untake(r);
        }
    }
}

impl Set {
    /// Forgets a registration. The set's lock is held.
    fn untake(&self, r: &Registration) {
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
    fn adopt(&self, s: &Stream, fd: i32, r: &Registration) {
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
    fn change(&self, op: i32, fd: i32, r: &Registration, mask: u32, data: u64) -> i32 {
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
    fn park(&self, r: &Registration) -> i32 {
        if !r.is(VALID) {
            errno::set(libc::ENOENT);
            return -1;
        }
        let _held = self.hold();
        r.clear(VALID);
        0
    }

    /// The program's DEL of its own.
    fn delete(&self, fd: i32) {
        if let Some(r) = self.registration(fd).filter(|r| r.is(VALID)) {
            let _held = self.hold();
            self.untake(r);
        }
    }

    /// Takes the set's lock; a process with one thread needs none.
    fn hold(&self) -> Held<'_> {
        if threads::single() {
            return Held(None);
        }
        self.lock.acquire(tls::tid());
        Held(Some(&self.lock))
    }
}

/// A set's lock, held (or not needed).
struct Held<'a>(Option<&'a Lock>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.release(tls::tid());
        }
    }
}

/// A kernel wait of the epoll family, as the program called it.
pub trait Sleep {
    /// Waits for up to `timeout_ns` (`None`: for ever). Libc's convention.
    fn sleep(&self, events: &mut [epoll_event], timeout_ns: Option<u64>) -> i32;
}

/// epoll_wait(2) and its kin. `plain` is the program's own call, for a set with
/// nothing of ours in it. Libc's convention.
pub fn wait(
    ep: i32,
    events: &mut [epoll_event],
    timeout_ns: Option<u64>,
    sleeper: &impl Sleep,
    plain: impl FnOnce() -> i32,
) -> i32 {
    let Some(set) = set_of(ep) else {
        return plain();
    };
    if events.is_empty() {
        return plain();
    }
    if set.taken.load(Ordering::Acquire) == 0 {
        let n = {
            let _doing = Doing::begin(Kind::SleepEpoll, set.index());
            plain()
        };
        if n <= 0 || !set.is_touched() {
            return n;
        }
        // Taken over while we slept, or a late ring of our own.
        let kept = set.sift(&mut events[..n as usize]);
        let n = kept + set.collect(&mut events[kept..], false);
        if n > 0 || timeout_ns == Some(0) {
            set.hand_over();
            return n as i32;
        }
    }
    // Usually a ring has something already, and no clock is needed.
    let n = first_look(set, events, sleeper).unwrap_or_else(|| {
        let deadline = timeout_ns.map(|t| sys::now_ns().saturating_add(t));
        merged(set, events, deadline, sleeper)
    });
    // Also after nothing: a doorbell may have been taken that others waited for.
    set.hand_over();
    n
}

/// What the rings have, and now and then the kernel.
fn first_look(set: &Set, events: &mut [epoll_event], sleeper: &impl Sleep) -> Option<i32> {
    let unasked = set.unasked.fetch_add(1, Ordering::Relaxed);
    // With room for few events, one busy stream would starve the rest.
    let every = ASK_EVERY.min(events.len() as u32 + 1);
    let ask = unasked % every == every - 1 || set.stale.swap(0, Ordering::Relaxed) != 0;
    // One merged event for each descriptor: `now` collects as well.
    let n = if ask {
        now(set, events, sleeper)
    } else {
        set.collect(events, false)
    };
    if n == 0 {
        return None;
    }
    set.sleeps.store(0, Ordering::Relaxed);
    Some(n as i32)
}

fn merged(
    set: &'static Set,
    events: &mut [epoll_event],
    deadline: Option<u64>,
    sleeper: &impl Sleep,
) -> i32 {
    loop {
        let mut n;
        let expired = deadline.is_some_and(|d| sys::now_ns() >= d);
        if expired {
            return now(set, events, sleeper) as i32;
        }
        n = spin(set, events, deadline);
        if n > 0 {
            set.sleeps.store(0, Ordering::Relaxed);
            return n as i32;
        }
        // Arm, look once more, sleep.
        n = set.collect(events, true);
        if n > 0 {
            return n as i32;
        }
        set.sleeps.fetch_add(1, Ordering::Relaxed);
        let left = deadline.map(|d| d.saturating_sub(sys::now_ns()));
        let left = wait::nap(left, set.bell());
        let r = {
            let _doing = Doing::begin(Kind::SleepEpoll, set.index());
            // Between our last look and the mark somebody may have missed us.
            // Partner: the fence in `wake`.
            fence(Ordering::SeqCst);
            if threads::single() || set.first.load(Ordering::SeqCst) == 0 {
                sleeper.sleep(events, left)
            } else {
                sleeper.sleep(events, Some(0))
            }
        };
        if r < 0 {
            return r;
        }
        let kept = set.sift(&mut events[..r as usize]);
        n = kept + set.collect(&mut events[kept..], false);
        if n > 0 {
            return n as i32;
        }
        if deadline.is_some_and(|d| sys::now_ns() >= d) {
            return 0;
        }
    }
}

/// Asks the kernel without waiting. Errors are left for the real wait to find.
fn now(set: &Set, events: &mut [epoll_event], sleeper: &impl Sleep) -> usize {
    let saved = errno::get();
    let r = sleeper.sleep(events, Some(0));
    if r < 0 {
        errno::set(saved);
        return 0;
    }
    let kept = set.sift(&mut events[..r as usize]);
    kept + set.collect(&mut events[kept..], false)
}

/// Polls the hot streams: spins very little, then yields for a while. Returns
/// the number of events.
fn spin(set: &Set, events: &mut [epoll_event], deadline: Option<u64>) -> usize {
    if set.first.load(Ordering::Relaxed) == 0 || !patience::pays(set.sleeps.load(Ordering::Relaxed))
    {
        return 0;
    }
    let mut n = 0;
    let mut check = || {
        n = set.collect(events, false);
        n > 0
    };
    if !patience::spin(SPINS, &mut check) {
        patience::yield_until(deadline, &mut check);
    }
    n
}
