//! Slots are taken and given back: a free list in the arena, which the processes of
//! a family share.

use crate::process;
use crate::streams::{at, ensure, header, Stream};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rdma_engine::abi::arena::{flags, Header, RxMode, Slot, REASONS, SLOTS};
use rdma_engine::abi::reason::Reason;

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
    s.local.begin(fd);
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

static MAY_RECLAIM: AtomicBool = AtomicBool::new(true);

/// In a child whose PID namespace is not the family's: who of the others is alive, it
/// cannot know.
pub fn forbid_reclaiming() {
    MAY_RECLAIM.store(false, Ordering::Relaxed);
}

/// When all slots are taken: takes one whose holders have all died without
/// closing (`_exit`, SIGKILL).
#[cold]
fn reclaim() -> Option<u32> {
    if !MAY_RECLAIM.load(Ordering::Relaxed) {
        return None;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot of a process that has ended without closing it.
    fn left_behind() -> Stream {
        let s = open(1000).expect("a slot");
        let mut child = std::process::Command::new("true").spawn().expect("true");
        child.wait().expect("it ends");
        s.slot.holders[0].store(child.id(), Ordering::Relaxed);
        // It was never a stream of ours.
        assert!(s.remove_fd(1000));
        s
    }

    #[test]
    fn the_slots_of_the_dead_are_reclaimed_unless_that_is_forbidden() {
        let mine = open(1001).expect("a slot");
        assert_eq!(reclaim(), None, "its holder lives");
        let dead = left_behind();
        assert_eq!(reclaim(), Some(dead.index));
        assert!(!dead.slot.is(dead.generation));
        assert_eq!(reclaim(), None, "once");

        let dead = left_behind();
        forbid_reclaiming();
        assert_eq!(reclaim(), None, "who is alive is not known");
        assert!(dead.slot.is(dead.generation));
        MAY_RECLAIM.store(true, Ordering::Relaxed);
        assert_eq!(reclaim(), Some(dead.index));

        assert!(mine.remove_fd(1001));
        release(mine);
    }
}
