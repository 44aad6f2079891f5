//! The streams of this process: slots in the shared arena, and for each what
//! is this process's own ([`Local`]).

use crate::anchors::ANCHORS;
use crate::fdtable::{self, Entry};
use crate::process;
use crate::stream::settings::Settings;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use rdma_engine::abi::arena::{flags, Header, Phase, RxMode, Slot, HOLDERS, REASONS, SLOTS};
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
    /// The side channel, and the rendezvous listener: descriptor + 1, or 0.
    pub side: AtomicI32,
    pub listener: AtomicI32,
    /// A duplicate of ours plus 1, made when the program's last descriptor was
    /// closed under a call that is blocked: such a call keeps the stream open.
    pub kept: AtomicI32,
    /// The program's descriptors of the stream: number + 1, or 0.
    fds: [AtomicI32; FDS],
    /// How many there are in all.
    pub fd_count: AtomicU32,
    /// Calls since the last step of an offer.
    pub calls: AtomicU32,
    /// Sends since the peer was last looked for.
    pub unchecked: AtomicU32,
    /// Not 0: we have sent since we received last. Who answers what he gets waits
    /// for the next message; who only receives waits for many.
    pub answered: AtomicU32,
    /// Receives in a row that found a little, at once (see [`crate::stream`]'s `flow`).
    pub flow: AtomicU32,
    /// What the program has set about waiting.
    pub settings: Settings,
    /// Where the reader stood when a send last found no room (see
    /// [`crate::stream::ready::FULL`]); 0 is nowhere.
    pub full_at: AtomicU64,
    /// Turns of the spinning stage that have paid lately.
    pub spins: AtomicU32,
    /// Epoll sets that hold the stream and were taken over.
    pub epolls: AtomicU32,
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

fn header() -> Option<&'static Header> {
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
fn ensure() -> Option<ArenaRef> {
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

/// The stream that uses a slot now.
pub fn of_slot(slot: &Slot) -> Option<Stream> {
    let s = at(arena()?.index_of(slot)?)?;
    (s.generation & 1 == 1).then_some(s)
}

/// Slot `index` as a stream, whatever its present use.
#[inline(always)]
fn at(index: u32) -> Option<Stream> {
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

/// Takes a slot for a new stream with descriptor `fd`. `None`: too many streams
/// (or no memory): the stream stays on plain TCP, untracked.
pub fn open(fd: i32) -> Option<Stream> {
    let header = ensure()?.header();
    let index = pop(header).or_else(|| fresh(header)).or_else(reclaim)?;
    let s = at(index)?;
    let slot = s.slot;
    for h in &slot.holders[1..] {
        h.store(0, Ordering::Relaxed);
    }
    slot.holders[0].store(process::pid(), Ordering::Relaxed);
    for word in [&slot.flags, &slot.phase, &slot.pin, &slot.offers] {
        word.store(0, Ordering::Relaxed);
    }
    slot.reason.store(Reason::Cold as u32, Ordering::Relaxed);
    for word in [
        &slot.retry_at,
        &slot.heat_since,
        &slot.opened,
        &slot.tcp.sent,
        &slot.tcp.sends,
        &slot.tcp.received,
        &slot.tcp.receives,
        &slot.tx.wire_bytes,
        &slot.tx.wire_messages,
        &slot.rx.wire_bytes,
        &slot.rx.wire_messages,
        &slot.tx.epoch,
        &slot.rx.epoch,
    ] {
        word.store(0, Ordering::Relaxed);
    }
    slot.tx.fast.store(0, Ordering::Relaxed);
    slot.tx.full.store(0, Ordering::Relaxed);
    slot.rx.mode.store(RxMode::Plain as u32, Ordering::Relaxed);
    slot.rx.sleeps.store(0, Ordering::Relaxed);
    slot.local.family_port.store(0, Ordering::Relaxed);
    slot.remote.family_port.store(0, Ordering::Relaxed);
    let l = s.local;
    l.base.store(core::ptr::null_mut(), Ordering::Relaxed);
    l.side.store(0, Ordering::Relaxed);
    l.listener.store(0, Ordering::Relaxed);
    l.kept.store(0, Ordering::Relaxed);
    for f in &l.fds[1..] {
        f.store(0, Ordering::Relaxed);
    }
    l.fds[0].store(fd + 1, Ordering::Relaxed);
    l.fd_count.store(1, Ordering::Relaxed);
    l.calls.store(0, Ordering::Relaxed);
    l.unchecked.store(0, Ordering::Relaxed);
    l.answered.store(0, Ordering::Relaxed);
    l.flow.store(0, Ordering::Relaxed);
    l.spins.store(0, Ordering::Relaxed);
    l.full_at.store(0, Ordering::Relaxed);
    l.settings.forget();
    l.epolls.store(0, Ordering::Relaxed);
    let generation = s.generation.wrapping_add(1) | 1;
    slot.generation.store(generation, Ordering::Release);
    Some(Stream { generation, ..s })
}

/// Gives a slot back. The caller knows that no thread uses it, and has closed
/// the stream's descriptors and mapping.
pub fn release(s: Stream) {
    let Some(header) = header() else { return };
    add_up(header, s.slot);
    s.slot
        .generation
        .store(s.generation.wrapping_add(1), Ordering::Release);
    push(header, s.index);
}

/// Adds an ended stream to the family's totals.
fn add_up(header: &Header, slot: &Slot) {
    header.streams.fetch_add(1, Ordering::Relaxed);
    if slot.has(flags::WAS_FAST) {
        header.fast.fetch_add(1, Ordering::Relaxed);
    } else {
        let code = slot.reason.load(Ordering::Relaxed) as usize;
        header.reasons[code.min(REASONS - 1)].fetch_add(1, Ordering::Relaxed);
    }
    for (sum, word) in [
        (&header.tcp_in, &slot.tcp.received),
        (&header.tcp_out, &slot.tcp.sent),
        (&header.wire_in, &slot.rx.wire_bytes),
        (&header.wire_out, &slot.tx.wire_bytes),
    ] {
        let n = word.load(Ordering::Relaxed);
        if n != 0 {
            sum.fetch_add(n, Ordering::Relaxed);
        }
    }
}

/// Puts a slot on the free list (a stack; the tag defeats ABA).
fn push(header: &Header, index: u32) {
    let Some(s) = at(index) else { return };
    let mut head = header.free.load(Ordering::Acquire);
    loop {
        s.slot.next.store(head as u32, Ordering::Relaxed);
        let new = (head >> 32).wrapping_add(1) << 32 | u64::from(index + 1);
        match header
            .free
            .compare_exchange(head, new, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

fn pop(header: &Header) -> Option<u32> {
    let mut head = header.free.load(Ordering::Acquire);
    loop {
        let index = (head as u32).checked_sub(1)?;
        let next = at(index)?.slot.next.load(Ordering::Relaxed);
        let new = (head >> 32).wrapping_add(1) << 32 | u64::from(next);
        match header
            .free
            .compare_exchange(head, new, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => return Some(index),
            Err(now) => head = now,
        }
    }
}

fn fresh(header: &Header) -> Option<u32> {
    header
        .high
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |h| {
            (h < SLOTS).then_some(h + 1)
        })
        .ok()
}

/// When all slots are taken: takes one whose holders have all died without
/// closing (`_exit`, SIGKILL).
#[cold]
fn reclaim() -> Option<u32> {
    let header = header()?;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..SLOTS {
        let s = at(NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS)?;
        if s.generation & 1 == 1 && !s.has_live_holder() {
            let ended = s.generation.wrapping_add(1);
            let ours = s.slot.generation.compare_exchange(
                s.generation,
                ended,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if ours.is_ok() {
                add_up(header, s.slot);
                return Some(s.index);
            }
        }
    }
    None
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

    /// Names a process as a holder; beyond [`HOLDERS`] it's a crowd for ever.
    pub fn add_holder(&self, pid: u32) {
        for h in &self.slot.holders {
            let was = h.load(Ordering::Acquire);
            if (was == 0 || !process::may_live(was))
                && h.compare_exchange(was, pid, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
            {
                return;
            }
        }
        self.slot.flags.fetch_or(flags::CROWD, Ordering::AcqRel);
    }

    /// Names a child that is about to be born; nothing dead is looked for.
    pub fn add_unborn(&self, unborn: u32) {
        self.slot.flags.fetch_or(flags::SHARED, Ordering::AcqRel);
        for h in &self.slot.holders {
            if h.compare_exchange(0, unborn, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return;
            }
        }
        self.add_holder(unborn);
    }

    /// The child has been born: parent and child both say so, the first to come
    /// replaces the word.
    pub fn name_unborn(&self, unborn: u32, pid: u32) {
        let known = |h: &AtomicU32| h.load(Ordering::Acquire) == pid;
        if self.slot.holders.iter().any(known) {
            return;
        }
        for h in &self.slot.holders {
            if h.compare_exchange(unborn, pid, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Takes this name off again.
    pub fn remove_holder(&self, pid: u32) {
        for h in &self.slot.holders {
            if h.compare_exchange(pid, 0, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Is process `pid` named as a holder?
    pub fn is_held_by(&self, pid: u32) -> bool {
        let named = |h: &AtomicU32| h.load(Ordering::Acquire) == pid;
        self.slot.holders.iter().any(named)
    }

    /// Does this process alone hold the end?
    pub fn is_sole(&self) -> bool {
        let me = process::pid();
        !self.slot.has(flags::CROWD)
            && self.slot.holders.iter().all(|h| {
                let pid = h.load(Ordering::Acquire);
                pid == 0 || pid == me || !process::may_live(pid)
            })
    }

    fn has_live_holder(&self) -> bool {
        self.slot.has(flags::CROWD)
            || self.slot.holders[..HOLDERS].iter().any(|h| {
                let pid = h.load(Ordering::Acquire);
                pid != 0 && process::may_live(pid)
            })
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
