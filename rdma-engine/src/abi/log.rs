//! The log: fixed-size binary records in a ring behind the arena's slots.
//!
//! Nothing inside a hook may format, allocate or lock, so the library leaves
//! numbers here and `sidewire run --log LEVEL` makes text of them. [`write`]
//! is lock-free and async-signal-safe; below the level it is one load and a
//! branch.
//!
//! ```text
//!   word of a record:  0 ──claim──▶ 2t+1 (being written) ──▶ 2t+2 (holds t)
//!                                      ▲───── claim by t+RECORDS ─────┘
//! ```
//!
//! A writer that finds its place being written by another (one that was lapped,
//! or died there) gives its record up: a reader sees a gap, never a mixture.

use super::arena::Header;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Records in the ring. A reader that falls behind by more sees a gap.
pub const RECORDS: usize = 16384;

/// How much is logged; a level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// Something that must not happen.
    Error = 1,
    /// Something that costs speed.
    Warn = 2,
    /// What becomes of each stream.
    Info = 3,
    /// Each step on the way there.
    Debug = 4,
}

impl Level {
    /// All levels, from the quietest on.
    pub const ALL: [Level; 4] = [Level::Error, Level::Warn, Level::Info, Level::Debug];

    /// The name as a user writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }

    /// The level of this name, in lower case.
    pub fn from_name(name: &[u8]) -> Option<Level> {
        Level::ALL.into_iter().find(|l| l.name().as_bytes() == name)
    }
}

/// What an event's argument means to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// Not used.
    No,
    /// A number with this name.
    Number(&'static str),
    /// The code of a [`super::reason::Reason`].
    Reason,
    /// A descriptor number.
    Fd,
    /// A process id.
    Pid,
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $level:ident, $text:literal, $a:expr, $b:expr;)*) => {
        /// What happened. Codes are part of the shared layout.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Event { $($(#[$doc])* $name = $code,)* }

        impl Event {
            /// All events, in the order of their codes.
            pub const ALL: &'static [Event] = &[$(Event::$name,)*];

            /// The event of this code; [`Event::Unknown`] for a strange one.
            pub const fn from_code(code: u32) -> Event {
                match code { $($code => Event::$name,)* _ => Event::Unknown }
            }

            /// From which level on it is logged.
            #[inline]
            pub const fn level(self) -> Level {
                match self { $(Event::$name => Level::$level,)* }
            }

            /// What a user reads.
            pub const fn text(self) -> &'static str {
                match self { $(Event::$name => $text,)* }
            }

            /// What the two arguments mean.
            pub const fn args(self) -> [Arg; 2] {
                match self { $(Event::$name => [$a, $b],)* }
            }
        }
    };
}

events! {
    /// A process of the family has loaded the library.
    Loaded = 1, Info, "library loaded", Arg::No, Arg::No;
    /// The library can do nothing in this process.
    Disabled = 2, Warn, "acceleration is off in this process", Arg::Reason, Arg::No;
    /// The process is about to run another program.
    Exec = 3, Debug, "exec", Arg::No, Arg::No;
    /// A child process shares this process's streams.
    Fork = 4, Debug, "fork", Arg::Pid, Arg::No;
    /// A TCP connection is known from now on.
    Opened = 10, Debug, "stream opened", Arg::Fd, Arg::Number("outgoing");
    /// The connection has got its last close here.
    Closed = 11, Debug, "stream closed", Arg::Number("wire_bytes"), Arg::Number("tcp_bytes");
    /// A policy rule decided about the stream.
    Ruled = 13, Debug, "policy rule applies", Arg::Number("rule"), Arg::No;
    /// The stream is worth an offer.
    Offered = 20, Info, "looking for the other end", Arg::Number("tries before"), Arg::No;
    /// The other end is found, and proven.
    Attached = 21, Info, "attached to the other end", Arg::Number("creator"), Arg::No;
    /// The two ends will not come together for now.
    Refused = 22, Info, "stays on TCP for now", Arg::Reason, Arg::No;
    /// The stream stays on TCP for good.
    Pinned = 23, Info, "pinned to TCP", Arg::Reason, Arg::No;
    /// The receiving direction has promised.
    Promised = 30, Debug, "receive direction is ready", Arg::Number("epoch"), Arg::Number("tcp_bytes");
    /// The receiver has taken its promise back.
    Revoked = 31, Debug, "receive direction is ready no more", Arg::Number("epoch"), Arg::No;
    /// The sender has cut over.
    CutOver = 32, Info, "send direction moves to the wire", Arg::Number("epoch"), Arg::Number("tcp_bytes");
    /// The receiver has seen the peer's cut-over.
    CutOverSeen = 33, Info, "receive direction moves to the wire", Arg::Number("epoch"), Arg::Number("tcp_bytes");
    /// The sender has gone back to TCP.
    CutBack = 34, Info, "send direction moves back to TCP", Arg::Number("epoch"), Arg::Reason;
    /// The receiver has followed the peer back to TCP.
    CutBackSeen = 35, Info, "receive direction moves back to TCP", Arg::Number("epoch"), Arg::No;
    /// The receiver asks the peer to go back to TCP.
    Recalled = 36, Debug, "asked the peer to go back to TCP", Arg::No, Arg::No;
    /// What the ring held was returned to the peer's sender.
    Returned = 37, Info, "receive direction moves back to TCP, with what it had not read", Arg::Number("epoch"), Arg::No;
    /// The peer's end has gone to another program, and ours is plain again.
    Detached = 39, Info, "the other end belongs to another program now", Arg::No, Arg::No;
    /// What the peer had returned has gone by TCP.
    Resent = 38, Debug, "what the peer had not read went by TCP", Arg::Number("epoch"), Arg::No;
    /// The peer's process is gone, or has closed.
    PeerGone = 40, Info, "the peer is gone", Arg::Number("orderly"), Arg::No;
    /// The peer broke the protocol of the wire.
    Broken = 42, Error, "the peer broke the protocol of the wire", Arg::No, Arg::No;
    /// Left for a developer's own use.
    Trace = 90, Debug, "trace", Arg::Number("a"), Arg::Number("b");
    /// A code that this version does not know.
    Unknown = 255, Debug, "unknown event", Arg::Number("a"), Arg::Number("b");
}

/// A slot number that means «no stream».
pub const NO_SLOT: u32 = u32::MAX;

/// One place of the ring: a cache line.
#[repr(C, align(64))]
pub struct Record {
    /// The state, see the diagram above.
    word: AtomicU64,
    time: AtomicU64,
    pid: AtomicU32,
    slot: AtomicU32,
    generation: AtomicU32,
    event: AtomicU32,
    args: [AtomicU64; 2],
}

/// A record's content, copied out of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Monotonic time in nanoseconds.
    pub time: u64,
    /// Process id, as the process itself sees it.
    pub pid: u32,
    /// Index of the stream's slot, or [`NO_SLOT`].
    pub slot: u32,
    /// The slot's generation.
    pub generation: u32,
    pub event: Event,
    pub args: [u64; 2],
}

/// The place where record `ticket` stands.
pub const fn place(ticket: u64) -> usize {
    (ticket % RECORDS as u64) as usize
}

/// Is `event` logged at the arena's level? For callers whose arguments cost.
#[inline]
pub fn enabled(header: &Header, event: Event) -> bool {
    header.log_level.load(Ordering::Relaxed) >= event.level() as u32
}

/// Writes one record, if its level is on. Lock-free, async-signal-safe, no
/// allocation, errno untouched; drops the record rather than wait.
#[inline]
pub fn write(
    header: &Header,
    ring: &[Record; RECORDS],
    event: Event,
    (slot, generation): (u32, u32),
    args: [u64; 2],
) {
    if enabled(header, event) {
        write_now(header, ring, event, (slot, generation), args);
    }
}

#[cold]
fn write_now(
    header: &Header,
    ring: &[Record; RECORDS],
    event: Event,
    (slot, generation): (u32, u32),
    args: [u64; 2],
) {
    let ticket = header.log_next.fetch_add(1, Ordering::Relaxed);
    let record = &ring[place(ticket)];
    let old = record.word.load(Ordering::Relaxed);
    let writing = ticket.wrapping_mul(2).wrapping_add(1);
    // Odd: somebody is in the middle of it. Larger: we were lapped.
    if old % 2 == 1 || old > writing {
        return;
    }
    // Acquire: the stores below stay behind the claim.
    let claim = record
        .word
        .compare_exchange(old, writing, Ordering::Acquire, Ordering::Relaxed);
    if claim.is_err() {
        return;
    }
    // Partner: the fence in `Record::read`. A reader that sees one of the
    // stores below sees the claim, too.
    crate::sync::fence(Ordering::Release);
    record.time.store(crate::sys::now_ns(), Ordering::Relaxed);
    record.pid.store(crate::sys::getpid(), Ordering::Relaxed);
    record.slot.store(slot, Ordering::Relaxed);
    record.generation.store(generation, Ordering::Relaxed);
    record.event.store(event as u32, Ordering::Relaxed);
    for (to, from) in record.args.iter().zip(args) {
        to.store(from, Ordering::Relaxed);
    }
    // Partner: the acquire load in `Record::read`.
    record
        .word
        .store(writing.wrapping_add(1), Ordering::Release);
}

/// What [`Record::read`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The record that was asked for.
    Entry(Entry),
    /// It is not written yet (or never will be: its writer died or gave up).
    NotYet,
    /// A later one has taken its place.
    Overwritten,
}

impl Record {
    /// Reads record `ticket`, if that is what stands here. Safe on hostile
    /// memory: any bits are an entry.
    pub fn read(&self, ticket: u64) -> Found {
        let done = ticket.wrapping_mul(2).wrapping_add(2);
        let word = self.word.load(Ordering::Acquire);
        if word < done {
            return Found::NotYet;
        }
        let entry = Entry {
            time: self.time.load(Ordering::Relaxed),
            pid: self.pid.load(Ordering::Relaxed),
            slot: self.slot.load(Ordering::Relaxed),
            generation: self.generation.load(Ordering::Relaxed),
            event: Event::from_code(self.event.load(Ordering::Relaxed)),
            args: [0, 1].map(|i: usize| self.args[i].load(Ordering::Relaxed)),
        };
        crate::sync::fence(Ordering::Acquire);
        if word == done && self.word.load(Ordering::Relaxed) == done {
            Found::Entry(entry)
        } else {
            Found::Overwritten
        }
    }
}

const _: () = assert!(core::mem::size_of::<Record>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_are_one_to_one() {
        for (i, event) in Event::ALL.iter().enumerate() {
            assert_eq!(Event::from_code(*event as u32), *event);
            let same = |e: &&Event| e.text() == event.text();
            assert_eq!(Event::ALL.iter().position(|e| same(&e)), Some(i));
        }
        assert_eq!(Event::from_code(77_777), Event::Unknown);
        for level in Level::ALL {
            assert_eq!(Level::from_name(level.name().as_bytes()), Some(level));
        }
        assert_eq!(Level::from_name(b"loud"), None);
    }
}
