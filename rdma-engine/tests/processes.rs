//! Several processes on one end, of which some are killed in the midst of it.

#![cfg(not(loom))]

mod common;

use common::{Wire, LONGEST};
use rdma_engine::sys;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A child that runs `f` until it is killed or has done.
fn child(f: impl FnOnce()) -> i32 {
    // SAFETY: the child calls nothing but raw system calls and the ring, whose
    // code is async-signal-safe, and leaves by _exit(2).
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            f();
            libc::_exit(0);
        }
        pid
    }
}

fn kill(pid: i32) {
    // SAFETY: a child of ours that nobody has waited for.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

fn wait(pid: i32) {
    // SAFETY: as above; no status is asked for.
    unsafe { libc::waitpid(pid, core::ptr::null_mut(), 0) };
}

fn push_until(w: Wire, source: u32, count: u32) {
    let (mut number, mut n) = (0, 12);
    while number < count {
        n = ((n * 5 + 4) % LONGEST) & !3;
        if w.push(source, number, n.max(12)) {
            number += 1;
        } else {
            sys::sched_yield();
        }
    }
}

/// Records of each source so far; they come in order.
#[derive(Default)]
struct Came(HashMap<u32, u32>);

impl Came {
    fn take(&mut self, w: Wire) -> bool {
        let Some((source, number)) = w.pull(&mut [0; LONGEST]) else {
            return false;
        };
        let next = self.0.entry(source).or_default();
        assert_eq!(number, *next, "of {source}");
        *next += 1;
        true
    }

    fn of(&self, source: u32) -> u32 {
        self.0.get(&source).copied().unwrap_or(0)
    }
}

#[test]
fn bytes_of_another_process() {
    let w = Wire::new();
    let pid = child(|| push_until(w, 1, 20_000));
    let mut came = Came::default();
    while came.of(1) < 20_000 {
        if !came.take(w) {
            sys::sched_yield();
        }
    }
    wait(pid);
}

/// Two processes push through one end. One after the other is killed and stays a
/// zombie, whatever it held at that moment; its siblings and the reader go on.
#[test]
fn killed_writers_hold_nobody_up() {
    let w = Wire::new();
    let mut came = Came::default();
    let steady = child(|| push_until(w, 0, u32::MAX));
    let mut dead = Vec::new();
    for round in 1..=30 {
        let pid = child(|| push_until(w, round, u32::MAX));
        let end = Instant::now() + Duration::from_micros(u64::from(7 * round * round));
        while Instant::now() < end || came.of(round) == 0 {
            came.take(w);
        }
        kill(pid);
        dead.push(pid);
        let before = came.of(0);
        let end = Instant::now() + Duration::from_secs(20);
        while came.of(0) < before + 500 {
            came.take(w);
            assert!(Instant::now() < end, "the end hangs in round {round}");
        }
    }
    kill(steady);
    dead.push(steady);
    for pid in dead {
        wait(pid);
    }
}

/// A reader is killed; another takes over where it stood.
#[test]
fn a_killed_reader_is_followed_by_another() {
    let w = Wire::new();
    let writer = child(|| push_until(w, 0, u32::MAX));
    let mut last = None;
    for round in 0..20u32 {
        let pid = child(|| loop {
            if w.pull(&mut [0; LONGEST]).is_none() {
                sys::sched_yield();
            }
        });
        std::thread::sleep(Duration::from_micros(u64::from(1000 + 13 * round * round)));
        kill(pid);
        let end = Instant::now() + Duration::from_secs(20);
        let mut got = 0;
        while got < 100 {
            if let Some((_, number)) = w.pull(&mut [0; LONGEST]) {
                // While the two read beside each other, each has its own part.
                assert!(Some(number) > last);
                last = Some(number);
                got += 1;
            }
            assert!(Instant::now() < end, "the end hangs in round {round}");
        }
        wait(pid);
    }
    kill(writer);
    wait(writer);
}
