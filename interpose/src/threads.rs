//! What each thread is doing right now.
//!
//! Each thread that touches a stream owns a [`Mark`]: one word that it fills
//! with plain stores at the beginning of a call and sets back at its end. Who
//! wants to know whether any thread is inside a plain kernel receive on a
//! stream, or still uses a mapping, issues membarrier(2) and looks at all marks.
//! Nothing is owed by a thread that leaves by `siglongjmp` or dies: a stale
//! mark only keeps a stream Plain, or a mapping mapped.

use crate::tls;
use core::sync::atomic::{
    compiler_fence, AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering,
};
use rdma_engine::{sys, syscall};

/// One thread's mark.
#[repr(C, align(64))]
pub struct Mark {
    /// The owner's thread id; 0 is a free mark.
    tid: AtomicU32,
    /// An eventfd plus 1, which wakes the thread from a merged sleep.
    wake: AtomicI32,
    /// [`Doing`]'s word.
    doing: AtomicU64,
    /// With [`Kind::Many`] and [`Kind::SleepMany`]: which streams, as one bit
    /// for each index modulo 64.
    set: AtomicU64,
    /// Streams of the calls that a signal handler has interrupted, and that go on
    /// after it: one bit for each index modulo 64.
    outer: AtomicU64,
}

impl Mark {
    /// A handler's call begins: the stream of the call that it interrupted,
    /// `before`, stays marked. Returns what [`Mark::outer`] was.
    #[inline(always)]
    fn hide(&self, before: u64) -> u64 {
        if before == 0 {
            return 0;
        }
        self.hide_interrupted(before)
    }

    #[cold]
    #[inline(never)]
    fn hide_interrupted(&self, before: u64) -> u64 {
        let outer = self.outer.load(Ordering::Relaxed);
        let kind = before >> 32;
        let bits = if kind == Kind::SleepEpoll as u64 {
            0
        } else if kind == Kind::Many as u64 || kind == Kind::SleepMany as u64 {
            self.set.load(Ordering::Relaxed)
        } else {
            bit(before as u32)
        };
        self.outer.store(outer | bits, Ordering::Relaxed);
        outer
    }

    /// Has a handler of this thread interrupted a call on stream `index`?
    fn has_hidden(&self, index: u32) -> bool {
        self.outer.load(Ordering::Acquire) & bit(index) != 0
    }

    /// Does the owner still run? What a dead thread did last is of no account.
    fn is_alive(&self) -> bool {
        let tid = self.tid.load(Ordering::Acquire);
        tid != 0 && sys::alive(tid)
    }
}

/// What a thread is doing; 0 is: nothing with streams.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// Using a stream's state or mapping.
    Use = 1,
    /// Inside a kernel receive into the program's buffer.
    PlainRecv = 2,
    /// Inside a kernel send from the program's buffer.
    PlainSend = 3,
    /// Asleep on the stream and its side channel.
    Sleep = 4,
    /// Inside a plain poll or select over several streams.
    Many = 5,
    /// Inside a merged poll or select over several streams.
    SleepMany = 6,
    /// Asleep in an epoll set; the index is the set's.
    SleepEpoll = 7,
}

fn word(kind: Kind, index: u32) -> u64 {
    (kind as u64) << 32 | u64::from(index)
}

/// Marks that a process can have: threads beyond that keep to plain TCP.
const MARKS: usize = 16384;

/// Set for ever when a thread found no mark: then nobody can say any more that
/// no thread is inside a call.
static CROWDED: AtomicBool = AtomicBool::new(false);
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

fn marks() -> &'static [Mark] {
    let p = TABLE.load(Ordering::Acquire);
    if p.is_null() {
        return &[];
    }
    let n = (HIGH.load(Ordering::Acquire) as usize).min(MARKS);
    // SAFETY: the table is never unmapped and has MARKS entries.
    unsafe { core::slice::from_raw_parts(p, n) }
}

/// The mark of threads that found none: nobody looks at it.
static NOBODYS: Mark = Mark {
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

/// Sets the calling thread's mark, and sets it back when dropped. A signal
/// handler's calls nest: what it finds is restored.
pub struct Doing {
    mark: &'static Mark,
    before: u64,
    /// [`Mark::outer`] before this call.
    outer: u64,
}

impl Doing {
    /// Marks the thread.
    #[inline(always)]
    pub fn begin(kind: Kind, index: u32) -> Doing {
        let mark = mine();
        let before = mark.doing.load(Ordering::Relaxed);
        let outer = mark.hide(before);
        mark.doing.store(word(kind, index), Ordering::Relaxed);
        // The store comes before what follows in program order; membarrier on
        // the looking side does the rest.
        compiler_fence(Ordering::SeqCst);
        Doing {
            mark,
            before,
            outer,
        }
    }

    /// As [`Doing::begin`], if the thread has a mark and is doing nothing yet: the
    /// usual case, in few instructions. (A descriptor is known: start-up is over.)
    #[inline(always)]
    pub fn begin_first(kind: Kind, index: u32) -> Option<Doing> {
        let mark = tls::mark()?;
        if mark.doing.load(Ordering::Relaxed) != 0 {
            return None;
        }
        mark.doing.store(word(kind, index), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(Doing {
            mark,
            before: 0,
            outer: 0,
        })
    }

    /// Changes what the thread is doing with the same stream.
    #[inline]
    pub fn now(&self, kind: Kind, index: u32) {
        self.mark.doing.store(word(kind, index), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// The eventfd that wakes this thread from a merged sleep, made on first
    /// use. A process with a single thread needs none; -1 if there is none.
    pub fn wake_fd(&self) -> i32 {
        if single() || core::ptr::eq(self.mark, &NOBODYS) {
            return -1;
        }
        let fd = self.mark.wake.load(Ordering::Relaxed) - 1;
        if fd >= 0 {
            return fd;
        }
        let fd = crate::descriptors::eventfd();
        self.mark.wake.store(fd + 1, Ordering::Release);
        fd
    }
}

impl Drop for Doing {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.mark.doing.store(self.before, Ordering::Release);
        if self.before != 0 {
            self.mark.outer.store(self.outer, Ordering::Release);
        }
    }
}

/// Marks the thread as inside a poll or select over several streams.
pub struct DoingMany {
    /// What stood in the mark's set, for a poll in a handler that has interrupted one.
    before_set: u64,
    doing: Doing,
}

impl DoingMany {
    /// Marks the thread as inside a poll or select over the streams of `set`.
    pub fn begin(kind: Kind, set: u64) -> DoingMany {
        let mark = mine();
        let before = mark.doing.load(Ordering::Relaxed);
        // The interrupted frame's streams stay marked.
        let many = [Kind::Many, Kind::SleepMany].map(|k| word(k, 0));
        let before_set = mark.set.load(Ordering::Relaxed);
        let nested = if many.contains(&before) {
            before_set
        } else {
            0
        };
        let outer = mark.hide(before);
        mark.set.store(set | nested, Ordering::Relaxed);
        mark.doing.store(word(kind, 0), Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        DoingMany {
            before_set,
            doing: Doing {
                mark,
                before,
                outer,
            },
        }
    }

    /// As [`Doing::wake_fd`].
    pub fn wake_fd(&self) -> i32 {
        self.doing.wake_fd()
    }
}

impl Drop for DoingMany {
    fn drop(&mut self) {
        // What the thread does is set back behind it.
        let mark = self.doing.mark;
        mark.set.store(self.before_set, Ordering::Release);
    }
}

/// Has this process (almost certainly) one thread only? glibc's own word, which
/// pthread_create(3) clears before the second thread runs.
#[inline]
pub fn single() -> bool {
    extern "C" {
        static __libc_single_threaded: core::ffi::c_char;
    }
    // SAFETY: a variable of glibc since 2.32.
    unsafe { core::ptr::read_volatile(&raw const __libc_single_threaded) != 0 }
}

/// Makes the plain stores of all running threads of this process visible to us,
/// and ours to them (membarrier(2)). False if the kernel can't.
pub fn barrier() -> bool {
    const PRIVATE_EXPEDITED: usize = 8;
    const REGISTER_PRIVATE_EXPEDITED: usize = 16;
    if single() {
        return true;
    }
    // SAFETY: no memory is passed.
    unsafe {
        syscall!(libc::SYS_membarrier, PRIVATE_EXPEDITED) == 0
            || (syscall!(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED) == 0
                && syscall!(libc::SYS_membarrier, PRIVATE_EXPEDITED) == 0)
    }
}

/// Is another thread doing one of `kinds` with stream `index`? Meaningful after
/// [`barrier`].
pub fn anyone(kinds: &[Kind], index: u32) -> bool {
    let me = mine();
    if CROWDED.load(Ordering::SeqCst) {
        return true;
    }
    marks().iter().any(|m| {
        if m.has_hidden(index) && m.is_alive() {
            return true;
        }
        if core::ptr::eq(m, me) {
            return false;
        }
        let doing = m.doing.load(Ordering::Acquire);
        let hit = kinds.iter().any(|&k| match k {
            Kind::Many | Kind::SleepMany => {
                doing == word(k, 0) && m.set.load(Ordering::Acquire) & bit(index) != 0
            }
            _ => doing == word(k, index),
        });
        hit && m.is_alive()
    })
}

/// Is any thread, this one too, doing anything at all with stream `index`?
pub fn in_use(index: u32) -> bool {
    if CROWDED.load(Ordering::SeqCst) {
        return true;
    }
    marks().iter().any(|m| {
        let doing = m.doing.load(Ordering::Acquire);
        let kind = doing >> 32;
        let hit = if kind == Kind::Many as u64 || kind == Kind::SleepMany as u64 {
            m.set.load(Ordering::Acquire) & bit(index) != 0
        } else {
            kind != 0 && kind != Kind::SleepEpoll as u64 && doing as u32 == index
        } || m.has_hidden(index);
        hit && m.is_alive()
    })
}

/// As [`in_use`], but for the calling thread.
pub fn others_in_use(index: u32) -> bool {
    const ALL: [Kind; 6] = [
        Kind::Use,
        Kind::PlainRecv,
        Kind::PlainSend,
        Kind::Sleep,
        Kind::Many,
        Kind::SleepMany,
    ];
    anyone(&ALL, index)
}

/// The bit of a stream in a mark's set.
pub fn bit(index: u32) -> u64 {
    1 << (index % 64)
}

/// Wakes the other threads of this process that sleep on stream `index`.
pub fn wake_sleepers(index: u32) {
    if single() {
        return;
    }
    let me = mine();
    for m in marks() {
        let doing = m.doing.load(Ordering::SeqCst);
        let sleeps = doing == word(Kind::Sleep, index)
            || (doing == word(Kind::SleepMany, 0)
                && m.set.load(Ordering::Acquire) & bit(index) != 0);
        if sleeps && !core::ptr::eq(m, me) {
            crate::descriptors::ring_eventfd(m.wake.load(Ordering::Acquire) - 1);
        }
    }
}

/// An eventfd of ours is about to be closed by the program.
pub fn forget_eventfd(fd: i32) {
    for m in marks() {
        let _ = m
            .wake
            .compare_exchange(fd + 1, 0, Ordering::AcqRel, Ordering::Acquire);
    }
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
