//! The gate word: `epoch << 2 | state`.
//!
//! ```text
//!            receiver             sender            receiver, at the cut-back record
//!   IDLE(e) ----------> READY(e) --------> FAST(e) ---------------------------------> IDLE(e + 1)
//!           <----------
//! ```

/// The direction is on TCP, and the receiver has promised nothing.
pub const IDLE: u64 = 0;
/// The receiver has promised: none of its threads is inside a plain kernel
/// receive. The sender may cut over (READY to FAST), the receiver may take
/// the promise back (READY to IDLE).
pub const READY: u64 = 1;
/// The sender has cut over at `cut_at`. Only the receiver leaves this state,
/// when it takes the cut-back record: IDLE of the next epoch.
pub const FAST: u64 = 2;

/// Makes a gate word.
pub const fn word(epoch: u64, state: u64) -> u64 {
    epoch << 2 | state
}
/// The epoch of a gate word.
pub const fn epoch(word: u64) -> u64 {
    word >> 2
}
/// The state of a gate word.
pub const fn state(word: u64) -> u64 {
    word & 3
}

#[cfg(all(test, loom))]
mod model;
