//! The lock, robbed by handlers and left behind by the dead.

#![cfg(not(loom))]

use rdma_engine::lock::{Acquired, Lock};
use rdma_engine::sys;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A lock in memory that a fork shares.
fn shared() -> &'static Lock {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new range, zeroed: a free lock.
    unsafe {
        let p = sys::mmap(core::ptr::null_mut(), 4096, flags, -1).expect("mmap");
        &*p.cast::<Lock>()
    }
}

#[test]
fn a_robbed_frame_frees_nothing() {
    let lock = Lock::new();
    assert_eq!(lock.acquire(1), Acquired::Clean);
    // Its handler robs it and has done.
    assert_eq!(lock.acquire(1), Acquired::Stolen);
    lock.release(1);
    // Another thread comes before the robbed frame has ended.
    assert_eq!(lock.acquire(2), Acquired::Clean);
    lock.release(1);
    assert!(!lock.try_acquire(3));
    lock.release(2);
    assert!(lock.try_acquire(3));
}

#[test]
fn a_frame_whose_handler_has_freed_the_lock_may_be_robbed_again() {
    let lock = Lock::new();
    assert_eq!(lock.acquire(1), Acquired::Clean);
    assert_eq!(lock.acquire(1), Acquired::Stolen);
    lock.release(1);
    // The second handler finds it free, and the ring must know by itself.
    assert_eq!(lock.acquire(1), Acquired::Clean);
    lock.release(1);
    lock.release(1);
    assert_eq!(lock.acquire(2), Acquired::Clean);
}

#[test]
fn trying_neither_waits_nor_robs_the_living() {
    let lock = Lock::new();
    let me = sys::gettid();
    assert!(lock.try_acquire(me));
    assert!(!lock.try_acquire(me));
    std::thread::scope(|s| {
        s.spawn(|| assert!(!lock.try_acquire(sys::gettid())));
    });
    lock.release(me);
    assert!(lock.try_acquire(me));
}

/// Waits until the kernel knows thread `tid` as dead: a join(3) ends a little earlier,
/// when the thread's stack is free.
fn dies(tid: u32) {
    let end = Instant::now() + Duration::from_secs(10);
    while sys::alive(tid) {
        assert!(Instant::now() < end, "the dead {tid} passes for alive");
        sys::sched_yield();
    }
}

#[test]
fn a_dead_thread_holds_nobody_up() {
    let lock = Lock::new();
    let hold = || {
        let take = || (sys::gettid(), lock.acquire(sys::gettid()));
        let (tid, how) = std::thread::scope(|s| s.spawn(take).join().unwrap());
        assert_eq!(how, Acquired::Clean);
        tid
    };
    hold();
    assert_eq!(lock.acquire(sys::gettid()), Acquired::Orphaned);
    lock.release(sys::gettid());
    dies(hold());
    assert!(lock.try_acquire(sys::gettid()));
}

/// A process that was killed, and that its parent has not waited for.
#[test]
fn a_zombie_holds_nobody_up() {
    let lock = shared();
    // SAFETY: the child takes the lock and leaves; both are async-signal-safe.
    let pid = unsafe {
        let pid = libc::fork();
        if pid == 0 {
            lock.acquire(sys::gettid());
            libc::_exit(0);
        }
        pid
    };
    dies(pid as u32);
    assert_eq!(lock.acquire(sys::gettid()), Acquired::Orphaned);
    // SAFETY: a child of ours; no status is asked for.
    unsafe { libc::waitpid(pid, core::ptr::null_mut(), 0) };
}

#[test]
fn one_holder_at_a_time() {
    let lock = Lock::new();
    let (inside, count) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let me = sys::gettid();
                for _ in 0..5000 {
                    assert_eq!(lock.acquire(me), Acquired::Clean);
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    count.fetch_add(1, Ordering::Relaxed);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    lock.release(me);
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 20_000);
}
