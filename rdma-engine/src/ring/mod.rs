//! One direction of bytes: a [`Producer`] in one process, a [`Consumer`] in
//! another, over memory that both map ([`Memory`]).
//!
//! The producer picks the lowest free chunk whenever one is full, so a fast
//! reader keeps it within the first few chunks (a window that fits the
//! second-level cache), while a slow reader lets it spread over the whole,
//! sparse ring.
//!
//! Each side's own state lives in memory that the peer cannot map, and is
//! guarded by a [`crate::lock::Lock`] which can be *stolen*: from a holder that
//! died, or from the frame that a signal handler interrupted. A frame that was
//! robbed may go on at any time, without knowing, beside whoever has the lock
//! then. So no step relies on the lock: whatever decides something is one
//! compare-and-swap, of a word whose old value cannot come back.

mod chunks;
mod consumer;
mod end;
mod memory;
mod producer;
mod returned;

pub use consumer::{Consumer, ConsumerState, Peek, Pull};
pub use end::ProducerState;
pub use memory::{Fault, Memory, RawMemory};
pub use producer::{Producer, Push};
pub use returned::{resend, skip, Resent};

/// The first chunks, which a writer uses as long as the reader keeps up.
#[cfg(not(loom))]
pub const WINDOW_CHUNKS: u32 = 4;
#[cfg(loom)]
pub const WINDOW_CHUNKS: u32 = 1;

#[cfg(test)]
mod tests;
