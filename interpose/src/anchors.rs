//! Where the tables lie that every call on a stream looks at.
//!
//! The kernel drives our lines out of the first-level cache with each system call,
//! and every line that has to come back costs a call some nanoseconds: these
//! addresses share one.

use crate::streams::Local;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64};

/// The addresses; null until the table is there.
#[repr(C, align(64))]
pub struct Anchors {
    /// The descriptor table's ([`crate::fdtable`]).
    pub descriptors: AtomicPtr<AtomicU64>,
    /// The arena's ([`crate::streams`]).
    pub arena: AtomicPtr<u8>,
    /// That of what is this process's own about each slot.
    pub locals: AtomicPtr<Local>,
}

/// This process's.
pub static ANCHORS: Anchors = Anchors {
    descriptors: AtomicPtr::new(null_mut()),
    arena: AtomicPtr::new(null_mut()),
    locals: AtomicPtr::new(null_mut()),
};
