//! Waiting for many descriptors: epoll, poll and select, merged with what the
//! streams' rings know.

pub mod epoll;
pub mod poll;
mod register;
pub mod select;
