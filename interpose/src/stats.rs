//! One line of JSON at a process's exit, into the file that the environment
//! names (SIDEWIRE_STATS_FILE): what this process's streams have moved. Tests
//! and benchmarks read it; a user has `sidewire run --stats`.

use crate::streams;
use core::ffi::CStr;
use core::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use rdma_engine::abi::arena::{flags, REASONS};
use rdma_engine::abi::reason::Reason;
use rdma_engine::syscall;

/// The file's name, a copy: programs write their titles over the environment.
static NAME: [AtomicU8; 1024] = [const { AtomicU8::new(0) }; 1024];
/// The file, opened early (plus 1); 0 is «not yet».
static FILE: AtomicI32 = AtomicI32::new(0);

/// Sums of ended streams of *this process*: streams, fast, tcp in, tcp out,
/// wire in, wire out, then one count for each reason.
static SUMS: [core::sync::atomic::AtomicU64; 6 + REASONS] =
    [const { core::sync::atomic::AtomicU64::new(0) }; 6 + REASONS];

/// Remembers the file's name; a long one (or none) means no file.
pub fn start(file: Option<&CStr>) {
    let name = file.map_or(&b""[..], CStr::to_bytes);
    if name.len() < NAME.len() {
        for (to, from) in NAME.iter().zip(name) {
            to.store(*from, Ordering::Relaxed);
        }
    }
}

/// Opens the file, while we still may; `None` if there is none.
fn open() -> Option<i32> {
    if NAME[0].load(Ordering::Relaxed) == 0 {
        return None;
    }
    let how = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    // SAFETY: a C string: its last byte is never written.
    let fd = unsafe { syscall!(libc::SYS_openat, libc::AT_FDCWD, NAME.as_ptr(), how, 0o644) };
    (fd >= 0).then_some(fd as i32)
}

/// The program is about to set a filter that may forbid to open files.
pub fn before_confinement() {
    if let Some(fd) = open() {
        FILE.store(crate::descriptors::adopt(fd) + 1, Ordering::Relaxed);
    }
}

/// Counts a stream that ends in this process.
pub fn count(s: streams::Stream) {
    let slot = s.slot;
    let add = |i: usize, n: u64| {
        if n != 0 {
            SUMS[i].fetch_add(n, Ordering::Relaxed);
        }
    };
    add(0, 1);
    if slot.has(flags::WAS_FAST) {
        add(1, 1);
    } else {
        let code = slot.reason.load(Ordering::Relaxed) as usize;
        add(6 + code.min(REASONS - 1), 1);
    }
    add(2, slot.tcp.received.load(Ordering::Relaxed));
    add(3, slot.tcp.sent.load(Ordering::Relaxed));
    add(4, slot.rx.wire_bytes.load(Ordering::Relaxed));
    add(5, slot.tx.wire_bytes.load(Ordering::Relaxed));
}

/// A line in a buffer of fixed size; what does not fit is cut off.
struct Line {
    bytes: [u8; 2048],
    len: usize,
}

impl core::fmt::Write for Line {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let n = s.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&s.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

/// At exit: appends the line.
pub fn end() {
    use core::fmt::Write;
    let early = FILE.load(Ordering::Relaxed) - 1;
    let late = || (!crate::process::is_confined()).then(open).flatten();
    let Some(file) = (early >= 0).then_some(early).or_else(late) else {
        return;
    };
    streams::ours().for_each(count);
    let sum = |i: usize| SUMS[i].load(Ordering::Relaxed);
    let mut line = Line {
        bytes: [0; 2048],
        len: 0,
    };
    let _ = write!(
        line,
        "{{\"pid\":{},\"streams\":{},\"fast\":{},\"tcp_in\":{},\"tcp_out\":{},\"shm_in\":{},\"shm_out\":{},\"reasons\":{{",
        crate::process::pid(),
        sum(0),
        sum(1),
        sum(2),
        sum(3),
        sum(4),
        sum(5)
    );
    let mut comma = "";
    for code in 0..REASONS {
        let n = sum(6 + code);
        if n > 0 {
            let text = Reason::from_code(code as u32).text();
            let _ = write!(line, "{comma}\"{text}\":{n}");
            comma = ",";
        }
    }
    let _ = line.write_str("}}\n");
    // SAFETY: our own buffer. The kernel closes the file with the process.
    unsafe { syscall!(libc::SYS_write, file, line.bytes.as_ptr(), line.len) };
}
