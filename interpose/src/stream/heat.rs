//! Is a stream worth an offer?
//!
//! After a few messages or some tens of KiB that came quickly. Traffic so rare
//! that its receiver always sleeps gains nothing from the wire, so the count
//! starts again when it took too long; in a process that is busy with many
//! streams, each of them may be slower.

use crate::startup;
use crate::streams::Stream;
use core::sync::atomic::{AtomicU64, Ordering};
use rdma_engine::abi::arena::Phase;
use rdma_engine::sys;

/// Each counted message may take this long, in ns.
const PACE: u64 = 500_000;
/// Messages per second of the whole process from which on it counts as busy.
const BUSY_PER_SECOND: u64 = 5_000;
/// A busy process's streams may be slower by this factor.
const BUSY_FACTOR: u64 = 20;

/// All messages of the process, counted in steps of the threshold.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// When the process was last judged, and how many messages it had then.
static JUDGED_AT: AtomicU64 = AtomicU64::new(0);
static JUDGED_TOTAL: AtomicU64 = AtomicU64::new(0);
static BUSY: AtomicU64 = AtomicU64::new(0);

/// After a call that moved `n` bytes of a stream that is not attached: counts
/// it, and makes an offer, or takes the next step of one, when it is time.
#[inline]
pub fn after_plain(s: &Stream, fd: i32, n: usize) {
    let heat = s.slot.heat.load(Ordering::Relaxed).wrapping_add(1 + (n as u64 >> 12));
    s.slot.heat.store(heat, Ordering::Relaxed);
    // Negative while an offer would be too early (see `rest`).
    if heat as i64 >= startup::upgrade_after() as i64 {
        hot(s, fd, heat);
    }
}

#[cold]
fn hot(s: &Stream, fd: i32, heat: u64) {
    if s.phase() == Phase::Offered {
        s.slot.heat.store(0, Ordering::Relaxed);
        super::cutover::progress(s, fd);
        return;
    }
    let heat = introduce(s, fd, heat);
    if heat < startup::upgrade_after() {
        s.slot.heat.store(heat, Ordering::Relaxed);
    } else if judge(s, heat) {
        crate::rendezvous::offer(s, fd);
    }
}

/// Messages after which a stream is worth a look at its addresses.
const ADDRESSES_AFTER: u64 = 4;

/// The count of a new stream begins so high that its first few messages lead to
/// [`introduce`], which costs the others nothing.
pub fn head_start() -> u64 {
    startup::upgrade_after().saturating_sub(ADDRESSES_AFTER)
}

/// The first time: takes the head start off, and notes the addresses for
/// `sidewire ps`. Returns the true count.
fn introduce(s: &Stream, fd: i32, heat: u64) -> u64 {
    if s.slot.local.family_port.load(Ordering::Relaxed) != 0 || crate::process::is_confined() {
        return heat;
    }
    super::open::addresses(s, fd);
    heat.saturating_sub(head_start())
}

/// No offer for a while: not even the clock is looked at for so many messages.
pub fn rest(s: &Stream) {
    const MESSAGES: i64 = 1024;
    s.slot.heat.store(-MESSAGES as u64, Ordering::Relaxed);
}

/// Is a stream whose count has reached `heat` worth an offer?
fn judge(s: &Stream, heat: u64) -> bool {
    let threshold = startup::upgrade_after();
    let now = sys::now_ns();
    let since = s.slot.heat_since.swap(now, Ordering::Relaxed);
    s.slot.heat.store(0, Ordering::Relaxed);
    let pace = if is_busy(now, heat) {
        PACE * BUSY_FACTOR
    } else {
        PACE
    };
    threshold <= 1 || since == 0 || now - since < pace * heat
}

/// Counts the messages of the whole process; judges it every 10 ms or so.
fn is_busy(now: u64, heat: u64) -> bool {
    let total = TOTAL.fetch_add(heat, Ordering::Relaxed) + heat;
    let at = JUDGED_AT.load(Ordering::Relaxed);
    let passed = now.saturating_sub(at);
    if passed > 10_000_000 {
        let new = total - JUDGED_TOTAL.swap(total, Ordering::Relaxed).min(total);
        let rate = u128::from(new) * 1_000_000_000 / u128::from(passed);
        let busy = at != 0 && passed < 1_000_000_000 && rate as u64 >= BUSY_PER_SECOND;
        JUDGED_AT.store(now, Ordering::Relaxed);
        BUSY.store(u64::from(busy), Ordering::Relaxed);
    }
    BUSY.load(Ordering::Relaxed) != 0
}
