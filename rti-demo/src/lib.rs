//! A minimal HLA run-time infrastructure (RTI) on plain TCP sockets.
//!
//! ```text
//!   program ── federate ──(wire)── rtig ──(wire)── federate ── program
//!   recorder   library             │               library     recorder
//!     │                            └── fed: the object model of a federation
//!     └── game: the message passing game
//! ```
//!
//! The central process [`rtig`] holds every federation and routes; each federate talks to it over one TCP connection
//! through [`federate::RtiAmbassador`]. The services are those of HLA 1.3 and bear its names, in Rust's spelling. What
//! goes wrong is an [`RtiException`] with the standard's name.

#![deny(missing_docs)]

pub mod exception;
pub mod fed;
pub mod federate;
pub mod game;
pub mod handle;
pub mod rtig;
pub mod sys;
pub mod wire;

pub use exception::{ExceptionKind, RtiException};
