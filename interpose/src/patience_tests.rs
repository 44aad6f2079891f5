//! Yielding is given up for its cost, and comes back: by a clock that only the tests
//! move.

use super::*;
use std::cell::Cell;

const US: u64 = 1000;
const MS: u64 = 1000 * US;

/// A processor whose yields take what the test says.
struct Machine {
    losses: Losses,
    now: Cell<u64>,
    yields: Cell<u32>,
}

impl Machine {
    /// Some time after the machine was started.
    fn new() -> Machine {
        Machine {
            losses: Losses::new(),
            now: Cell::new(1_000_000 * MS),
            yields: Cell::new(0),
        }
    }

    fn rest(&self, ns: u64) {
        self.now.set(self.now.get() + ns);
    }

    /// A wait whose yields take `took` each; ends as [`yield_until`] does.
    fn wait(&self, took: u64, check: impl FnMut() -> bool) -> Option<u64> {
        self.wait_for(YIELD_NS, u64::MAX, took, check)
    }

    fn wait_for(
        &self,
        limit: u64,
        end: u64,
        took: u64,
        check: impl FnMut() -> bool,
    ) -> Option<u64> {
        let yields = || {
            self.yields.set(self.yields.get() + 1);
            self.rest(took);
        };
        let clock = || self.now.get();
        self.losses.yield_until(limit, end, clock, yields, check)
    }

    /// Long yields, 200 us each, that lose `ns` in all.
    fn lose(&self, ns: u64) {
        for _ in 0..ns / (200 * US) {
            let before = self.yields.get();
            let seen = self.wait_for(LATENCY_NS, u64::MAX, 200 * US, || false);
            assert_eq!(seen, None);
            assert_eq!(self.yields.get(), before + 1, "a long yield is the last");
        }
    }

    fn given_up(&self) -> bool {
        let before = self.yields.get();
        let after = self.wait(US, || true);
        assert_eq!(after.is_none(), self.yields.get() == before);
        after.is_none()
    }

    /// Says for how many ms, to the next, yielding is given up.
    fn comes_back_after(&self) -> u64 {
        assert!(self.given_up());
        let mut ms = 0;
        while self.losses.given_up(self.now.get()) {
            assert!(ms < 10_000, "it never comes back");
            self.rest(MS);
            ms += 1;
        }
        assert!(!self.given_up());
        ms
    }
}

#[test]
fn a_wait_ends_with_its_reason_its_stage_or_its_deadline() {
    let m = Machine::new();
    let mut looks = 0;
    let third = || {
        looks += 1;
        looks == 3
    };
    assert_eq!(m.wait(2 * US, third), Some(6 * US));
    m.yields.set(0);
    assert_eq!(m.wait(3 * US, || false), None);
    assert_eq!(m.yields.replace(0), 7, "20 us are over");
    let end = m.now.get() + 10 * US;
    assert_eq!(m.wait_for(YIELD_NS, end, 5 * US, || false), None);
    assert_eq!(m.yields.get(), 2);
}

#[test]
fn what_comes_during_a_long_yield_is_seen() {
    let m = Machine::new();
    assert_eq!(m.wait(200 * US, || true), Some(200 * US));
}

#[test]
fn yielding_is_given_up_after_8_ms_and_comes_back() {
    let m = Machine::new();
    m.lose(7800 * US);
    assert!(!m.given_up());
    m.lose(200 * US);
    assert_eq!(m.comes_back_after(), 16);
}

#[test]
fn yields_of_150_us_are_no_loss() {
    let m = Machine::new();
    for _ in 0..1000 {
        assert_eq!(m.wait(150 * US, || false), None);
    }
    assert!(!m.given_up());
}

#[test]
fn losses_of_different_windows_are_not_summed() {
    let m = Machine::new();
    for _ in 0..10 {
        m.lose(6 * MS);
        m.rest(60 * MS);
        assert!(!m.given_up());
    }
    // One window more, not quite over.
    m.lose(6 * MS);
    m.rest(50 * MS);
    m.lose(2 * MS);
    assert!(m.given_up());
}

#[test]
fn it_is_given_up_for_longer_each_time_and_half_a_second_at_the_most() {
    let m = Machine::new();
    for ms in [16, 32, 64, 128, 256, 512, 512] {
        m.lose(8 * MS);
        assert_eq!(m.comes_back_after(), ms);
    }
    // A window without much loss: that counts for nothing any more.
    m.rest(65 * MS);
    m.lose(8 * MS);
    assert_eq!(m.comes_back_after(), 16);
}

/// Threads that yielded at the same time tell of the same loss.
#[test]
fn what_other_threads_lost_meanwhile_does_not_make_it_longer() {
    let m = Machine::new();
    m.lose(8 * MS);
    let now = m.now.get();
    for _ in 0..100 {
        assert!(m.losses.judge(now + US, 8 * MS));
    }
    assert_eq!(m.comes_back_after(), 16);
}
