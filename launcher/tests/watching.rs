//! What `--stats`, `--require` and `--log` say. The test stands in for the library:
//! it maps the arena that the launcher has made and writes what a library would.

mod support;

use rdma_engine::abi::arena::flags;
use rdma_engine::abi::log::{Event, NO_SLOT};
use rdma_engine::abi::reason::Reason;
use rdma_engine::arena::ArenaRef;
use std::fs;
use std::process::{Child, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use support::{arena_of, sidewire, stderr, Scratch};

/// A program under a watching launcher, which ends when its input does.
fn start(scratch: &Scratch, options: &[&str]) -> (Child, ArenaRef) {
    let args = [&["run"], options, &["cat"]].concat();
    let mut command = sidewire(scratch, &args);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let arena = arena_of(&child);
    (child, arena)
}

/// A stream in slot `index`, held by nobody who lives.
fn leave_stream(arena: ArenaRef, index: u32, bytes: u64, fast: bool, reason: Reason) {
    let slot = arena.slot(index).unwrap();
    slot.holders[0].store(i32::MAX as u32, Relaxed);
    slot.tcp.sent.store(bytes, Relaxed);
    slot.tx.wire_bytes.store(10 * bytes, Relaxed);
    slot.tcp.received.store(100 * bytes, Relaxed);
    slot.rx.wire_bytes.store(1000 * bytes, Relaxed);
    slot.reason.store(reason as u32, Relaxed);
    if fast {
        slot.flags.store(flags::WAS_FAST, Relaxed);
    }
    slot.generation.store(1, Relaxed);
    arena.header().high.fetch_max(index + 1, Relaxed);
}

#[test]
fn ended_and_abandoned_streams_add_up() {
    let scratch = Scratch::new();
    let file = scratch.path("stats.json");
    let (child, arena) = start(
        &scratch,
        &["--stats", "--stats-file", file.to_str().unwrap()],
    );
    let h = arena.header();
    h.streams.store(5, Relaxed);
    h.fast.store(3, Relaxed);
    h.tcp_in.store(1, Relaxed);
    h.tcp_out.store(2, Relaxed);
    h.wire_in.store(3, Relaxed);
    h.wire_out.store(4, Relaxed);
    h.reasons[Reason::Cold as usize].store(2, Relaxed);
    leave_stream(arena, 0, 1, true, Reason::None);
    leave_stream(arena, 2, 1, false, Reason::Cold);
    arena
        .slot(3)
        .unwrap()
        .pin
        .store(Reason::Urgent as u32, Relaxed);
    leave_stream(arena, 3, 0, false, Reason::Cold);
    let pid = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let expected = "sidewire: 8 TCP streams, 4 fast\n\
        sidewire: sent 24 by shared memory, 4 by TCP\n\
        sidewire: received 2.0K by shared memory, 201 by TCP\n\
        sidewire: not fast: 3 x cold: too few messages so far\n\
        sidewire: not fast: 1 x pinned: urgent data\n";
    assert_eq!(stderr(&out), expected);
    let json = format!(
        "{{\"pid\":{},\"streams\":8,\"fast\":4,\"shm_in\":2003,\"shm_out\":24,\"tcp_in\":201,\
         \"tcp_out\":4,\"reasons\":{{\"cold: too few messages so far\":3,\
         \"pinned: urgent data\":1}}}}\n",
        pid.trim()
    );
    assert_eq!(fs::read_to_string(file).unwrap(), json);
}

#[test]
fn require_is_content_with_one_fast_stream() {
    let scratch = Scratch::new();
    for (fast, code) in [(true, 0), (false, 125)] {
        let (child, arena) = start(&scratch, &["--require"]);
        leave_stream(arena, 0, 1, fast, Reason::NoPeer);
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(code));
        let expected = if fast {
            String::new()
        } else {
            let why = Reason::NoPeer.text();
            format!("sidewire: nothing was accelerated\nsidewire: not fast: 1 x {why}\n")
        };
        assert_eq!(stderr(&out), expected);
    }
}

#[test]
fn log_records_are_decoded() {
    let scratch = Scratch::new();
    let (child, arena) = start(&scratch, &["--log", "info"]);
    arena.log(Event::Loaded, NO_SLOT, 0, [0, 0]);
    arena.log(Event::Opened, 0, 1, [5, 1]);
    let slot = arena.slot(0).unwrap();
    let ip = |last| [u32::from_ne_bytes([127, 0, 0, last]), 0, 0, 0];
    slot.local.set(libc::AF_INET as u16, 5000, ip(1));
    slot.remote.set(libc::AF_INET as u16, 80, ip(2));
    leave_stream(arena, 0, 0, false, Reason::Cold);
    arena.log(Event::Refused, 0, 1, [Reason::Owner as u64, 0]);
    arena.log(Event::CutOver, 0, 3, [1, 2]);
    let out = child.wait_with_output().unwrap();
    let text = stderr(&out);
    let us = std::process::id();
    let lines: Vec<&str> = text
        .lines()
        .map(|l| l.split_once(&format!(" {us} ")).unwrap().1)
        .collect();
    assert_eq!(
        lines,
        [
            "info  library loaded",
            "info  127.0.0.1:5000 > 127.0.0.2:80: stays on TCP for now (refused: owner differs)",
            "info  #0.3: send direction moves to the wire (epoch 1, tcp_bytes 2)",
        ]
    );
}

#[test]
fn a_flood_of_records_shows_a_gap() {
    let scratch = Scratch::new();
    let (child, arena) = start(&scratch, &["--log", "debug"]);
    for i in 0..100_000 {
        arena.log(Event::Trace, NO_SLOT, 0, [i, 0]);
    }
    let out = child.wait_with_output().unwrap();
    let text = stderr(&out);
    assert!(text.ends_with("trace (a 99999, b 0)\n"));
    let printed = text.matches("trace (a").count();
    let gaps = text.lines().filter_map(|l| {
        l.strip_prefix("sidewire: (")?
            .split(' ')
            .next()?
            .parse::<usize>()
            .ok()
    });
    assert_eq!(printed + gaps.sum::<usize>(), 100_000);
}

/// Whatever a program writes there, the launcher neither fails nor hangs.
#[test]
fn garbage_in_the_arena() {
    let scratch = Scratch::new();
    let (child, arena) = start(&scratch, &["--stats", "--log", "debug"]);
    let h = arena.header();
    let mut x = 7u64;
    let mut random = move || {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        x
    };
    for word in [&h.streams, &h.fast, &h.tcp_in, &h.wire_out] {
        word.store(random() | 1 << 63, Relaxed);
    }
    for index in 0..200 {
        leave_stream(arena, index, random() >> 11, false, Reason::Unknown);
        let slot = arena.slot(index).unwrap();
        slot.tx.wire_bytes.store(u64::MAX, Relaxed);
        slot.reason.store(random() as u32, Relaxed);
        slot.local.family_port.store(random() as u32, Relaxed);
    }
    h.high.store(u32::MAX, Relaxed);
    h.log_next.store(u64::MAX - 5, Relaxed);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    assert!(stderr(&out).contains(" TCP streams, "));
}
