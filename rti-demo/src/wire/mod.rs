//! The wire format between federate and RTI.
//!
//! ```text
//!   u32 length │ message                                  length: 1 ..= MAX_FRAME, little endian
//!              │ federate → RTI   u32 serial │ u8 service  │ fields
//!              │ RTI → federate   u8 notice  │ fields
//!
//!   field: number (little endian) │ u32 count + bytes │ u32 count + fields
//! ```
//!
//! Everything from the other end is checked: a length or count can never make us allocate more than the bytes that are
//! really there, and what is wrong is a [`WireError`].

mod codec;
mod error;
mod frame;
mod message;
#[cfg(test)]
mod tests;

pub use codec::{Decoder, Wire};
pub use error::WireError;
pub use frame::{append, decode, FrameReader, HEADER, MAX_FRAME};
pub use message::{
    AttributeValues, Bytes, Callback, Notice, ParameterValues, Request, Service, Text, PROTOCOL,
};
