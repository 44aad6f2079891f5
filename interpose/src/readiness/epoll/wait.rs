//! epoll_wait(2) and its kin.

use super::hot::Look;
use super::{set_of, Set, ASK_EVERY};
use crate::errno;
use crate::patience::{self, SPINS};
use crate::stream::wait::nap;
use crate::threads::{self, Doing, Kind};
use core::sync::atomic::{fence, Ordering};
use libc::epoll_event;
use rdma_engine::sys;

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
    let slept = (set.taken.load(Ordering::Acquire) == 0).then(|| {
        let _doing = Doing::begin(Kind::SleepEpoll, set.index());
        // Who takes a stream over now sees the mark, or is seen here. Partner: the
        // fence in `wake`.
        fence(Ordering::SeqCst);
        (set.taken.load(Ordering::Acquire) == 0).then(plain)
    });
    if let Some(n) = slept.flatten() {
        if n <= 0 || !set.is_touched() {
            return n;
        }
        // Taken over while we slept, or a late ring of our own.
        let kept = set.sift(&mut events[..n as usize]);
        let n = kept + set.collect(&mut events[kept..], Look::Now);
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
        set.collect(events, Look::Now)
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
        n = set.collect(events, Look::Last);
        if n > 0 {
            return n as i32;
        }
        set.sleeps.fetch_add(1, Ordering::Relaxed);
        let left = deadline.map(|d| d.saturating_sub(sys::now_ns()));
        let left = nap(left, set.bell());
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
        n = kept + set.collect(&mut events[kept..], Look::Now);
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
    kept + set.collect(&mut events[kept..], Look::Now)
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
        n = set.collect(events, Look::Awake);
        n > 0
    };
    if !patience::spin(SPINS, &mut check) {
        patience::yield_until(deadline, &mut check);
    }
    n
}
