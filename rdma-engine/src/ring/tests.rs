//! Proofs of the ring: byte-exactness, interruption at any instruction, hostile
//! peers, and models of its concurrency.

#[cfg(not(loom))]
mod wire;

#[cfg(not(loom))]
mod bytes;
#[cfg(not(loom))]
mod chunks;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod dead;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod few;
#[cfg(not(loom))]
mod hostile;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod interrupted;
#[cfg(not(loom))]
mod returned;

#[cfg(loom)]
mod model;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod nested;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod step;
#[cfg(all(not(loom), target_arch = "x86_64"))]
mod world;
