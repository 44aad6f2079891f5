//! The memory that a program and its descendants share: one [`Slot`] for each
//! TCP stream, with the end's own state and what `sidewire ps` shows.
//!
//! It is a memfd of each process family, mapped shared, so that a forked child
//! works on the same state. The peer of a stream cannot map it: locks, positions
//! and everything that protects us live here. `sidewire ps` and `--stats` map
//! it read-only through /proc/PID/fd.

use super::log;
use crate::lock::Lock;
use crate::ring::{ConsumerState, ProducerState};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Name of the memfd, as /proc/PID/fd shows it behind "/memfd:".
pub const NAME: &str = "sidewire-arena";
/// "swarena1" as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"swarena1");
/// Streams that a process family can have under way.
pub const SLOTS: u32 = 32768;
/// Offset of the first slot.
pub const SLOTS_AT: usize = 4096;
/// Offset of the log's ring, behind the last slot.
pub const LOG_AT: usize = SLOTS_AT + SLOTS as usize * core::mem::size_of::<Slot>();
/// Size of the arena in bytes (virtual; it is sparse).
pub const SIZE: usize = LOG_AT + log::RECORDS * core::mem::size_of::<log::Record>();
/// Processes that may share one end.
pub const HOLDERS: usize = 8;
/// Reasons are counted by code; codes from here on share the last counter.
pub const REASONS: usize = 32;

/// The arena's header: what the family's ended streams add up to.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: AtomicU64,
    /// [`super::VERSION`].
    pub version: AtomicU32,
    /// `size_of::<Slot>()`.
    pub slot_size: AtomicU32,
    /// Head of the list of free slots: `tag << 32 | index + 1`.
    pub free: AtomicU64,
    /// Slots that were ever used: index of the first virgin one.
    pub high: AtomicU32,
    /// Processes of the family that loaded the library.
    pub processes: AtomicU32,
    /// Ended streams: how many, and how many of them were ever Fast.
    pub streams: AtomicU64,
    pub fast: AtomicU64,
    /// Their bytes by wire and direction.
    pub tcp_in: AtomicU64,
    pub tcp_out: AtomicU64,
    pub wire_in: AtomicU64,
    pub wire_out: AtomicU64,
    /// Ended streams that never were Fast, by reason.
    pub reasons: [AtomicU32; REASONS],
    /// Records of a higher [`log::Level`] are not written; 0 is no log at all.
    pub log_level: AtomicU32,
    /// Tickets drawn so far: the number of the next log record.
    pub log_next: AtomicU64,
}

/// An IP address and port, written before the slot is published.
#[repr(C)]
pub struct Address {
    /// `family << 16 | port`.
    pub family_port: AtomicU32,
    /// The address in network byte order; IPv4 and v4-mapped in the first word.
    pub ip: [AtomicU32; 4],
}

/// What has gone by TCP: bytes and calls. It stands in the slot's first line, with
/// all else that a call on a Plain stream looks at: each line more would cost such
/// a call some nanoseconds, as the kernel's own lines have driven ours out.
#[repr(C)]
pub struct Tcp {
    /// Bytes sent, and calls that sent some.
    pub sent: AtomicU64,
    pub sends: AtomicU64,
    /// Bytes received, and calls that received some.
    pub received: AtomicU64,
    pub receives: AtomicU64,
}

/// One end of a TCP stream.
#[repr(C, align(64))]
pub struct Slot {
    /// Odd while the slot is in use; counts its uses.
    pub generation: AtomicU32,
    /// A [`Phase`].
    pub phase: AtomicU32,
    /// Messages and pieces of some KiB since `heat_since`, less those after which
    /// the stream is worth an offer.
    pub heat: AtomicU64,
    pub tcp: Tcp,
    /// Bits of [`flags`].
    pub flags: AtomicU32,
    /// Next in the free list: index + 1, or 0.
    pub next: AtomicU32,
    /// Process ids that hold the end; 0 is «nobody».
    pub holders: [AtomicU32; HOLDERS],
    /// The [`super::reason::Reason`] why it is not Fast.
    pub reason: AtomicU32,
    /// Not 0: the reason why it may never be Fast again.
    pub pin: AtomicU32,
    /// 1 if we made the segment (then our direction is 0), else 0.
    pub creator: AtomicU32,
    /// Guards offers and other changes of phase; never waited for.
    pub control: Lock,
    /// A failed offer is tried again at this time (monotonic ns).
    pub retry_at: AtomicU64,
    /// Offers so far.
    pub offers: AtomicU32,
    pub local: Address,
    pub remote: Address,
    /// When it was opened, monotonic ns.
    pub opened: AtomicU64,
    /// Start of the present count of messages, monotonic ns.
    pub heat_since: AtomicU64,
    pub tx: Tx,
    pub rx: Rx,
}

/// Our sending direction.
#[repr(C, align(64))]
pub struct Tx {
    pub lock: Lock,
    /// 1 while the direction is on the wire.
    pub fast: AtomicU32,
    /// The epoch of the wire that we are in, or shall enter next.
    pub epoch: AtomicU64,
    /// Bytes that may be in flight: what the two socket buffers would hold.
    pub limit: AtomicU64,
    /// The peer's data bell: the arming that we rang for last.
    pub data_rung: AtomicU32,
    /// Our own bell for room: the number of the last arming.
    pub room_number: AtomicU32,
    /// Times that a send found no room (edge-triggered EPOLLOUT).
    pub full: AtomicU32,
    /// Bytes and messages by the wire so far.
    pub wire_bytes: AtomicU64,
    pub wire_messages: AtomicU64,
    pub producer: ProducerState,
    /// Our own place in the ring, of which we send again by TCP what the peer has returned.
    pub owed: ConsumerState,
}

/// Our receiving direction.
#[repr(C, align(64))]
pub struct Rx {
    pub lock: Lock,
    /// A [`RxMode`].
    pub mode: AtomicU32,
    /// The epoch that we have promised, or shall promise next.
    pub epoch: AtomicU64,
    /// Bytes read from TCP since the connection began; exact from the promise on.
    pub tcp_count: AtomicU64,
    /// Where the wire begins, in the same count; valid in [`RxMode::Fast`].
    pub cut_at: AtomicU64,
    /// Our bell for data: the number of the last arming.
    pub data_number: AtomicU32,
    /// The peer's bell for room: the arming that we rang for last.
    pub room_rung: AtomicU32,
    /// Waits in a row that ended in a sleep (sporadic traffic).
    pub sleeps: AtomicU32,
    pub wire_bytes: AtomicU64,
    pub wire_messages: AtomicU64,
    pub consumer: ConsumerState,
}

/// Bits of [`Slot::flags`].
pub mod flags {
    /// The peer's FIN has come (or its reset): TCP brings nothing more.
    pub const TCP_END: u32 = 1;
    /// The side channel has ended: the peer's process is gone, or has closed.
    pub const PEER_GONE: u32 = 2;
    /// We have called shutdown(SHUT_RD), shutdown(SHUT_WR).
    pub const SHUT_RD: u32 = 4;
    pub const SHUT_WR: u32 = 8;
    /// Both directions were Fast at least once.
    pub const WAS_FAST: u32 = 16;
    /// The peer broke the protocol, or died with unread bytes: report a reset
    /// once what was received is read.
    pub const RESET: u32 = 32;
    /// The reset was reported.
    pub const RESET_TOLD: u32 = 64;
    /// More processes hold the end than there is room to name.
    pub const CROWD: u32 = 128;
    /// TCP is dead: reset, or shut in both directions.
    pub const TCP_DEAD: u32 = 256;
    /// The end was in another process too, at some time.
    pub const SHARED: u32 = 1024;
    /// The FIN that has come is a half-close, though the peer did not say so.
    pub const HALF_CLOSED: u32 = 2048;
    /// Who held the receiving direction's lock has died: bytes read from TCP may not have
    /// been counted.
    pub const UNCOUNTED: u32 = 4096;
    /// Pinned, and its calls are not counted any more: what it has carried by TCP is the
    /// kernel's to say.
    pub const SETTLED: u32 = 8192;
    /// This end has connected (else it was accepted).
    pub const OUTGOING: u32 = 512;
}

/// How far the two ends have found each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Every call goes to the kernel with the program's own arguments.
    Plain = 0,
    /// We look for the other end; waits are merged from here on.
    Offered = 1,
    /// Both ends have mapped the segment.
    Attached = 2,
}

/// What we have promised about our receiving direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RxMode {
    /// Nothing.
    Plain = 0,
    /// The gate may be READY or FAST: look there at each receive.
    Promised = 1,
    /// The cut-over has been seen: TCP up to `cut_at`, then the ring.
    Fast = 2,
}

impl Address {
    /// Sets family (AF_INET, AF_INET6), port and address.
    pub fn set(&self, family: u16, port: u16, ip: [u32; 4]) {
        self.family_port
            .store(u32::from(family) << 16 | u32::from(port), Ordering::Relaxed);
        for (to, from) in self.ip.iter().zip(ip) {
            to.store(from, Ordering::Relaxed);
        }
    }

    /// The address as the standard library prints it.
    pub fn get(&self) -> std::net::SocketAddr {
        let fp = self.family_port.load(Ordering::Relaxed);
        let ip = [0, 1, 2, 3].map(|i| self.ip[i].load(Ordering::Relaxed));
        let port = (fp & 0xffff) as u16;
        if fp >> 16 == libc::AF_INET6 as u32 {
            let mut bytes = [0u8; 16];
            for (i, w) in ip.iter().enumerate() {
                bytes[4 * i..4 * i + 4].copy_from_slice(&w.to_ne_bytes());
            }
            std::net::SocketAddr::from((bytes, port))
        } else {
            std::net::SocketAddr::from((ip[0].to_ne_bytes(), port))
        }
    }
}

impl Slot {
    /// Is the slot in use, and by this use?
    #[inline]
    pub fn is(&self, generation: u32) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// How far the two ends have found each other.
    #[inline]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Plain,
            1 => Phase::Offered,
            _ => Phase::Attached,
        }
    }

    /// What we have promised.
    #[inline]
    pub fn rx_mode(&self) -> RxMode {
        match self.rx.mode.load(Ordering::Acquire) {
            0 => RxMode::Plain,
            1 => RxMode::Promised,
            _ => RxMode::Fast,
        }
    }

    /// Are these bits of [`flags`] set?
    #[inline]
    pub fn has(&self, bits: u32) -> bool {
        self.flags.load(Ordering::Acquire) & bits != 0
    }
}

const _: () = {
    assert!(core::mem::size_of::<Header>() <= SLOTS_AT);
    assert!(LOG_AT.is_multiple_of(core::mem::align_of::<log::Record>()));
    assert!(core::mem::size_of::<Slot>().is_multiple_of(64));
    assert!(core::mem::size_of::<Slot>() <= 2048);
    assert!(core::mem::offset_of!(Slot, holders) <= 64);
};
