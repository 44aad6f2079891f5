//! The table of marks: each thread finds one on its first call, and leaves it to
//! another when it has ended.

use super::mark::Mark;
use crate::tls;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use rdma_engine::sys;

/// Marks that a process can have: threads beyond that keep to plain TCP.
const MARKS: usize = 16384;

/// Set for ever when a thread found no mark: then nobody can say any more that
/// no thread is inside a call.
pub(super) static CROWDED: AtomicBool = AtomicBool::new(false);
static TABLE: AtomicPtr<Mark> = AtomicPtr::new(core::ptr::null_mut());
/// Marks that were ever handed out.
static HIGH: AtomicU32 = AtomicU32::new(0);

/// Maps the table; called once at start-up. False if the kernel refuses.
pub fn init() -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let size = MARKS * core::mem::size_of::<Mark>();
    // SAFETY: a new anonymous range; all zero is a valid table.
    let Some(p) = (unsafe { sys::mmap(core::ptr::null_mut(), size, flags, -1) }) else {
        return false;
    };
    let none = core::ptr::null_mut();
    if TABLE
        .compare_exchange(none, p.cast(), Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        // SAFETY: nobody has seen our mapping.
        unsafe { sys::munmap(p, size) };
    }
    true
}

/// The marks that were ever handed out.
pub(super) fn marks() -> &'static [Mark] {
    let p = TABLE.load(Ordering::Acquire);
    if p.is_null() {
        return &[];
    }
    let n = (HIGH.load(Ordering::Acquire) as usize).min(MARKS);
    // SAFETY: the table is never unmapped and has MARKS entries.
    unsafe { core::slice::from_raw_parts(p, n) }
}

/// The mark of threads that found none: nobody looks at it.
pub(super) static NOBODYS: Mark = Mark {
    tid: AtomicU32::new(0),
    wake: AtomicI32::new(0),
    doing: AtomicU64::new(0),
    set: AtomicU64::new(0),
    outer: AtomicU64::new(0),
};

/// The calling thread's mark.
#[inline(always)]
pub fn mine() -> &'static Mark {
    match tls::get().mark.get() {
        Some(m) => m,
        None => claim().unwrap_or(&NOBODYS),
    }
}

#[cold]
#[inline(never)]
fn claim() -> Option<&'static Mark> {
    let table = TABLE.load(Ordering::Acquire);
    if table.is_null() {
        return None;
    }
    let tid = tls::tid();
    let mark = claim_of_the_dead(tid).or_else(|| {
        let i = HIGH.fetch_add(1, Ordering::AcqRel) as usize;
        if i >= MARKS {
            HIGH.store(MARKS as u32, Ordering::Release);
            CROWDED.store(true, Ordering::SeqCst);
            tls::get().mark.set(Some(&NOBODYS));
            return None;
        }
        // SAFETY: below MARKS.
        let m = unsafe { &*table.add(i) };
        m.tid.store(tid, Ordering::Release);
        Some(m)
    })?;
    mark.doing.store(0, Ordering::Release);
    mark.outer.store(0, Ordering::Release);
    tls::get().mark.set(Some(mark));
    Some(mark)
}

/// Takes over the mark of a thread that has ended. Looks at a few only, from a
/// place that moves on, so that many short-lived threads stay cheap.
fn claim_of_the_dead(tid: u32) -> Option<&'static Mark> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let all = marks();
    if all.len() < 64 {
        return None;
    }
    let tries = if all.len() == MARKS { MARKS } else { 8 };
    for _ in 0..tries {
        let m = &all[NEXT.fetch_add(1, Ordering::Relaxed) as usize % all.len()];
        let owner = m.tid.load(Ordering::Acquire);
        if owner != 0 && !sys::alive(owner) {
            let taken = m
                .tid
                .compare_exchange(owner, tid, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                return Some(m);
            }
        }
    }
    None
}

/// In a forked child only the calling thread is left; the marks of the others
/// are void. Our own eventfds are shared with the parent: forget them.
pub fn after_fork() {
    let tid = sys::gettid();
    let mine = tls::get().mark.get();
    tls::get().tid.set(tid);
    for m in marks() {
        m.wake.store(0, Ordering::Relaxed);
        if mine.is_some_and(|x| core::ptr::eq(x, m)) {
            m.tid.store(tid, Ordering::Release);
        } else {
            m.doing.store(0, Ordering::Relaxed);
            m.outer.store(0, Ordering::Relaxed);
            m.tid.store(0, Ordering::Release);
        }
    }
}
