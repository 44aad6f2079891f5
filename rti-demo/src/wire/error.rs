//! What can be wrong with bytes from the other end.

use std::fmt;

/// A fault in a frame or in the message within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The length field announces more than any frame may have.
    TooLong {
        /// What it says.
        length: u32,
    },
    /// The length field announces nothing at all.
    Empty,
    /// The stream ended within a frame.
    CutShort {
        /// Bytes that are missing, as far as known.
        missing: usize,
    },
    /// The message ends before its last field does.
    Truncated,
    /// The message goes on after its last field.
    Trailing {
        /// Bytes too many.
        extra: usize,
    },
    /// A number that names no message, answer or exception.
    UnknownTag {
        /// What was to be read.
        what: &'static str,
        /// The number.
        tag: u16,
    },
    /// Text that isn't UTF-8.
    NotText,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { length } => {
                let limit = super::MAX_FRAME;
                write!(f, "a frame of {length} bytes is over the limit of {limit}")
            }
            Self::Empty => f.write_str("a frame of no bytes"),
            Self::CutShort { missing } => {
                write!(
                    f,
                    "the stream ended {missing} bytes before the end of a frame"
                )
            }
            Self::Truncated => f.write_str("a message ends before its last field"),
            Self::Trailing { extra } => write!(f, "{extra} bytes after the end of a message"),
            Self::UnknownTag { what, tag } => write!(f, "{tag} is no {what}"),
            Self::NotText => f.write_str("a name that is not UTF-8"),
        }
    }
}

impl std::error::Error for WireError {}
