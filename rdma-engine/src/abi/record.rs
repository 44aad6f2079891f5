//! Records: what stands in a ring.
//!
//! A ring is [`CHUNKS`] chunks of [`CHUNK`] bytes. A chunk holds records, each an
//! 8-byte header and its payload padded to 8 bytes, so that a small message and
//! its header share a cache line. A header of zero means «nothing here yet»: a
//! producer zeroes the place of the *next* header before it publishes one.
//!
//! Header, from the low bits: length (20), kind (4), stream position (40). The
//! position is the number of payload bytes before this record, modulo 2^40: a
//! consumer accepts only the record that continues where it stands, so that no
//! misplaced record is ever taken for data.

/// log2 of a chunk's size in bytes.
#[cfg(not(loom))]
pub const CHUNK_SHIFT: u32 = 18;
#[cfg(loom)]
pub const CHUNK_SHIFT: u32 = 6;
/// A chunk's size in bytes.
pub const CHUNK: u32 = 1 << CHUNK_SHIFT;
/// Chunks in a ring.
#[cfg(not(loom))]
pub const CHUNKS: u32 = 128;
#[cfg(loom)]
pub const CHUNKS: u32 = 2;
/// A ring's size in bytes. Virtual: only what is used costs memory.
pub const RING: usize = (CHUNK as usize) * (CHUNKS as usize);
/// Bytes at a chunk's end that no data record may use, so that a cut-back record
/// has a place in any chunk: its header, and the last header, which is the GOTO's.
pub const TAIL: u32 = 16;
/// The largest payload of one record, in bytes.
pub const MAX_PAYLOAD: u32 = CHUNK - HEADER - TAIL;
/// A header's size in bytes.
pub const HEADER: u32 = 8;
/// Mask of a stream position.
pub const COUNT_MASK: u64 = (1 << 40) - 1;

/// Difference of two stream positions, modulo 2^40.
#[inline]
pub fn count_sub(a: u64, b: u64) -> u64 {
    a.wrapping_sub(b) & COUNT_MASK
}

/// Sum of a stream position and a length, modulo 2^40.
#[inline]
pub fn count_add(a: u64, n: u64) -> u64 {
    a.wrapping_add(n) & COUNT_MASK
}

/// Rounds a payload's length up to the records' alignment.
#[inline]
pub fn padded(len: u32) -> u32 {
    (len + 7) & !7
}

/// A record's header, checked for everything that can be checked without
/// knowing where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// `len` bytes of the program's data follow.
    Data { len: u32, count: u64 },
    /// The stream goes on at the start of chunk `chunk`.
    Goto { chunk: u32, count: u64 },
    /// The stream goes on over TCP; this direction's epoch ends.
    CutBack { count: u64 },
}

const KIND_DATA: u64 = 1;
const KIND_GOTO: u64 = 2;
const KIND_CUT_BACK: u64 = 3;

impl Record {
    /// The header word; never zero.
    #[inline]
    pub fn encode(self) -> u64 {
        let (kind, len, count) = match self {
            Record::Data { len, count } => (KIND_DATA, len, count),
            Record::Goto { chunk, count } => (KIND_GOTO, chunk, count),
            Record::CutBack { count } => (KIND_CUT_BACK, 0, count),
        };
        u64::from(len) | kind << 20 | (count & COUNT_MASK) << 24
    }

    /// Reads a header that stands `at` bytes into its chunk; `None` if no honest
    /// producer writes such a header there.
    #[inline]
    pub fn decode(word: u64, at: u32) -> Option<Record> {
        let len = (word & 0xf_ffff) as u32;
        let count = word >> 24;
        // Bytes behind this header, less the header that has to follow.
        let room = CHUNK.checked_sub(at)?.checked_sub(2 * HEADER);
        if word >> 20 & 0xf == KIND_GOTO {
            return (len < CHUNKS && at + HEADER <= CHUNK)
                .then_some(Record::Goto { chunk: len, count });
        }
        let room = room?;
        match word >> 20 & 0xf {
            KIND_DATA if len > 0 && padded(len) <= room => Some(Record::Data { len, count }),
            KIND_CUT_BACK if len == 0 => Some(Record::CutBack { count }),
            _ => None,
        }
    }

    /// The stream position that the record stands for.
    #[inline]
    pub fn count(self) -> u64 {
        match self {
            Record::Data { count, .. } | Record::Goto { count, .. } | Record::CutBack { count } => {
                count
            }
        }
    }
}

/// A place in a ring and in the stream, in one word that one instruction can
/// replace: offset in units of 8 bytes (24 bits), stream position (40 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pos(pub u64);

impl Pos {
    /// Offset `off` (bytes, multiple of 8) and position `count`.
    #[inline]
    pub fn new(off: u32, count: u64) -> Pos {
        Pos(u64::from(off >> 3) << 40 | (count & COUNT_MASK))
    }
    /// Offset in the ring, in bytes.
    #[inline]
    pub fn off(self) -> u32 {
        ((self.0 >> 40) << 3) as u32
    }
    /// Stream position modulo 2^40.
    #[inline]
    pub fn count(self) -> u64 {
        self.0 & COUNT_MASK
    }
    /// The chunk that the offset lies in.
    #[inline]
    pub fn chunk(self) -> u32 {
        self.off() >> CHUNK_SHIFT
    }
    /// Offset within the chunk.
    #[inline]
    pub fn at(self) -> u32 {
        self.off() & (CHUNK - 1)
    }
    /// The place behind a data record of `len` bytes that stands here.
    #[inline]
    pub fn after_data(self, len: u32) -> Pos {
        Pos::new(
            self.off() + HEADER + padded(len),
            count_add(self.count(), u64::from(len)),
        )
    }
    /// The place behind a cut-back record that stands here.
    #[inline]
    pub fn after_cut_back(self) -> Pos {
        Pos::new(self.off() + HEADER, self.count())
    }
    /// The start of `chunk`, at the same stream position.
    #[inline]
    pub fn in_chunk(self, chunk: u32) -> Pos {
        Pos::new(chunk << CHUNK_SHIFT, self.count())
    }
}

const _: () = assert!(RING / 8 < 1 << 24, "an offset fits its 24 bits");
const _: () = assert!(MAX_PAYLOAD < 1 << 20, "a length fits its 20 bits");
