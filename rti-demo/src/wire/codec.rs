//! Fields: how each kind of value is written and, with every check, read back.

use super::error::WireError;
use crate::handle::{
    AttributeHandle, FederateHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle,
    ParameterHandle,
};
use crate::{ExceptionKind, RtiException};
use std::borrow::Cow;

/// What can travel. Values borrow from the frame they are read from.
pub trait Wire<'a>: Sized {
    /// The fewest bytes that a value takes; bounds how many can be in a message.
    const LEAST: usize;

    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads a value.
    fn take(from: &mut Decoder<'a>) -> Result<Self, WireError>;
}

/// The rest of a message while it is read.
pub struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// Starts at the beginning of a message.
    pub fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// That many bytes, if there are so many.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A number of things to come, each of at least that many bytes: never more than the message can hold.
    fn count(&mut self, least: usize) -> Result<usize, WireError> {
        let count = u32::take(self)? as usize;
        match count.checked_mul(least) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(WireError::Truncated),
        }
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), WireError> {
        match self.rest.len() {
            0 => Ok(()),
            extra => Err(WireError::Trailing { extra }),
        }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl<'a> Wire<'a> for $number {
            const LEAST: usize = size_of::<Self>();

            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
                let bytes = from.bytes(Self::LEAST)?;
                Ok(Self::from_le_bytes(bytes.try_into().expect("of that length")))
            }
        }
    )*};
}
numbers!(u8, u16, u32);

macro_rules! handles {
    ($($handle:ident),*) => {$(
        impl<'a> Wire<'a> for $handle {
            const LEAST: usize = u32::LEAST;

            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
                u32::take(from).map(Self)
            }
        }
    )*};
}
handles!(
    FederateHandle,
    ObjectClassHandle,
    AttributeHandle,
    ObjectHandle,
    InteractionClassHandle,
    ParameterHandle
);

impl<'a> Wire<'a> for Cow<'a, [u8]> {
    const LEAST: usize = u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self);
    }

    fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
        let length = from.count(1)?;
        from.bytes(length).map(Cow::Borrowed)
    }
}

impl<'a> Wire<'a> for Cow<'a, str> {
    const LEAST: usize = u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        out.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
        let length = from.count(1)?;
        let text = std::str::from_utf8(from.bytes(length)?).map_err(|_| WireError::NotText)?;
        Ok(Cow::Borrowed(text))
    }
}

impl<'a, T: Wire<'a>> Wire<'a> for Vec<T> {
    const LEAST: usize = u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        for item in self {
            item.put(out);
        }
    }

    fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
        let count = from.count(T::LEAST)?;
        (0..count).map(|_| T::take(from)).collect()
    }
}

impl<'a, A: Wire<'a>, B: Wire<'a>> Wire<'a> for (A, B) {
    const LEAST: usize = A::LEAST + B::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<'a> Wire<'a> for RtiException {
    const LEAST: usize = u16::LEAST + u32::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.kind.code().put(out);
        Cow::Borrowed(self.reason.as_str()).put(out);
    }

    fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
        let tag = u16::take(from)?;
        let what = "exception";
        let kind = ExceptionKind::from_code(tag).ok_or(WireError::UnknownTag { what, tag })?;
        Ok(Self::new(kind, Cow::<str>::take(from)?))
    }
}
