//! The real programs that are measured: how each is started, and how its output is read.

pub mod netperf;
pub mod nptcp;
pub mod redis;
