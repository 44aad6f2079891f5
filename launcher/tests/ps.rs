//! `sidewire ps` on arenas that this test makes, good ones and hostile ones.

mod support;

use rdma_engine::abi::arena::{RxMode, SIZE, SLOTS_AT};
use rdma_engine::abi::reason::Reason;
use rdma_engine::arena::{self, ArenaRef};
use serde_json::Value;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{command, sidewire, stderr, stdout, Scratch};

/// An arena that this process holds open, as one with the library would.
fn new_arena() -> (File, ArenaRef) {
    // SAFETY: the new descriptor is nobody else's.
    let file = unsafe { File::from_raw_fd(arena::create().unwrap()) };
    let arena = arena::map(file.as_raw_fd()).unwrap();
    (file, arena)
}

/// Memory with the arena's name and any content.
fn impostor(size: u64, fill: &[(u64, &[u8])]) -> File {
    // SAFETY: a constant C string; the new descriptor is nobody else's.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"sidewire-arena".as_ptr(), 0)) };
    file.set_len(size).unwrap();
    for (at, bytes) in fill {
        file.write_all_at(bytes, *at).unwrap();
    }
    file
}

fn use_slot(arena: ArenaRef, index: u32, holder: u32) {
    let slot = arena.slot(index).unwrap();
    slot.holders[1].store(holder, Ordering::Relaxed);
    let ip = [u32::from_ne_bytes([127, 0, 0, 1]), 0, 0, 0];
    slot.local.set(libc::AF_INET as u16, 5000, ip);
    let mapped = [0, 0, u32::from_ne_bytes([0, 0, 255, 255]), ip[0]];
    slot.remote.set(libc::AF_INET6 as u16, 80, mapped);
    slot.generation.store(7, Ordering::Release);
    arena.header().high.fetch_max(index + 1, Ordering::Relaxed);
}

fn ps(scratch: &Scratch, args: &[&str]) -> String {
    let out = sidewire(scratch, &[&["ps"], args].concat())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    // Who runs the tests, and what else runs on this host, decides whether there are notes.
    let said = stderr(&out);
    let note = |l: &str| l.contains(" of other users ") || l.contains(" of another version ");
    assert!(said.lines().all(note), "{said}");
    stdout(&out)
}

/// The rows of one arena.
fn rows(scratch: &Scratch, args: &[&str], file: &File) -> Vec<Value> {
    let text = ps(scratch, &[&["--json"], args].concat());
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    let inode = file.metadata().unwrap().st_ino();
    all.into_iter().filter(|v| v["arena"] == inode).collect()
}

#[test]
fn a_stream_in_all_its_states() {
    let scratch = Scratch::new();
    let (file, arena) = new_arena();
    assert_eq!(rows(&scratch, &[], &file), [] as [Value; 0]);
    let us = std::process::id();
    use_slot(arena, 3, us);
    let slot = arena.slot(3).unwrap();
    slot.reason.store(Reason::Cold as u32, Ordering::Relaxed);
    slot.tcp.sends.store(4, Ordering::Relaxed);
    slot.tcp.received.store(99, Ordering::Relaxed);

    let found = rows(&scratch, &[], &file);
    assert_eq!(found.len(), 1);
    let row = &found[0];
    assert_eq!(row["pid"], us);
    assert!(row["program"].as_str().unwrap().starts_with("ps-"));
    assert_eq!(row["local"], "127.0.0.1:5000");
    assert_eq!(row["remote"], "127.0.0.1:80");
    assert_eq!(
        (&row["out"]["state"], &row["in"]["state"]),
        (&"TCP".into(), &"TCP".into())
    );
    assert_eq!(row["out"]["messages"], 4);
    assert_eq!(row["in"]["tcp_bytes"], 99);
    assert_eq!(row["reason"], Reason::Cold.text());
    assert_eq!(row["wire"], "tcp");

    slot.tx.fast.store(1, Ordering::Relaxed);
    slot.rx
        .mode
        .store(RxMode::Promised as u32, Ordering::Relaxed);
    slot.reason.store(0, Ordering::Relaxed);
    let row = &rows(&scratch, &[], &file)[0];
    assert_eq!(
        (&row["out"]["state"], &row["in"]["state"]),
        (&"Fast".into(), &"Ready".into())
    );
    assert_eq!(row["wire"], "shm");

    slot.rx.mode.store(RxMode::Fast as u32, Ordering::Relaxed);
    let row = &rows(&scratch, &[], &file)[0];
    assert_eq!(
        (&row["in"]["state"], &row["reason"]),
        (&"Fast".into(), &Value::Null)
    );

    let text = ps(&scratch, &[]);
    let line = text.lines().find(|l| l.contains("127.0.0.1:5000")).unwrap();
    assert!(line.trim_start().starts_with(&us.to_string()), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 120), "{text}");

    slot.generation.store(8, Ordering::Release);
    assert!(rows(&scratch, &["--all"], &file).is_empty());
}

#[test]
fn what_the_dead_left_is_shown_on_demand() {
    let scratch = Scratch::new();
    let (file, arena) = new_arena();
    use_slot(arena, 0, i32::MAX as u32);
    assert!(rows(&scratch, &[], &file).is_empty());
    let found = rows(&scratch, &["--all"], &file);
    assert_eq!((found.len(), &found[0]["pid"]), (1, &Value::Null));
}

/// Every word of it is a lie.
#[test]
fn hostile_arenas() {
    let scratch = Scratch::new();
    let (file, arena) = new_arena();
    let mut x = 1u64;
    let mut noise = vec![0u8; 1 << 20];
    for word in noise.chunks_mut(8) {
        x = x
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        word.copy_from_slice(&x.rotate_left(17).to_ne_bytes());
    }
    file.write_all_at(&noise, SLOTS_AT as u64).unwrap();
    arena.header().high.store(u32::MAX, Ordering::Relaxed);
    let mut header = [0; 16];
    file.read_exact_at(&mut header, 0).unwrap();
    let mut other_version = header;
    other_version[8] ^= 0xff;
    let _impostors = [
        impostor(0, &[]),
        impostor(100, &[(0, &noise[..100])]),
        impostor(SIZE as u64, &[(0, &noise[..4096])]),
        impostor(SIZE as u64, &[(0, &other_version)]),
        impostor(SLOTS_AT as u64 + 100, &[(0, &header), (64, &[0xff; 64])]),
        impostor(1 << 40, &[(0, &header)]),
    ];
    let found = rows(&scratch, &["--all"], &file);
    assert!(found.len() > 100, "{}", found.len());
    let text = ps(&scratch, &["--all"]);
    assert!(text.lines().all(|l| l.chars().count() <= 120), "{text}");
    assert!(text.contains("of another version"), "{text}");
}

/// Slots that change hands all the time, and processes that come and go.
#[test]
fn nothing_holds_still() {
    let scratch = Scratch::new();
    let (file, arena) = new_arena();
    let us = std::process::id();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let slot = arena.slot(0).unwrap();
            use_slot(arena, 0, us);
            let mut n = 7u32;
            while !stop.load(Ordering::Relaxed) {
                // All words of one use are the same number; a mixture shows.
                n = n.wrapping_add(1);
                slot.generation.store(2 * n, Ordering::SeqCst);
                slot.tcp.sent.store(u64::from(n), Ordering::SeqCst);
                slot.tcp.receives.store(u64::from(n), Ordering::SeqCst);
                slot.generation.store(2 * n + 1, Ordering::SeqCst);
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                Command::new("true").status().unwrap();
            }
        });
        let mut seen = 0;
        for _ in 0..40 {
            for row in rows(&scratch, &[], &file) {
                assert_eq!(row["out"]["tcp_bytes"], row["in"]["messages"]);
                seen += 1;
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!("{seen} of 40 looks found the slot at rest");
    });
}

#[test]
fn other_users_are_counted() {
    // SAFETY: no arguments.
    if unsafe { libc::getuid() } != 0 {
        println!("skipped: needs root to become another user");
        return;
    }
    let scratch = Scratch::new();
    let (_file, arena) = new_arena();
    use_slot(arena, 0, std::process::id());
    // From /proc, so that no directory on the way needs to be open to all.
    let launcher = File::open(env!("CARGO_BIN_EXE_sidewire")).unwrap();
    let path = format!("/proc/self/fd/{}", launcher.as_raw_fd());
    let library = scratch.library(rdma_engine::abi::VERSION);
    let mut run = command(path, &library);
    let fd = launcher.as_raw_fd();
    // SAFETY: system calls without memory, in the forked child.
    unsafe {
        run.pre_exec(move || {
            libc::fcntl(fd, libc::F_SETFD, 0);
            Ok(())
        });
    }
    run.arg("ps").uid(65534).gid(65534);
    let note = "of other users cannot be looked into (root can)\n";
    let out = run.output().unwrap();
    let text = stdout(&out);
    assert!(text.starts_with("no streams\n"), "{text}");
    assert!(text.contains(note), "{text}");
    assert_eq!(stderr(&out), "");

    let out = run.arg("--json").output().unwrap();
    assert_eq!(stdout(&out), "[]\n");
    assert!(stderr(&out).contains(note), "{}", stderr(&out));
}
