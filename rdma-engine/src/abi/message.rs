//! The side channel: a SOCK_SEQPACKET Unix connection, one packet a message.
//!
//! First packet, connector to listener: [`Hello`], with the segment's memfd as
//! SCM_RIGHTS. Second, back: [`Answer`]. From then on every packet is one byte
//! of no meaning: a doorbell. State lives in the segment.

use super::reason::Reason;
use super::VERSION;

/// "SWHI" as a little-endian number: the first word of a [`Hello`].
const HELLO: u32 = u32::from_le_bytes(*b"SWHI");
/// The first word of an [`Answer`].
const ANSWER: u32 = u32::from_le_bytes(*b"SWAN");

/// The doorbell.
pub const WAKE: [u8; 1] = [1];

/// Who the sender is. All of it is checked against the kernel's own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Process that holds the TCP socket.
    pub pid: u32,
    /// Its descriptor number there (to look for in /proc/PID/fd).
    pub fd: u32,
    /// SO_COOKIE of the TCP socket.
    pub cookie: u64,
}

/// The listener's word on a [`Hello`]: its own identity, or a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// [`Reason::None`] is «yes».
    pub verdict: Reason,
    /// As in [`Hello`].
    pub pid: u32,
    pub fd: u32,
    pub cookie: u64,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut w = [0; 4];
    w.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(w)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

fn put(bytes: &mut [u8], words: &[u32]) {
    for (i, w) in words.iter().enumerate() {
        bytes[4 * i..4 * i + 4].copy_from_slice(&w.to_le_bytes());
    }
}

impl Hello {
    /// Size on the wire, in bytes.
    pub const SIZE: usize = 24;

    /// The bytes of the packet.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut b = [0; Self::SIZE];
        let (low, high) = (self.cookie as u32, (self.cookie >> 32) as u32);
        put(&mut b, &[HELLO, VERSION, self.pid, self.fd, low, high]);
        b
    }

    /// Reads a packet. `Err` says why it is refused.
    pub fn decode(packet: &[u8]) -> Result<Hello, Reason> {
        if packet.len() != Self::SIZE || word(packet, 0) != HELLO {
            return Err(Reason::Broken);
        }
        if word(packet, 4) != VERSION {
            return Err(Reason::Version);
        }
        Ok(Hello {
            pid: word(packet, 8),
            fd: word(packet, 12),
            cookie: long(packet, 16),
        })
    }
}

impl Answer {
    /// Size on the wire, in bytes.
    pub const SIZE: usize = 28;

    /// The bytes of the packet.
    pub fn encode(&self) -> [u8; Self::SIZE] {
        let mut b = [0; Self::SIZE];
        let (low, high) = (self.cookie as u32, (self.cookie >> 32) as u32);
        let verdict = self.verdict as u32;
        put(
            &mut b,
            &[ANSWER, VERSION, verdict, self.pid, self.fd, low, high],
        );
        b
    }

    /// Reads a packet; `Err` says why it is refused.
    pub fn decode(packet: &[u8]) -> Result<Answer, Reason> {
        if packet.len() != Self::SIZE || word(packet, 0) != ANSWER {
            return Err(Reason::Broken);
        }
        if word(packet, 4) != VERSION {
            return Err(Reason::Version);
        }
        Ok(Answer {
            verdict: Reason::from_code(word(packet, 8)),
            pid: word(packet, 12),
            fd: word(packet, 16),
            cookie: long(packet, 20),
        })
    }
}
