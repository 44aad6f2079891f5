//! `libsidewire.so`: the preload library.
//!
//! Calls go downward only: [`hooks`] -> [`fdtable`] -> [`stream`] -> the ring and
//! the doorbell of `rdma_engine`. See `interpose/docs/design.md`.
//!
//! Rules of the house, for every line that a hook can reach: no allocation, no
//! lock held over a wait, no libc name that we hook (system calls go through
//! `rdma_engine::sys`), no standard I/O, no panic.

// Unit tests hook nothing, so that what only hooks call seems to be unused there.
#![cfg_attr(test, allow(dead_code))]

mod anchors;
mod descriptors;
mod errno;
mod faults;
mod fdtable;
mod holders;
mod hooks;
mod inherit;
mod patience;
mod policy;
mod process;
mod readiness;
mod real;
mod rendezvous;
mod signals;
mod slots;
mod startup;
mod stats;
mod stream;
mod streams;
mod threads;
mod tls;

/// The version of the shared layout, for the launcher to read.
#[no_mangle]
pub static SIDEWIRE_ABI_VERSION: u32 = rdma_engine::abi::VERSION;
