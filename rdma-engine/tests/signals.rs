//! Real signals: handlers that push and pull on the stream that they interrupt,
//! on several threads at once.

#![cfg(not(loom))]

mod common;

use common::{Wire, LONGEST};
use rdma_engine::sys;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// How long each case lasts.
const TIME: Duration = Duration::from_millis(1500);
const SIGNAL: i32 = libc::SIGUSR1;

thread_local! {
    /// What this thread's handler does: push as that source, or pull.
    static PUSHES: Cell<Option<u32>> = const { Cell::new(None) };
    static PULLS: Cell<bool> = const { Cell::new(false) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

const SOURCES: usize = 8;

/// What the threads and their handlers share.
struct Case {
    wire: Wire,
    /// Records pushed by each source.
    sent: [AtomicU32; SOURCES],
    /// Records of each source that came.
    came: [AtomicU32; SOURCES],
    interrupts: AtomicUsize,
    stop: AtomicBool,
}

static CASE: OnceLock<Case> = OnceLock::new();
/// One case at a time.
static TURN: Mutex<()> = Mutex::new(());

fn case() -> &'static Case {
    CASE.get_or_init(|| Case {
        wire: Wire::new(),
        sent: [const { AtomicU32::new(0) }; SOURCES],
        came: [const { AtomicU32::new(0) }; SOURCES],
        interrupts: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    })
}

/// Pushes the next record of `source`, if there is room.
fn push(source: u32, n: usize) -> bool {
    let sent = &case().sent[source as usize];
    let number = sent.load(Ordering::Relaxed);
    let pushed = case().wire.push(source, number, n);
    if pushed {
        sent.store(number + 1, Ordering::Relaxed);
    }
    pushed
}

fn pull(buffer: &mut [u8; LONGEST]) -> Option<(u32, u32)> {
    let got = case().wire.pull(buffer)?;
    case().came[got.0 as usize].fetch_add(1, Ordering::Relaxed);
    Some(got)
}

extern "C" fn on_signal(_: i32) {
    let depth = DEPTH.get();
    if depth < 2 && !case().stop.load(Ordering::Relaxed) {
        case().interrupts.fetch_add(1, Ordering::Relaxed);
        DEPTH.set(depth + 1);
        if let Some(source) = PUSHES.get() {
            // The handler's own handler is another source.
            push(source + 4 * depth as u32, 64);
        }
        if PULLS.get() {
            pull(&mut [0; LONGEST]);
        }
        DEPTH.set(depth);
    }
}

/// Signals for the calling thread, one each few microseconds, until it is dropped.
struct Bombardment(libc::timer_t);

impl Bombardment {
    fn new() -> Bombardment {
        // SAFETY: plain C structs, for which all zero is valid; timer_create(2)
        // fills `timer`.
        unsafe {
            let mut event: libc::sigevent = core::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = sys::gettid() as i32;
            let mut timer: libc::timer_t = core::mem::zeroed();
            let made = libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer);
            assert_eq!(made, 0);
            let mut each: libc::itimerspec = core::mem::zeroed();
            // No multiple of anything that the loops do.
            each.it_interval.tv_nsec = 17_389;
            each.it_value.tv_nsec = 17_389;
            let set = libc::timer_settime(timer, 0, &each, core::ptr::null_mut());
            assert_eq!(set, 0);
            Bombardment(timer)
        }
    }
}

impl Drop for Bombardment {
    fn drop(&mut self) {
        // SAFETY: made by timer_create(2).
        unsafe { libc::timer_delete(self.0) };
    }
}

/// `senders` threads push, each bombarded; one thread pulls, bombarded or not.
fn run(senders: u32, reader_too: bool) {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    // SAFETY: the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_NODEFER;
        assert_eq!(libc::sigaction(SIGNAL, &action, core::ptr::null_mut()), 0);
    }
    let c = case();
    for n in c.sent.iter().chain(&c.came) {
        n.store(0, Ordering::Relaxed);
    }
    c.stop.store(false, Ordering::Release);
    c.interrupts.store(0, Ordering::Relaxed);
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        let done = &done;
        let pushing: Vec<_> = (0..senders)
            .map(|i| {
                s.spawn(move || {
                    PUSHES.set(Some(2 + i));
                    let _signals = Bombardment::new();
                    let mut n = 12;
                    while !c.stop.load(Ordering::Relaxed) {
                        n = ((n * 5 + 4) % LONGEST) & !3;
                        if !push(i, n.max(12)) {
                            sys::sched_yield();
                        }
                    }
                })
            })
            .collect();
        let reader = s.spawn(move || {
            PULLS.set(reader_too);
            let _signals = reader_too.then(Bombardment::new);
            let mut buffer = [0; LONGEST];
            let mut next = [0u32; SOURCES];
            loop {
                let last = done.load(Ordering::Acquire);
                match pull(&mut buffer) {
                    Some((source, number)) if !reader_too => {
                        assert_eq!(number, next[source as usize], "of {source}");
                        next[source as usize] += 1;
                    }
                    Some(_) => {}
                    None if last => break,
                    None => sys::sched_yield(),
                }
            }
        });
        std::thread::sleep(TIME);
        c.stop.store(true, Ordering::Release);
        let pushed: Vec<_> = pushing.into_iter().map(|p| p.join()).collect();
        done.store(true, Ordering::Release);
        reader.join().unwrap();
        assert!(pushed.iter().all(|p| p.is_ok()));
    });
    let all = |n: &[AtomicU32]| {
        n.iter()
            .map(|n| n.load(Ordering::Relaxed))
            .collect::<Vec<_>>()
    };
    assert_eq!(all(&c.sent), all(&c.came));
    let interrupts = c.interrupts.load(Ordering::Relaxed);
    assert!(interrupts > 100, "{interrupts} interrupts");
}

#[test]
fn a_bombarded_sender() {
    run(1, false);
}

#[test]
fn two_bombarded_senders_on_one_end() {
    run(2, false);
}

#[test]
fn senders_and_reader_are_bombarded() {
    run(2, true);
}
