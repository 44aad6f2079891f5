//! epoll_wait(2) and its kin.

use super::hot::Look;
use super::{set_of, Set, ASK_EVERY};
use crate::errno;
use crate::patience::{self, SPINS};
use crate::stream::wait::nap;
use crate::threads::{self, Doing, Kind};
use crate::tls;
use core::sync::atomic::{fence, Ordering};
use libc::epoll_event;
use rdma_engine::sys;

/// A kernel wait of the epoll family, as the program called it.
pub trait Sleep {
    /// Waits for up to `timeout_ns` (`None`: for ever). Libc's convention.
    fn sleep(&self, events: &mut [epoll_event], timeout_ns: Option<u64>) -> i32;
}

/// The calling thread asks the kernel, whose report of an edge comes once. A thread
/// that is cancelled with the report in its hands leaves by an unwind, which drops
/// this; one whose handler jumps finds the word at its next wait.
struct Asking<'a> {
    set: &'a Set,
    /// The word of the wait that this one, in a handler, has interrupted.
    before: u32,
}

impl Asking<'_> {
    fn begin(set: &Set) -> Asking<'_> {
        Asking {
            set,
            before: tls::get().asking.replace(set.index() + 1),
        }
    }

    /// The report has been sorted out.
    fn end(self) {
        tls::get().asking.set(self.before);
        core::mem::forget(self);
    }
}

impl Drop for Asking<'_> {
    #[cold]
    fn drop(&mut self) {
        tls::get().asking.set(self.before);
        self.set.ask_again();
    }
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
    if tls::get().asking.get() == set.index() + 1 {
        tls::get().asking.set(0);
        set.ask_again();
    }
    let slept = (set.taken.load(Ordering::Acquire) == 0).then(|| {
        let doing = Doing::begin(Kind::SleepEpoll, set.index());
        // Who takes a stream over now sees the mark, or is seen here. Partner: the
        // fence in `wake`.
        fence(Ordering::SeqCst);
        let asking = Asking::begin(set);
        let n = (set.taken.load(Ordering::Acquire) == 0).then(plain);
        drop(doing);
        let kept = match n {
            // Taken over while we slept, or a late ring of our own.
            Some(n) if n > 0 && set.is_touched() => Some(set.sift(&mut events[..n as usize])),
            _ => None,
        };
        asking.end();
        (n, kept)
    });
    match slept {
        Some((_, Some(kept))) => {
            let n = set.collect_behind(kept, events, Look::Now);
            if n > 0 || timeout_ns == Some(0) {
                set.hand_over();
                return n as i32;
            }
        }
        Some((Some(n), None)) => return n,
        _ => {}
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
        let asking = Asking::begin(set);
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
            asking.end();
            return r;
        }
        let kept = set.sift(&mut events[..r as usize]);
        asking.end();
        n = set.collect_behind(kept, events, Look::Now);
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
    let asking = Asking::begin(set);
    let r = sleeper.sleep(events, Some(0));
    if r < 0 {
        asking.end();
        errno::set(saved);
        return 0;
    }
    let kept = set.sift(&mut events[..r as usize]);
    asking.end();
    set.collect_behind(kept, events, Look::Now)
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
