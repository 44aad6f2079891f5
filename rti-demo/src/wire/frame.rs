//! Frames: a length of four bytes, little endian, and that many bytes of message.

use super::codec::{Decoder, Wire};
use super::error::WireError;
use std::io::{self, Read};
use std::ops::Range;

/// The longest message, in bytes. It bounds what a hostile length field can make us allocate.
pub const MAX_FRAME: usize = 1 << 20;

/// Bytes of the length field.
pub const HEADER: usize = 4;

/// How much one read asks for at least.
const CHUNK: usize = 64 * 1024;

/// Appends one message as a frame. One that is too long leaves `out` as it was.
pub fn append<'a>(out: &mut Vec<u8>, message: &impl Wire<'a>) -> Result<(), WireError> {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    message.put(out);
    let length = out.len() - start - HEADER;
    if length > MAX_FRAME {
        out.truncate(start);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        return Err(WireError::TooLong { length });
    }
    out[start..start + HEADER].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(())
}

/// Reads a message that has to fill its frame.
pub fn decode<'a, M: Wire<'a>>(body: &'a [u8]) -> Result<M, WireError> {
    let mut decoder = Decoder::new(body);
    let message = M::take(&mut decoder)?;
    decoder.finish()?;
    Ok(message)
}

/// Cuts a stream of bytes into frames.
#[derive(Default)]
pub struct FrameReader {
    buffer: Vec<u8>,
    /// What of the buffer has been read from the stream and not been given out.
    full: Range<usize>,
}

impl FrameReader {
    /// One `read` of the stream; the outcome is how many bytes came, 0 at its end.
    pub fn fill(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        self.make_room();
        let n = stream.read(&mut self.buffer[self.full.end..])?;
        self.full.end += n;
        Ok(n)
    }

    /// The body of the next whole frame, if there is one.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, WireError> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        if self.full.len() < HEADER + length {
            return Ok(None);
        }
        let start = self.full.start + HEADER;
        self.full.start = start + length;
        Ok(Some(&self.buffer[start..start + length]))
    }

    /// To be asked at the end of the stream: an error if it came within a frame.
    pub fn finish(&self) -> Result<(), WireError> {
        let missing = match self.length()? {
            None if self.full.is_empty() => return Ok(()),
            None => HEADER - self.full.len(),
            Some(length) => (HEADER + length).saturating_sub(self.full.len()),
        };
        match missing {
            0 => Ok(()),
            missing => Err(WireError::CutShort { missing }),
        }
    }

    /// The length field of the next frame, if it is there, checked.
    fn length(&self) -> Result<Option<usize>, WireError> {
        let Some(header) = self.buffer[self.full.clone()].first_chunk::<HEADER>() else {
            return Ok(None);
        };
        match u32::from_le_bytes(*header) {
            0 => Err(WireError::Empty),
            length if length as usize > MAX_FRAME => Err(WireError::TooLong { length }),
            length => Ok(Some(length as usize)),
        }
    }

    /// Moves what is left to the front once the tail is short; a frame that is under way gets all the room it needs.
    fn make_room(&mut self) {
        if self.full.is_empty() {
            self.full = 0..0;
        }
        let frame = self.length().ok().flatten().unwrap_or(0);
        let missing = (HEADER + frame).saturating_sub(self.full.len());
        let needed = missing.max(CHUNK / 2);
        if self.buffer.len() - self.full.end >= needed {
            return;
        }
        self.buffer.copy_within(self.full.clone(), 0);
        self.full = 0..self.full.len();
        let size = self.full.end + needed.max(CHUNK);
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
    }
}
