//! Looks that go beyond the head and take nothing: the bytes that are there, and
//! where they end.

use super::{Consumer, EMPTY_RECORDS};
use crate::abi::record::{count_sub, Pos, Record, HEADER, RING};
use crate::ring::Memory;
use crate::sync::{fence, Ordering};

impl<M: Memory> Consumer<'_, M> {
    /// Looks at up to `max` bytes from the head without taking them; `look`
    /// copies each piece: from an offset, a length, and the bytes before it. It
    /// starts again from the first piece if a signal handler has taken bytes
    /// meanwhile. Returns the number of bytes.
    pub fn look_ahead<F>(&self, max: usize, mut look: F) -> usize
    where
        F: FnMut(&M, u32, u32, usize),
    {
        loop {
            let (head, _) = self.settle();
            let mut total = 0;
            self.walk(head, |off, n| {
                let n = (n as usize).min(max - total);
                if n > 0 {
                    look(self.mem, off, n as u32, total);
                }
                total += n;
                total < max
            });
            // The bytes were read before the position is.
            fence(Ordering::Acquire);
            if self.pos() == head {
                return total;
            }
        }
    }

    /// Where the ring ends now, walking on from `from`, an earlier end (or from
    /// the head, if that is no place ahead of it). Two equal answers mean that
    /// nothing has arrived between them: the "grew" of edge-triggered waits.
    pub fn tail(&self, from: Pos) -> Pos {
        loop {
            let (head, _) = self.settle();
            let ahead = count_sub(from.count(), head.count());
            let start = if ahead > 0 && ahead <= RING as u64 {
                from
            } else {
                head
            };
            let end = self.walk(start, |_, _| true);
            if self.pos() == head {
                return end;
            }
        }
    }

    /// Does the ring end with a cut-back record? Then TCP carries on behind it.
    pub fn is_cut_off(&self) -> bool {
        let end = self.tail(self.pos());
        matches!(self.record(end), Ok(Some(Record::CutBack { .. })))
    }

    /// Walks over records from `pos` on, to the end, to a cut-back record, or
    /// until `data` says so (of the bytes that each record holds from `pos` on).
    fn walk(&self, mut pos: Pos, mut data: impl FnMut(u32, u32) -> bool) -> Pos {
        let mut empty = 0;
        // A hostile producer must not lead us in circles.
        for _ in 0..RING / 8 {
            empty += 1;
            pos = match self.record(pos) {
                Ok(Some(Record::Data { len, count })) => {
                    let done = count_sub(pos.count(), count) as u32;
                    if !data(pos.off() + HEADER + done, len - done) {
                        return pos;
                    }
                    empty = 0;
                    Pos::new(pos.off(), count).after_data(len)
                }
                Ok(Some(Record::Goto { chunk, .. })) => pos.in_chunk(chunk),
                _ => return pos,
            };
            if empty > EMPTY_RECORDS {
                return pos;
            }
        }
        pos
    }
}
