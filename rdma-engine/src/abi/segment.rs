//! The memory that the two ends of one stream share.
//!
//! One sealed memfd, mapped once by each end: a header page, then one ring for
//! each direction. Direction 0 runs from the *creator* (the end that connected
//! to the other's rendezvous socket) to the other end, direction 1 back. Words
//! are grouped by who writes them, a cache line for each writer.

pub use super::gate;
use super::record::RING;
use crate::sync::{AtomicU32, AtomicU64};

/// "sidewire" read as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"sidewire");

/// Offset of the first ring in the segment.
pub const RINGS: usize = 4096;
/// Size of the whole segment in bytes (virtual; it is sparse).
pub const SIZE: usize = RINGS + 2 * RING;

/// The header page.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`super::VERSION`].
    pub version: AtomicU32,
    /// [`super::record::CHUNK_SHIFT`], and the number of chunks.
    pub chunk_shift: AtomicU32,
    pub chunks: AtomicU32,
    /// One for each direction.
    pub direction: [Direction; 2],
}

/// What the two ends tell each other about one direction.
#[repr(C, align(64))]
pub struct Direction {
    /// The promise and the cut-over: see [`gate`]. Both write it, by
    /// compare-and-swap.
    pub gate: AtomicU64,
    /// Written by the sender before it cuts over: the number of bytes that the
    /// direction has carried by TCP since the connection began.
    pub cut_at: AtomicU64,
    /// Written by the sender.
    pub sender: SenderWords,
    /// Written by the receiver at each receive.
    pub cursor: Cursor,
    /// Written by the receiver now and then.
    pub receiver: ReceiverWords,
}

/// A cache line that only the sender writes.
#[repr(C, align(64))]
pub struct SenderWords {
    /// Bits of [`sender_flags`].
    pub flags: AtomicU32,
    /// Bell of a sender that waits for room (see [`crate::doorbell`]).
    pub room_armed: AtomicU32,
    /// With `room_armed`: ring when this stream position has been taken.
    pub room_at: AtomicU64,
}

/// A cache line that the receiver writes all the time, and that the sender reads
/// only when it runs out of room.
#[repr(C, align(64))]
pub struct Cursor {
    /// Stream position (modulo 2^40) of the first byte not taken yet.
    pub consumed: AtomicU64,
}

/// A cache line that only the receiver writes, and seldom: the sender looks at it
/// with every message.
#[repr(C, align(64))]
pub struct ReceiverWords {
    /// Where the receiver stopped, when it returned the ring (see [`gate::RETURNED`]).
    pub returned_at: AtomicU64,
    /// Bell of a receiver that waits for data.
    pub data_armed: AtomicU32,
    /// Not 0: please cut back to TCP at your next call. [`RETURNED`]: and send again what
    /// was not taken.
    pub recall: AtomicU32,
    /// What the receiver would buffer on TCP (SO_RCVBUF), in bytes.
    pub buffer: AtomicU32,
    /// The processor that the receiver ran on last, plus 1.
    pub cpu: AtomicU32,
}

/// A value of [`ReceiverWords::recall`].
pub const RETURNED: u32 = 2;

/// Bits of [`SenderWords::flags`].
pub mod sender_flags {
    /// The sender has called shutdown(SHUT_WR): the FIN that follows is a
    /// half-close, not the end of the process.
    pub const SHUT: u32 = 1;
    /// The sender has closed its end in good order.
    pub const CLOSED: u32 = 2;
    /// The sender has shut both directions: what is still sent to it has to go by
    /// TCP, whose answer is a reset.
    pub const DEAF: u32 = 4;
    /// This end has gone on to a program or process that may know nothing of us: from now
    /// on only TCP's word counts, and the end of the side channel means nothing.
    pub const AWAY: u32 = 8;
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<SenderWords>() == 64);
    assert!(size_of::<ReceiverWords>() == 64);
    assert!(size_of::<Cursor>() == 64);
    assert!(size_of::<Direction>() == 256);
    assert!(offset_of!(Header, direction) == 64);
    assert!(size_of::<Header>() <= RINGS);
};
