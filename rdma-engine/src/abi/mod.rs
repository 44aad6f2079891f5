//! Every byte that two processes share, defined once, with sizes and offsets
//! checked at compile time.
//!
//! * [`record`] – what stands in a ring.
//! * [`segment`] – the memory that the two ends of one stream share.
//! * [`message`] – the side channel.
//! * [`arena`] – the memory that all processes of one program family share:
//!   the end's own state, and what `sidewire ps` shows.
//! * [`log`] – what happened, in fixed-size records behind the arena's slots.
//! * [`reason`] – the closed list of reasons why a stream is not Fast.

#[cfg(not(loom))]
pub mod arena;
pub mod gate;
#[cfg(not(loom))]
pub mod log;
#[cfg(not(loom))]
pub mod message;
pub mod reason;
pub mod record;
#[cfg(not(loom))]
pub mod segment;

/// Version of everything in this module. Two libraries talk to each other only
/// if theirs are equal; a launcher reads only an arena of its own version.
pub const VERSION: u32 = 3;
