//! A signal handler behind every instruction of what has but a few.

use super::step::{at_each_of_few, interrupt};
use super::world::*;
use crate::abi::record::RING;
use crate::lock::{Acquired, Lock};
use std::cell::Cell;

/// The handler robs the lock and gives it back, and another thread takes it before
/// the interrupted release goes on.
#[test]
fn a_release_frees_no_lock_of_another_thread() {
    const ME: u32 = 7;
    const OTHER: u32 = 8;
    at_each_of_few(|at| {
        let lock = Lock::new();
        assert_eq!(lock.acquire(ME), Acquired::Clean);
        let others = Cell::new(false);
        let steps = interrupt(at, || lock.release(ME), &mut || {
            lock.acquire(ME);
            lock.release(ME);
            others.set(lock.acquire(OTHER) == Acquired::Clean);
        });
        let how = lock.acquire(OTHER);
        assert_eq!(others.get(), how == Acquired::Stolen, "behind {at}");
        assert_eq!(others.get(), steps == at);
        steps
    });
}

/// Bytes that are pushed and taken between the two loads: what is in flight may be too
/// much then, and never less than nothing.
fn passes_by(in_flight: fn(&World) -> u64) {
    let w = World::new();
    let n = Cell::new(0);
    at_each_of_few(|at| {
        w.reset();
        n.set(u64::MAX);
        let steps = interrupt(at, || n.set(in_flight(&w)), &mut || {
            w.push(HANDLER, 16, LIMIT, false);
            w.pull(HANDLER);
        });
        assert!(n.get() <= RING as u64, "behind {at}: {}", n.get());
        steps
    });
}

#[test]
fn a_message_passes_by_while_the_state_is_asked() {
    passes_by(|w| w.wire.tx.in_flight(&w.wire.mem, w.wire.consumed()));
}

#[test]
fn a_message_passes_by_while_the_producer_is_asked() {
    passes_by(|w| {
        let n = w.wire.producer(false).in_flight();
        n.map_or(u64::MAX, |n| n as u64)
    });
}
