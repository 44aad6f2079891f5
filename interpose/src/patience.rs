//! How long to look at memory before sleeping in the kernel.
//!
//! Spin very little, then yield for a while, then sleep. Never spin long without
//! yielding: with more processes than cores that falls below plain TCP. A yield
//! that takes very long says that a program which computes has the processor;
//! then yielding is given up for a while, as a sleeper is woken ahead of such a
//! program, and a yielder is not. (Where the neighbours are our own, a yield
//! comes back within microseconds, however many they are.)

use crate::startup::{self, Profile};
use core::sync::atomic::{AtomicU64, Ordering};
use rdma_engine::sync::spin_hint;
use rdma_engine::sys;

/// Turns of the spinning stage: about 0.3 us.
pub const SPINS: u32 = 12;
/// The yielding stage, in ns: by default, and in the latency profile.
const YIELD_NS: u64 = 20_000;
const LATENCY_NS: u64 = 200_000;
/// A yield this long went to somebody who does not yield.
const LONG_YIELD_NS: u64 = 150_000;
/// Yields may lose so much to such programs in a window of time. (A busy pair of our
/// own may keep its processors for a while too, but not often.)
const WINDOW_NS: u64 = 64_000_000;
const LOSS_NS: u64 = 8_000_000;
/// Waits in a row that ended asleep, after which spinning is tried only now and
/// then.
const SLEEPY: u32 = 8;
const NOW_AND_THEN: u32 = 32;

/// How long yielding is given up: at first, and at the most.
const GIVE_UP_NS: u64 = 16_000_000;
const GIVE_UP_MOST_NS: u64 = 512_000_000;

/// What yields have cost lately, and whether they are given up for it. (Threads may
/// get in each other's way here; it is a guess.)
struct Losses {
    /// Until when yielding is given up (monotonic ns), and for how long the next time.
    until: AtomicU64,
    span: AtomicU64,
    /// When the present window began, and what was lost since.
    window: AtomicU64,
    lost: AtomicU64,
}

/// This process's.
static LOSSES: Losses = Losses::new();

/// Is polling worth a try after `sleeps` waits in a row that ended asleep?
#[inline]
pub fn pays(sleeps: u32) -> bool {
    match startup::profile() {
        Profile::Frugal => false,
        Profile::Latency => true,
        Profile::Adaptive => sleeps < SLEEPY || sleeps.is_multiple_of(NOW_AND_THEN),
    }
}

/// Is yielding given up at the moment?
#[inline]
pub fn is_crowded() -> bool {
    let until = LOSSES.until.load(Ordering::Relaxed);
    until != 0 && sys::tick_ns() < until
}

/// The spinning stage: `check` up to `turns` times.
#[inline]
pub fn spin(turns: u32, mut check: impl FnMut() -> bool) -> bool {
    for _ in 0..turns {
        if check() {
            return true;
        }
        spin_hint();
    }
    false
}

/// The yielding stage. Says after how many ns `check` was true; `None` if it
/// never was, by `deadline` or the end of the stage.
pub fn yield_until(deadline: Option<u64>, check: impl FnMut() -> bool) -> Option<u64> {
    let limit = if startup::profile() == Profile::Latency {
        LATENCY_NS
    } else {
        YIELD_NS
    };
    let end = deadline.unwrap_or(u64::MAX);
    LOSSES.yield_until(limit, end, sys::now_ns, sys::sched_yield, check)
}

impl Losses {
    const fn new() -> Losses {
        Losses {
            until: AtomicU64::new(0),
            span: AtomicU64::new(GIVE_UP_NS),
            window: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Is yielding given up at the time `now`?
    #[inline]
    fn given_up(&self, now: u64) -> bool {
        now < self.until.load(Ordering::Relaxed)
    }

    /// [`yield_until`] by a given clock, so that tests need not sleep: for `limit` ns,
    /// until `end` at the latest.
    #[inline(always)]
    fn yield_until(
        &self,
        limit: u64,
        end: u64,
        clock: impl Fn() -> u64,
        yields: impl Fn(),
        mut check: impl FnMut() -> bool,
    ) -> Option<u64> {
        let start = clock();
        if self.given_up(start) {
            return None;
        }
        let mut last = start;
        loop {
            yields();
            let now = clock();
            let long = self.judge(now, now - last);
            if check() {
                return Some(now - start);
            }
            if long || now - start > limit || now >= end {
                return None;
            }
            last = now;
        }
    }

    /// Learns from how long a yield took; says whether that was long.
    #[inline]
    fn judge(&self, now: u64, took: u64) -> bool {
        let long = took > LONG_YIELD_NS;
        if long {
            self.lose(now, took);
        }
        long
    }

    /// A long yield has ended.
    #[cold]
    fn lose(&self, now: u64, took: u64) {
        if self.given_up(now) {
            // Another thread's, of the same loss.
            return;
        }
        let mut lost = took;
        if now < self.window.load(Ordering::Relaxed) + WINDOW_NS {
            lost += self.lost.load(Ordering::Relaxed);
        } else {
            // The last window went by without much loss.
            self.window.store(now, Ordering::Relaxed);
            self.span.store(GIVE_UP_NS, Ordering::Relaxed);
        }
        if lost < LOSS_NS {
            self.lost.store(lost, Ordering::Relaxed);
            return;
        }
        let span = self.span.load(Ordering::Relaxed);
        self.until.store(now + span, Ordering::Relaxed);
        let next = (span * 2).min(GIVE_UP_MOST_NS);
        self.span.store(next, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.window.store(now + span, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "patience_tests.rs"]
mod tests;
