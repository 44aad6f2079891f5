//! Where the tables lie that every call on a stream looks at.
//!
//! The kernel drives our lines out of the first-level cache with each system call,
//! and every line that has to come back costs a call some nanoseconds: these
//! addresses share one.

use crate::streams::Local;
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

/// The addresses; null until the table is there.
#[repr(C, align(64))]
pub struct Anchors {
    /// The descriptor table's ([`crate::fdtable`]).
    pub descriptors: AtomicPtr<AtomicU64>,
    /// The arena's ([`crate::streams`]).
    pub arena: AtomicPtr<u8>,
    /// That of what is this process's own about each slot.
    pub locals: AtomicPtr<Local>,
    /// Where a thread's block is, from its thread pointer ([`crate::tls`]); there before
    /// the descriptor table is.
    pub tls: AtomicUsize,
    /// The next definitions of the calls that are made most ([`crate::real`]).
    pub read: AtomicPtr<c_void>,
    pub write: AtomicPtr<c_void>,
    pub recv: AtomicPtr<c_void>,
    pub send: AtomicPtr<c_void>,
}

const _: () = assert!(core::mem::size_of::<Anchors>() == 64);

/// This process's.
pub static ANCHORS: Anchors = Anchors {
    descriptors: AtomicPtr::new(null_mut()),
    arena: AtomicPtr::new(null_mut()),
    locals: AtomicPtr::new(null_mut()),
    tls: AtomicUsize::new(0),
    read: AtomicPtr::new(null_mut()),
    write: AtomicPtr::new(null_mut()),
    recv: AtomicPtr::new(null_mut()),
    send: AtomicPtr::new(null_mut()),
};
