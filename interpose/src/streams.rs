//! The streams of this process: slots in the shared arena, and for each what
//! is this process's own ([`Local`]).

use crate::anchors::ANCHORS;
use crate::fdtable::{self, Entry};
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use rdma_engine::abi::arena::{Header, Phase, Slot, SLOTS};
use rdma_engine::abi::log::{Event, NO_SLOT};
use rdma_engine::abi::reason::Reason;
use rdma_engine::arena::{self, ArenaRef};
use rdma_engine::segment::Segment;
use rdma_engine::sys;

/// Descriptor numbers of one stream that are remembered; with more, the stream
/// cannot be followed into epoll sets and stays Plain.
pub const FDS: usize = 4;

/// What is this process's own about a stream: numbers and addresses that mean
/// nothing elsewhere. A forked child inherits a copy that is right for it too.
#[repr(C, align(64))]
pub struct Local {
    /// Where the segment is mapped, or null.
    base: AtomicPtr<u8>,
    /// The side channel: descriptor + 1, or 0.
    pub side: AtomicI32,
    /// Calls since the last step of an offer.
    pub calls: AtomicU32,
    /// Sends since the peer was last looked for.
    pub unchecked: AtomicU32,
    /// Not 0: we have sent since we received last, this many bytes the last time. Who
    /// answers what he gets waits for the next message; who only receives waits for many.
    pub answered: AtomicU32,
    /// Not 0: what we received last had to be waited for, awake, while the peer worked
    /// on another processor. If we answer, it waits now. [`POLLED`]: so it is with what
    /// we will receive next.
    pub awaited: AtomicU32,
    /// Records that the last receive found.
    pub records: AtomicU32,
    /// Receives in a row that found a little, at once (see [`crate::stream`]'s `flow`).
    pub flow: AtomicU32,
    /// Is the open file description non-blocking, when it was last looked at?
    pub nonblocking: AtomicU32,
    /// Where the reader stood when a send last found no room (see
    /// [`crate::stream::ready::FULL`]); 0 is nowhere.
    pub full_at: AtomicU64,
    /// Turns of the spinning stage that have paid lately.
    pub spins: AtomicU32,
    /// Epoll sets that hold the stream and were taken over.
    pub epolls: AtomicU32,
    /// The rendezvous listener: descriptor + 1, or 0.
    pub listener: AtomicI32,
    /// A duplicate of ours plus 1, made when the program's last descriptor was
    /// closed under a call that is blocked: such a call keeps the stream open.
    pub kept: AtomicI32,
    /// The program's descriptors of the stream: number + 1, or 0.
    fds: [AtomicI32; FDS],
    /// How many there are in all.
    pub fd_count: AtomicU32,
}

/// A value of [`Local::awaited`].
pub const POLLED: u32 = 2;

impl Local {
    /// Nothing is known of a new stream but its descriptor.
    pub fn begin(&self, fd: i32) {
        self.base.store(core::ptr::null_mut(), Ordering::Relaxed);
        for place in [&self.side, &self.listener, &self.kept] {
            place.store(0, Ordering::Relaxed);
        }
        for f in &self.fds[1..] {
            f.store(0, Ordering::Relaxed);
        }
        self.fds[0].store(fd + 1, Ordering::Relaxed);
        self.fd_count.store(1, Ordering::Relaxed);
        for word in [
            &self.calls,
            &self.unchecked,
            &self.answered,
            &self.awaited,
            &self.nonblocking,
            &self.flow,
            &self.records,
            &self.spins,
            &self.epolls,
        ] {
            word.store(0, Ordering::Relaxed);
        }
        self.full_at.store(0, Ordering::Relaxed);
    }
}

/// A stream, as the code passes it around.
#[derive(Clone, Copy)]
pub struct Stream {
    pub index: u32,
    pub generation: u32,
    pub slot: &'static Slot,
    pub local: &'static Local,
}

/// The arena's descriptor, for `sidewire ps` and for exec.
pub static ARENA_FD: AtomicI32 = AtomicI32::new(-1);

/// The arena, if this process has one yet.
pub fn arena() -> Option<ArenaRef> {
    let base = ANCHORS.arena.load(Ordering::Acquire);
    // SAFETY: stored below, from `base()`, and never unmapped.
    (!base.is_null()).then(|| unsafe { ArenaRef::at(base) })
}

/// The arena's header, if there is an arena.
pub fn header() -> Option<&'static Header> {
    arena().map(|a| a.header())
}

/// Leaves a record that is about no stream; see [`Stream::log`].
pub fn log(event: Event, args: [u64; 2]) {
    if let Some(arena) = arena() {
        arena.log(event, NO_SLOT, 0, args);
    }
}

/// Of the arena's making: 1 is under way, 2 done, 3 given up.
static STATE: AtomicU32 = AtomicU32::new(0);

/// The arena, made on first use: by the launcher, an ancestor, or by us.
pub fn ensure() -> Option<ArenaRef> {
    loop {
        if let Some(a) = arena() {
            return Some(a);
        }
        match STATE.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                let ok = make(None).is_some();
                STATE.store(if ok { 2 } else { 3 }, Ordering::Release);
            }
            // Another thread is at it; a few tens of microseconds.
            Err(1) => sys::sched_yield(),
            Err(2) => {}
            Err(_) => return None,
        }
    }
}

/// At start-up: the arena that the program before us in this process has passed
/// on (see [`crate::inherit`]).
pub fn inherit_arena(fd: i32, arena: ArenaRef) -> bool {
    let ok = make(Some((fd, arena))).is_some();
    STATE.store(if ok { 2 } else { 3 }, Ordering::Release);
    ok
}

fn make(passed: Option<(i32, ArenaRef)>) -> Option<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let size = SLOTS as usize * core::mem::size_of::<Local>();
    // SAFETY: a new anonymous range; all zero is a valid table.
    let locals = unsafe { sys::mmap(core::ptr::null_mut(), size, flags, -1) }?;
    ANCHORS.locals.store(locals.cast(), Ordering::Release);
    let (fd, arena) = match passed.or_else(crate::startup::inherited_arena) {
        Some(found) => found,
        None => {
            let fd = arena::create().ok()?;
            match arena::map(fd) {
                Some(a) => (fd, a),
                None => {
                    sys::close(fd);
                    return None;
                }
            }
        }
    };
    // Without a descriptor `sidewire ps` is blind, nothing worse.
    ARENA_FD.store(crate::descriptors::adopt(fd), Ordering::Release);
    if passed.is_none() {
        arena.header().processes.fetch_add(1, Ordering::Relaxed);
    }
    crate::faults::start();
    ANCHORS.arena.store(arena.base(), Ordering::Release);
    log(Event::Loaded, [0, 0]);
    Some(())
}

/// The stream of a descriptor-table entry, if it is still that use of the slot.
#[inline(always)]
pub fn get(index: u32, generation: u32) -> Option<Stream> {
    let s = at(index)?;
    s.slot.is(generation).then_some(Stream { generation, ..s })
}

/// Slot `index`.
#[inline(always)]
pub fn slot(index: u32) -> Option<&'static Slot> {
    arena()?.slot(index)
}

/// The stream of a slot's use `generation`, if it still is that one's.
pub fn of_slot(slot: &Slot, generation: u32) -> Option<Stream> {
    get(arena()?.index_of(slot)?, generation)
}

/// Slot `index` as a stream, whatever its present use.
#[inline(always)]
pub fn at(index: u32) -> Option<Stream> {
    let arena = arena()?;
    let locals = ANCHORS.locals.load(Ordering::Acquire);
    if index >= SLOTS || locals.is_null() {
        return None;
    }
    let slot = arena.slot(index)?;
    Some(Stream {
        index,
        generation: slot.generation.load(Ordering::Acquire),
        slot,
        // SAFETY: below SLOTS, in a table that is never unmapped.
        local: unsafe { &*locals.add(index as usize) },
    })
}

/// All slots that were ever used.
fn all() -> impl Iterator<Item = Stream> {
    let high = header().map_or(0, |h| h.high.load(Ordering::Acquire));
    (0..high.min(SLOTS)).filter_map(at)
}

/// All streams that this process holds.
pub fn ours() -> impl Iterator<Item = Stream> {
    all().filter(|s| s.generation & 1 == 1 && s.local.fd_count.load(Ordering::Acquire) > 0)
}

/// Where the number of our own descriptor `fd` is kept, if a stream has it.
pub fn owner_of(fd: i32) -> Option<&'static AtomicI32> {
    all().find_map(|s| {
        let l = s.local;
        [&l.side, &l.listener, &l.kept]
            .into_iter()
            .find(|w| w.load(Ordering::Acquire) == fd + 1)
    })
}

impl Stream {
    /// The segment, once attached.
    #[inline]
    pub fn segment(&self) -> Option<Segment> {
        let base = self.local.base.load(Ordering::Acquire);
        // SAFETY: stored by `set_segment` from a mapped segment; it is unmapped
        // only when no thread's mark names this stream.
        (!base.is_null()).then(|| unsafe { Segment::at(base) })
    }

    /// Remembers the mapped segment.
    pub fn set_segment(&self, segment: Segment) {
        self.local.base.store(segment.base(), Ordering::Release);
    }

    /// Forgets the segment and returns it, for unmapping.
    pub fn take_segment(&self) -> Option<Segment> {
        self.segment()?;
        let base = self
            .local
            .base
            .swap(core::ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: as in `segment`.
        (!base.is_null()).then(|| unsafe { Segment::at(base) })
    }

    /// The side channel's descriptor, or -1.
    #[inline]
    pub fn side(&self) -> i32 {
        self.local.side.load(Ordering::Acquire) - 1
    }

    /// The number of our sending direction in the segment: 0 or 1.
    #[inline]
    pub fn out(&self) -> usize {
        usize::from(self.slot.creator.load(Ordering::Relaxed) == 0)
    }

    /// The number of our receiving direction.
    #[inline]
    pub fn into(&self) -> usize {
        1 - self.out()
    }

    /// A descriptor of the stream in this process.
    pub fn any_fd(&self) -> Option<i32> {
        self.descriptors().next()
    }

    /// The number by which a call that began on `fd` reaches the stream now: `fd`
    /// may have been closed meanwhile, and name something else. -1 if there is none.
    pub fn number(&self, fd: i32) -> i32 {
        let (index, generation) = (self.index, self.generation);
        if fdtable::get(fd) == (Entry::Stream { index, generation }) {
            return fd;
        }
        let kept = self.local.kept.load(Ordering::Acquire) - 1;
        self.any_fd().unwrap_or(kept)
    }

    /// The descriptors that are remembered.
    pub fn descriptors(&self) -> impl Iterator<Item = i32> + '_ {
        self.local
            .fds
            .iter()
            .map(|f| f.load(Ordering::Acquire) - 1)
            .filter(|&f| f >= 0)
    }

    /// Are all descriptors remembered?
    pub fn all_known(&self) -> bool {
        self.descriptors().count() == self.local.fd_count.load(Ordering::Acquire) as usize
    }

    /// Another descriptor of this process names the stream now.
    pub fn add_fd(&self, fd: i32) {
        self.local.fd_count.fetch_add(1, Ordering::AcqRel);
        for f in &self.local.fds {
            if f.compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return;
            }
        }
    }

    /// A descriptor has gone; true if it was the process's last.
    pub fn remove_fd(&self, fd: i32) -> bool {
        for f in &self.local.fds {
            if f.compare_exchange(fd + 1, 0, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                break;
            }
        }
        self.local.fd_count.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Says why the stream is not Fast.
    pub fn because(&self, reason: Reason) {
        self.slot.reason.store(reason as u32, Ordering::Relaxed);
    }

    /// Leaves a record for `sidewire run --log`; a load and a branch if nobody reads it.
    #[inline]
    pub fn log(&self, event: Event, args: [u64; 2]) {
        if let Some(arena) = arena() {
            arena.log(event, self.index, self.generation, args);
        }
    }

    /// Its entry in the descriptor table.
    pub fn entry(&self) -> Entry {
        Entry::Stream {
            index: self.index,
            generation: self.generation,
        }
    }

    /// Was it not seen being made?
    pub fn is_adopted(&self) -> bool {
        self.slot.pin.load(Ordering::Acquire) == Reason::Adopted as u32
    }

    /// Is it settled that the stream must not be Fast?
    #[inline]
    pub fn pinned(&self) -> bool {
        self.slot.pin.load(Ordering::Acquire) != 0
    }

    /// How far the two ends have found each other.
    #[inline]
    pub fn phase(&self) -> Phase {
        self.slot.phase()
    }
}
