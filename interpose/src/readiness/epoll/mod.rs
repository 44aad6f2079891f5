//! epoll(7) with streams whose bytes come by rings.
//!
//! The side channel of a stream that was taken over stands in the set beside
//! the TCP descriptor, both edge-triggered and with tokens in place of the
//! program's data. Only *hot* streams are looked at before the kernel is asked;
//! all others keep their bells armed, so a wait costs as many looks as there are
//! active streams, whatever the number of registered ones.
//!
//! Lock order: a set's lock, then a stream direction's.

mod control;
mod fork;
mod hot;
mod taking;
mod wait;

pub use control::{control, forget_fd, take_over};
pub use fork::after_fork;
pub use hot::{wake_sets, watch};
pub use taking::is_nested;
pub use wait::{wait, Sleep};

use super::register::{Registration, HOT, REGISTRATIONS};
use crate::fdtable::{self, Entry};
use crate::threads;
use crate::{descriptors, tls};
use core::sync::atomic::{compiler_fence, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use libc::epoll_event;
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
    /// Not 0: somebody is changing the list. Who finds it so on entering, or has it
    /// taken away, was preceded by a frame that a handler left or interrupted.
    changing: AtomicU32,
    /// Waits since the kernel was asked.
    unasked: AtomicU32,
    /// Waits in a row that ended asleep.
    sleeps: AtomicU32,
    /// Not 0: a registration was changed. What the kernel reports of it at once is
    /// the same edge that we report.
    stale: AtomicU32,
    /// Not 0: tokens of ours may stand in the kernel's set.
    touched: AtomicU32,
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
        changing: AtomicU32::new(0),
        unasked: AtomicU32::new(0),
        sleeps: AtomicU32::new(0),
        stale: AtomicU32::new(0),
        touched: AtomicU32::new(0),
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
/// Sets that were ever used: no more have to be looked at.
static HIGH: AtomicU32 = AtomicU32::new(0);

/// Sets in use.
fn sets() -> impl Iterator<Item = &'static Set> {
    let high = HIGH.load(Ordering::Acquire) as usize;
    TABLE[..high.min(SETS)]
        .iter()
        .filter(|s| s.users.load(Ordering::Acquire) > 0)
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
            HIGH.fetch_max(i as u32 + 1, Ordering::AcqRel);
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
        let _held = set.hold();
        set.clear();
    }
    let left = set.users.fetch_sub(1, Ordering::AcqRel) - 1;
    // The descriptor that is being closed is no longer in the table.
    let is_set = |fd| fdtable::get(fd) == Entry::Epoll { index };
    if left > 0 && !is_set(set.fd.load(Ordering::Relaxed)) {
        let other = (0..=fdtable::highest() as i32).find(|&fd| is_set(fd));
        set.fd.store(other.unwrap_or(-1), Ordering::Relaxed);
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

impl Set {
    /// May tokens of ours stand in the set (a parent's, in one that we inherited)?
    pub(super) fn is_touched(&self) -> bool {
        self.touched.load(Ordering::Acquire) != 0 || self.foreign.load(Ordering::Acquire) != 0
    }

    /// Forgets all registrations. Their place stays with the set: another thread may
    /// be looking at it.
    fn clear(&self) {
        let p = self.registrations.load(Ordering::Acquire);
        if !p.is_null() {
            let size = REGISTRATIONS * core::mem::size_of::<Registration>();
            // SAFETY: a private anonymous mapping, whose pages are all zero afterwards:
            // a valid table.
            unsafe { syscall!(libc::SYS_madvise, p, size, libc::MADV_DONTNEED) };
        }
    }

    fn reset(&self, fd: i32) {
        self.fd.store(fd, Ordering::Relaxed);
        for word in [&self.taken, &self.foreign, &self.first, &self.last] {
            word.store(0, Ordering::Relaxed);
        }
        self.sleeps.store(0, Ordering::Relaxed);
        self.stale.store(0, Ordering::Relaxed);
        self.touched.store(0, Ordering::Relaxed);
        self.local.store(0, Ordering::Release);
    }

    pub(super) fn index(&self) -> u32 {
        let at = self as *const Set as usize - TABLE.as_ptr() as usize;
        (at / core::mem::size_of::<Set>()) as u32
    }

    /// The record of `fd`, if the set has records at all.
    pub(super) fn registration(&self, fd: i32) -> Option<&'static Registration> {
        let p = self.registrations.load(Ordering::Acquire);
        if p.is_null() || fd < 0 || fd as usize >= REGISTRATIONS {
            return None;
        }
        // SAFETY: in bounds of the mapping; all zero is a valid record.
        Some(unsafe { &*p.add(fd as usize) })
    }

    /// The record of `fd`, made if need be.
    pub(super) fn make(&self, fd: i32) -> Option<&'static Registration> {
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
    pub(super) fn control(&self, op: i32, fd: i32, events: u32, data: u64) -> isize {
        let mut e = epoll_event { events, u64: data };
        let ep = self.fd.load(Ordering::Relaxed);
        // SAFETY: the event lives across the call.
        unsafe { syscall!(libc::SYS_epoll_ctl, ep, op, fd, &mut e as *mut epoll_event) }
    }

    /// Appends to the list of hot descriptors. The set's lock is held.
    pub(super) fn heat(&self, fd: i32, r: &Registration) {
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

    /// Takes the set's lock; a process with one thread needs none.
    pub(super) fn hold(&self) -> Held<'_> {
        self.enter();
        if self.changing.load(Ordering::Relaxed) != 0 {
            self.reheat();
        }
        self.changing.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Held(self)
    }

    fn enter(&self) {
        if !threads::single() {
            self.lock.acquire(tls::tid());
        }
    }

    /// Has a handler changed the list under the frame that holds the set?
    pub(super) fn is_robbed(&self) -> bool {
        self.changing.load(Ordering::Relaxed) == 0
    }
}

/// A set, held.
struct Held<'a>(&'a Set);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let set = self.0;
        compiler_fence(Ordering::SeqCst);
        if set.is_robbed() {
            set.enter();
            set.reheat();
        }
        set.changing.store(0, Ordering::Relaxed);
        if !threads::single() {
            set.lock.release(tls::tid());
        }
    }
}
