//! `--log`: decodes the arena's records while the program runs.

use crate::cli::LogLevel;
use crate::view::View;
use rdma_engine::abi::log::{place, Arg, Entry, Found, Level, NO_SLOT, RECORDS};
use rdma_engine::abi::reason::Reason;
use rdma_engine::arena::{self, ArenaRef};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the log is looked at.
const PERIOD: Duration = Duration::from_millis(50);

/// A log that is written, and not printed yet.
pub struct Log {
    reader: Reader,
}

/// A thread that prints; dropping it prints the rest and ends it.
pub struct Printer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Sets the level of the arena `fd`, before the program starts. `None`: no
    /// descriptor or address space.
    pub fn open(fd: BorrowedFd, level: LogLevel) -> Option<Log> {
        let arena = arena::map(fd.as_raw_fd())?;
        let view = View::new(File::from(fd.try_clone_to_owned().ok()?))?;
        let level = match level {
            LogLevel::Error => Level::Error,
            LogLevel::Warn => Level::Warn,
            LogLevel::Info => Level::Info,
            LogLevel::Debug => Level::Debug,
        };
        let word = &arena.header().log_level;
        word.store(level as u32, Ordering::Relaxed);
        let reader = Reader {
            arena,
            view,
            next: 0,
            start: rdma_engine::sys::now_ns(),
        };
        Some(Log { reader })
    }

    /// Starts to print, once the program has been started (fork wants one
    /// thread). `None`: no more threads.
    pub fn print(self) -> Option<Printer> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let mut reader = self.reader;
        let thread = std::thread::Builder::new().spawn(move || loop {
            let last = seen.load(Ordering::Acquire);
            reader.print_new(last);
            if last {
                return;
            }
            std::thread::park_timeout(PERIOD);
        });
        Some(Printer {
            stop,
            thread: Some(thread.ok()?),
        })
    }
}

impl Drop for Printer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

struct Reader {
    arena: ArenaRef,
    view: View,
    /// The first record that was not printed yet.
    next: u64,
    /// Monotonic ns that times are printed against.
    start: u64,
}

impl Reader {
    /// Prints what has come since the last time. A record that is being written
    /// is waited for until the next time, unless this is the `last`.
    fn print_new(&mut self, last: bool) {
        let end = self.arena.header().log_next.load(Ordering::Acquire);
        let oldest = end.saturating_sub(RECORDS as u64);
        let mut lost = oldest.saturating_sub(self.next);
        self.next = self.next.max(oldest);
        let mut text = String::new();
        while self.next < end {
            match self.arena.records()[place(self.next)].read(self.next) {
                Found::Entry(entry) => {
                    self.note_loss(&mut text, &mut lost);
                    self.line(&mut text, &entry);
                }
                // Nearly new: its writer may be at it still.
                Found::NotYet if !last && end - self.next < 64 => break,
                Found::NotYet | Found::Overwritten => lost += 1,
            }
            self.next += 1;
        }
        self.note_loss(&mut text, &mut lost);
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn note_loss(&self, text: &mut String, lost: &mut u64) {
        if *lost > 0 {
            text.push_str(&format!("sidewire: ({lost} log records lost)\n"));
            *lost = 0;
        }
    }

    fn line(&self, text: &mut String, entry: &Entry) {
        let micros = entry.time.saturating_sub(self.start) / 1000;
        let (s, us) = (micros / 1_000_000, micros % 1_000_000);
        let level = entry.event.level().name();
        let stream = self.stream(entry);
        let args = arguments(entry);
        let what = entry.event.text();
        text.push_str(&format!(
            "sidewire: {s:>4}.{us:06} {} {level:<5} {stream}{what}{args}\n",
            entry.pid
        ));
    }

    /// The stream's addresses if it is there still, else its number.
    fn stream(&self, entry: &Entry) -> String {
        if entry.slot == NO_SLOT {
            return String::new();
        }
        match self.view.ends(entry.slot, entry.generation) {
            Some((local, remote)) => format!("{local} > {remote}: "),
            None => format!("#{}.{}: ", entry.slot, entry.generation),
        }
    }
}

fn arguments(entry: &Entry) -> String {
    let parts: Vec<String> = entry
        .event
        .args()
        .iter()
        .zip(entry.args)
        .filter_map(|(kind, value)| match kind {
            Arg::No => None,
            Arg::Number(name) => Some(format!("{name} {value}")),
            Arg::Reason => {
                let code = u32::try_from(value).unwrap_or(u32::MAX);
                Some(Reason::from_code(code).text().to_owned())
            }
            Arg::Fd => Some(format!("fd {value}")),
            Arg::Pid => Some(format!("pid {value}")),
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join(", "))
    }
}
