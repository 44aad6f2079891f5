//! Proofs of the ring: byte-exactness, interruption at any instruction, hostile
//! peers, and models of its concurrency.

#[cfg(loom)]
mod model;
