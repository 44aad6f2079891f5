//! The gate word: `epoch << 3 | state`.
//!
//! ```text
//!            receiver             sender          sender          receiver, at the cut-back record
//!   IDLE(e) ----------> READY(e) --------> FAST(e) ------> LEFT(e) ------------------------------> IDLE(e + 1)
//!           <----------                       |
//!                                             | receiver              sender             receiver
//!                                             +----------> RETURNED(e) ------> RESENT(e) --------> IDLE(e + 1)
//! ```

/// The direction is on TCP, and the receiver has promised nothing.
pub const IDLE: u64 = 0;
/// The receiver has promised: none of its threads is inside a plain kernel
/// receive. The sender may cut over (READY to FAST), the receiver may take
/// the promise back (READY to IDLE).
pub const READY: u64 = 1;
/// The sender has cut over at `cut_at`.
pub const FAST: u64 = 2;
/// The sender puts the cut-back record into the ring, behind which TCP carries on.
/// What stands before it is the receiver's to take.
pub const LEFT: u64 = 3;
/// The receiver takes nothing more from the ring: whoever reads its socket next may
/// know nothing of us. What it has not taken is the sender's again, and goes by TCP
/// before anything else does.
pub const RETURNED: u64 = 4;
/// All of that has gone by TCP.
pub const RESENT: u64 = 5;

/// Makes a gate word.
pub const fn word(epoch: u64, state: u64) -> u64 {
    epoch << 3 | state
}
/// The epoch of a gate word.
pub const fn epoch(word: u64) -> u64 {
    word >> 3
}
/// The state of a gate word.
pub const fn state(word: u64) -> u64 {
    word & 7
}

#[cfg(all(test, loom))]
mod model;
