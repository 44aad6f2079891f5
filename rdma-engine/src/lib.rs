//! The wires of Sidewire. This crate knows nothing of hooks, of the program's
//! descriptors or of `LD_PRELOAD`; it moves bytes between two processes.
//!
//! * [`abi`] – every byte that two processes share, defined once.
//! * [`arena`] – making and mapping the memory of a program family.
//! * [`ring`] – one direction of bytes: producer and consumer.
//! * [`doorbell`] – arm, look again, sleep, wake.
//! * [`lock`] – a lock that survives its holder's death, and a signal handler
//!   that interrupts its holder.
//! * [`sync`] – the only door to atomics, swappable for the model checker.
//! * [`sys`] – raw system calls: nothing here may enter a hooked libc name.

pub mod abi;
pub mod arena;
pub mod doorbell;
pub mod lock;
pub mod ring;
pub mod segment;
pub mod sync;
pub mod sys;
