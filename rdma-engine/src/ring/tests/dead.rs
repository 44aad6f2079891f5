//! Frames that end in the midst of a push or a pull, at any instruction, and
//! never go on: their thread dies, or a handler leaves them by siglongjmp(3).

use super::step::{at_every_point, interrupt};
use super::wire::{bytes, take, Tag, Wire};
use super::world::*;
use crate::abi::record::CHUNKS;
use crate::ring::*;
use crate::sync::AtomicU64;
use crate::{sys, syscall};
use core::ffi::c_void;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// What a thread does to a world until it dies.
struct Doomed<'a> {
    world: &'a World,
    /// The instruction behind which it dies.
    at: u64,
    act: fn(&World, u32),
    /// Instructions that it came through.
    steps: u64,
}

extern "C" fn live_and_die(doomed: *mut c_void) -> *mut c_void {
    // SAFETY: `dies` waits for this thread, and looks at it only then.
    let doomed = unsafe { &mut *doomed.cast::<Doomed>() };
    doomed.steps = doomed.at;
    let me = sys::gettid();
    let steps = interrupt(doomed.at, || (doomed.act)(doomed.world, me), &mut || {
        // SAFETY: ends this thread alone, at once; nothing it owns is used.
        unsafe { syscall!(libc::SYS_exit, 0) };
    });
    doomed.steps = steps;
    core::ptr::null_mut()
}

/// Lets a thread die behind its `at`th instruction of `act`.
fn dies(world: &World, at: u64, act: fn(&World, u32)) -> u64 {
    let mut doomed = Doomed {
        world,
        at,
        act,
        steps: 0,
    };
    // SAFETY: the thread has ended before `doomed` goes.
    unsafe {
        let mut thread: libc::pthread_t = core::mem::zeroed();
        let arg = (&mut doomed as *mut Doomed).cast();
        let made = libc::pthread_create(&mut thread, core::ptr::null(), live_and_die, arg);
        assert_eq!(made, 0);
        assert_eq!(libc::pthread_join(thread, core::ptr::null_mut()), 0);
    }
    doomed.steps
}

#[test]
fn a_thread_dies_in_a_push() {
    let w = World::new();
    let act = |w: &World, me: u32| {
        assert!(!take(&w.wire.tx_lock, me));
        let (source, number) = (VICTIM as u32, 0);
        w.push_unnoted(&w.wire.producer(false), Tag { source, number }, 16, LIMIT);
        w.wire.tx_lock.release(me);
    };
    for before in [600, 40] {
        at_every_point(|at| {
            w.reset();
            w.advance(before);
            let steps = dies(&w, at, act);
            let me = sys::gettid();
            let stolen = take(&w.wire.tx_lock, me);
            assert_eq!(w.push(HANDLER, 16, LIMIT, stolen), Push::Done(16));
            w.wire.tx_lock.release(me);
            w.laps(PEER, false);
            w.assert_whole_but_for_one();
            steps
        });
    }
}

#[test]
fn a_thread_dies_in_a_pull() {
    let w = World::new();
    let act = |w: &World, me: u32| {
        assert!(!take(&w.wire.rx_lock, me));
        w.pull_unseen(VICTIM);
        w.wire.rx_lock.release(me);
    };
    for before in [600, 40] {
        at_every_point(|at| {
            w.reset();
            w.advance(before);
            (0..3).for_each(|_| assert_eq!(w.push(PEER, 16, LIMIT, false), Push::Done(16)));
            let steps = dies(&w, at, act);
            let me = sys::gettid();
            take(&w.wire.rx_lock, me);
            w.drain(HANDLER);
            w.wire.rx_lock.release(me);
            // What the dead thread has taken counts, for the producer too.
            let left = w.wire.tx.in_flight(&w.wire.mem, w.wire.consumed());
            assert_eq!(left, 0);
            w.laps(PEER, false);
            w.assert_whole_but_for_one();
            steps
        });
    }
}

/// A thread dies between taking the last bytes and publishing that. Nothing comes
/// any more whose taking would publish it too: the next look must.
#[test]
fn a_look_at_an_empty_place_publishes_what_the_dead_have_taken() {
    let wire = Wire::new();
    let left = || wire.tx.in_flight(&wire.mem, wire.consumed());
    assert_eq!(wire.push(&bytes(0, 100), LIMIT, false), Push::Done(100));
    // To die there is to publish nothing where the producer looks.
    let nowhere = AtomicU64::new(0);
    let dead = Consumer::new(&wire.mem, &wire.rx, &nowhere);
    assert_eq!(dead.pull(100, |_, _, n| Ok(n)), Pull::Data(100));
    assert_eq!(left(), 100);
    assert_eq!(wire.consumer().peek(), Peek::Empty);
    assert_eq!(left(), 0);
}

/// A thread dies while it gives a chunk's memory back, and the others go on.
#[test]
fn a_thread_dies_giving_a_chunk_back() {
    let w = World::new();
    w.wire.rx.given_by(dead_thread());
    w.laps(PEER, false);
    w.assert_whole(true);
}

/// The id of a thread that is no more.
fn dead_thread() -> u32 {
    std::thread::spawn(sys::gettid).join().unwrap()
}

/// Each frame that is left in the midst of its copy costs a chunk. Long before
/// none is left, the ring says that the direction should go back to TCP.
#[test]
fn frames_that_never_go_on_wear_the_ring_out() {
    let wire = Wire::new();
    let mut taken = Vec::new();
    let mut pushed = 0;
    let mut lost = 0;
    while !wire.tx.is_worn() {
        // What siglongjmp does, from the ring's view.
        let left = catch_unwind(AssertUnwindSafe(|| {
            let p = wire.producer(true);
            p.push(100, LIMIT, false, |_, _, _| resume_unwind(Box::new(())))
        }));
        assert!(left.is_err());
        lost += 1;
        let p = wire.producer(true);
        let n = p.push(100, LIMIT, false, |mem, off, n| {
            // SAFETY: `n` bytes are valid in the ring.
            unsafe { mem.bytes(off, n).write_bytes(7, n as usize) };
            Ok(n)
        });
        assert_eq!(n, Push::Done(100));
        pushed += 100;
        assert_eq!(wire.pull(&mut taken, 100), Pull::Data(100));
    }
    assert_eq!(lost, CHUNKS / 2 + 1);
    assert!(taken.len() == pushed && taken.iter().all(|b| *b == 7));
    assert!(wire.producer(false).push_cut_back());
    assert!(wire.consumer().pass_cut_back());
}
