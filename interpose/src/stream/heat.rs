//! Is a stream worth an offer?
//!
//! After a few messages or some tens of KiB that came in short time. Where both ends
//! sleep between messages that are a millisecond apart, the wire was measured to take
//! as long as TCP, and a sixth more processor time: a doorbell is a system call like
//! another, and who sleeps on two descriptors has one more to ask.

use crate::streams::{self, Stream};
use crate::{policy, startup};
use core::sync::atomic::Ordering;
use rdma_engine::abi::arena::{flags, Phase, Slot};
use rdma_engine::sys;

/// Each counted message may take this long, in ns; else the count starts again. (An end
/// that answers counts two for each round.)
const PACE_NS: u64 = 400_000;
/// The same in the latency profile, whose waits stay awake ten times as long.
const LATENCY_PACE_NS: u64 = 20_000_000;

fn pace() -> u64 {
    match startup::profile() {
        startup::Profile::Latency => LATENCY_PACE_NS,
        _ => PACE_NS,
    }
}

/// After a call that moved `n` bytes of a stream that is not attached: counts
/// it, and makes an offer, or takes the next step of one, when it is time.
#[inline(always)]
pub fn after_plain(slot: &'static Slot, generation: u32, fd: i32, n: usize) {
    let heat = slot
        .heat
        .load(Ordering::Relaxed)
        .wrapping_add(1 + (n as u64 >> 12));
    slot.heat.store(heat, Ordering::Relaxed);
    // The count is kept less the threshold: one word to look at.
    if heat as i64 >= 0 {
        hot(slot, generation, fd, heat);
    }
}

#[cold]
#[inline(never)]
fn hot(slot: &'static Slot, generation: u32, fd: i32, heat: u64) {
    let Some(s) = streams::of_slot(slot, generation) else {
        return;
    };
    // The call may have outlived the descriptor.
    let fd = s.number(fd);
    if fd < 0 {
        return;
    }
    let s = &s;
    if s.phase() == Phase::Offered {
        set(s, 0);
        super::cutover::progress(s, fd);
        return;
    }
    let heat = introduce(s, fd, heat.wrapping_add(startup::upgrade_after()));
    if heat < startup::upgrade_after() {
        set(s, heat as i64);
    } else if super::settled::settle(s, fd) {
        // This was the last call that was looked at.
    } else if judge(s, heat) {
        crate::rendezvous::offer(s, fd);
    }
}

/// Sets the count; negative while an offer would be too early.
pub fn set(s: &Stream, count: i64) {
    store(s.slot, count);
}

fn store(slot: &Slot, count: i64) {
    let heat = count.wrapping_sub(startup::upgrade_after() as i64);
    slot.heat.store(heat as u64, Ordering::Relaxed);
}

/// The count of a new stream.
pub fn begin(slot: &Slot) {
    store(slot, head_start() as i64);
}

/// Messages after which a stream is worth a look at its addresses.
const ADDRESSES_AFTER: u64 = 4;

/// The count of a new stream begins so high that its first few messages lead to
/// [`introduce`], which costs the others nothing.
fn head_start() -> u64 {
    startup::upgrade_after().saturating_sub(ADDRESSES_AFTER)
}

/// The first time: takes the head start off, and notes the addresses for
/// `sidewire ps`. Returns the true count, or more where a rule asks for fewer
/// messages than the process does.
fn introduce(s: &Stream, fd: i32, heat: u64) -> u64 {
    if s.slot.local.family_port.load(Ordering::Relaxed) != 0 || crate::process::is_confined() {
        return heat;
    }
    let outgoing = s.slot.has(flags::OUTGOING);
    s.slot.heat_since.store(sys::now_ns(), Ordering::Relaxed);
    let rule = super::open::addresses(s, fd).and_then(|_| {
        policy::decide(&s.slot.local.get(), &s.slot.remote.get(), outgoing).upgrade_after
    });
    let fewer = rule.map_or(0, |n| startup::upgrade_after().saturating_sub(n));
    heat.saturating_sub(head_start()) + fewer
}

/// No offer for a while: not even the clock is looked at for so many messages.
pub fn rest(s: &Stream) {
    const MESSAGES: i64 = 1024;
    set(s, -MESSAGES);
}

/// No offer for a little while.
pub fn pause(s: &Stream) {
    const MESSAGES: i64 = 64;
    set(s, -MESSAGES);
}

/// Is a stream whose count has reached `heat` worth an offer?
fn judge(s: &Stream, heat: u64) -> bool {
    let threshold = startup::upgrade_after();
    let now = sys::now_ns();
    let since = s.slot.heat_since.swap(now, Ordering::Relaxed);
    set(s, 0);
    threshold <= 1 || since == 0 || now.saturating_sub(since) < pace() * heat
}
