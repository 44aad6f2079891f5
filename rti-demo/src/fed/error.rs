//! What can be wrong with a FED file, and where.

use std::fmt;

/// A place in the text; both count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// A fault in a FED file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FedError {
    /// Where.
    pub place: Place,
    /// What.
    pub kind: FedErrorKind,
}

/// The kinds of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FedErrorKind {
    /// The text ends within the list that opens at the place.
    Unclosed,
    /// A `)` too many.
    Unopened,
    /// A string runs over the end of its line.
    UnclosedString,
    /// Lists within lists beyond any sense.
    TooDeep,
    /// More classes, attributes or parameters than any federation has.
    TooMany,
    /// Something other than what has to stand there.
    Expected(&'static str),
    /// A keyword that this place doesn't know.
    Unknown(String),
    /// The same name twice in one scope.
    Duplicate(String),
    /// A section that has to be there is not.
    Missing(&'static str),
    /// A routing space that the section `spaces` doesn't declare.
    UnknownSpace(String),
}

impl fmt::Display for FedErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclosed => f.write_str("this list is never closed"),
            Self::Unopened => f.write_str("a ')' that closes nothing"),
            Self::UnclosedString => f.write_str("this string is not closed on its line"),
            Self::TooDeep => f.write_str("lists are nested too deeply"),
            Self::TooMany => f.write_str("too many classes and members"),
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::Unknown(word) => write!(f, "'{word}' has no meaning here"),
            Self::Duplicate(name) => write!(f, "'{name}' is declared twice"),
            Self::Missing(what) => write!(f, "there is no {what}"),
            Self::UnknownSpace(name) => write!(f, "there is no routing space '{name}'"),
        }
    }
}

impl fmt::Display for FedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(f, "line {line}, column {column}: {}", self.kind)
    }
}

impl std::error::Error for FedError {}
