//! What each flag of send(2) and recv(2) means on a Fast stream.
//!
//! These lists decide ([`pins_sender`], [`KERNEL_RECEIVES`]), and `docs/options.md` is written
//! from them. A flag that is in none of them means nothing to TCP.

use core::ffi::c_int;
use rdma_engine::abi::reason::Reason;

/// What a flag comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing, but to packets.
    Nothing,
    /// The wire does the same.
    Emulated,
    /// The kernel's own call is made, which moves none of the stream's bytes.
    Call,
    /// The kernel refuses the call (the hooks look at these).
    Refused,
    /// The stream is pinned, and the call is the kernel's.
    Pins(Reason),
}

/// One flag.
#[derive(Debug)]
pub struct Flag {
    pub bit: c_int,
    #[cfg_attr(not(test), allow(dead_code))]
    pub name: &'static str,
    pub meaning: Meaning,
    #[cfg_attr(not(test), allow(dead_code))]
    pub note: &'static str,
}

macro_rules! flags {
    ($list:ident; $($bit:literal $name:ident: $meaning:expr, $note:literal;)*) => {
        /// The flags of one direction.
        pub const $list: &[Flag] = &[$(Flag {
            bit: $bit,
            name: stringify!($name),
            meaning: $meaning,
            note: $note,
        }),*];
    };
}

use Meaning::{Call, Emulated, Nothing, Pins, Refused};

flags! { SENDING;
    0x1 MSG_OOB: Pins(Reason::Urgent), "the mark has its place among TCP's bytes";
    0x4 MSG_DONTROUTE: Nothing, "concerns packets";
    0x40 MSG_DONTWAIT: Emulated, "EAGAIN where there is no room";
    0x80 MSG_EOR: Nothing, "TCP has no records";
    0x800 MSG_CONFIRM: Nothing, "concerns packets";
    0x4000 MSG_NOSIGNAL: Emulated, "EPIPE comes of the kernel's own call, with the program's flags";
    0x8000 MSG_MORE: Emulated, "the wire holds nothing back";
    0x40000 MSG_BATCH: Nothing, "concerns packets";
    0x4000000 MSG_ZEROCOPY: Pins(Reason::ZeroCopy), "completions come on the error queue";
    0x20000000 MSG_FASTOPEN: Refused, "EISCONN; before there is a connection it pins";
    -0x80000000 MSG_CMSG_COMPAT: Refused, "EINVAL where the call takes a msghdr";
}

flags! { RECEIVING;
    0x1 MSG_OOB: Call, "urgent bytes never went by the wire";
    0x2 MSG_PEEK: Emulated, "the ring is looked at, and nothing is taken";
    0x20 MSG_TRUNC: Emulated, "bytes are thrown away uncopied";
    0x40 MSG_DONTWAIT: Emulated, "EAGAIN where there is nothing";
    0x100 MSG_WAITALL: Emulated, "waits for all bytes";
    0x2000 MSG_ERRQUEUE: Call, "the error queue is TCP's";
    0x10000 MSG_WAITFORONE: Emulated, "of recvmmsg(2)";
    0x2000000 MSG_SOCK_DEVMEM: Nothing, "concerns devices";
    0x40000000 MSG_CMSG_CLOEXEC: Emulated, "handed back in msg_flags";
    -0x80000000 MSG_CMSG_COMPAT: Refused, "EINVAL where the call takes a msghdr";
}

/// Flags of a receiving call that the kernel serves.
pub const KERNEL_RECEIVES: c_int = mask(RECEIVING);
const PIN_SENDER: c_int = mask(SENDING);

/// The flags of a list with which the kernel's own call is made.
const fn mask(list: &[Flag]) -> c_int {
    let (mut i, mut bits) = (0, 0);
    while i < list.len() {
        if matches!(list[i].meaning, Call | Pins(_)) {
            bits |= list[i].bit;
        }
        i += 1;
    }
    bits
}

/// Why a sending call with these flags pins the stream, if it does.
#[inline]
pub fn pins_sender(flags: c_int) -> Option<Reason> {
    if flags & PIN_SENDER == 0 {
        return None;
    }
    SENDING.iter().find_map(|flag| match flag.meaning {
        Pins(reason) if flags & flag.bit != 0 => Some(reason),
        _ => None,
    })
}
