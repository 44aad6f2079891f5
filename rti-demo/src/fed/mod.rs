//! FED files: the object model of a federation in the notation of HLA 1.3.
//!
//! ```text
//!   text ──sexpr──▶ lists with places ──parser──▶ ObjectModel
//! ```
//!
//! Keywords are read in any case, as the files in the wild have them; names are taken to the letter.

mod error;
mod model;
mod parser;
mod sexpr;
#[cfg(test)]
mod tests;

pub use error::{FedError, FedErrorKind, Place};
pub use model::{Class, ClassTree, Delivery, Member, ObjectModel, Order, Space, Transport};
pub use parser::parse;
