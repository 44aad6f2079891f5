//! A ring that its reader returns to its writer, with what it has not taken.
//!
//! The reader closes its state in one step, so that no frame of its own takes another
//! byte, and tells the writer where it stands. The writer ends the epoch with a cut-back
//! record, walks from that place to the record by a state of its own, and sends what
//! it finds by another way. The reader may use the ring again once that is done: it skips
//! to the record.

use super::consumer::CLOSED;
use super::{Consumer, ConsumerState, Fault, Memory, Pull};
use crate::abi::record::{Pos, HEADER, RING};
use crate::sync::{cas, AtomicU64, Ordering};

/// What [`resend`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resent {
    /// Everything up to the cut-back record has gone.
    All,
    /// The way was blocked; the rest has to wait.
    Blocked(Fault),
    /// The ring does not hold what an honest reader would have left.
    Broken,
}

impl ConsumerState {
    /// Takes nothing more. Returns the place where the reader stands.
    pub fn close(&self) -> u64 {
        loop {
            let pos = self.pos.load(Ordering::Acquire);
            if pos & CLOSED != 0 || cas(&self.pos, pos, pos | CLOSED) {
                return pos & !CLOSED;
            }
        }
    }

    /// Goes on where [`ConsumerState::close`] stopped.
    pub fn reopen(&self) {
        let pos = self.pos.load(Ordering::Acquire);
        if pos & CLOSED != 0 {
            cas(&self.pos, pos, pos & !CLOSED);
        }
    }

    /// For the writer: begins at a place that the reader has named. False if there is no
    /// such place.
    pub fn begin_where(&self, place: u64) -> bool {
        let off = Pos(place & !CLOSED).off() as usize;
        let fits = place & CLOSED == 0 && off + HEADER as usize <= RING;
        if fits {
            self.begin();
            self.pos.store(place, Ordering::Release);
        }
        fits
    }
}

/// The memory of a ring of which nothing is given back to the system: the reader has to
/// find its way through it yet.
struct Kept<'a, M>(&'a M);

impl<M: Memory> Memory for Kept<'_, M> {
    fn header(&self, off: u32) -> &AtomicU64 {
        self.0.header(off)
    }

    fn give_back(&self, _chunk: u32, _keep: u32) {}
}

/// For the writer, with its lock held and no handler in between: gives `send` what stands
/// between `at` and the cut-back record; it says how many bytes it took.
pub fn resend<M: Memory>(
    mem: &M,
    at: &ConsumerState,
    mut send: impl FnMut(&M, u32, u32) -> Result<u32, Fault>,
) -> Resent {
    let kept = Kept(mem);
    // Nobody asks how far we are.
    let consumed = AtomicU64::new(at.count());
    let c = Consumer::new(&kept, at, &consumed);
    for_each_piece(|| match c.pull(RING, |kept, off, n| send(kept.0, off, n)) {
        Pull::Data(n) => Ok(n),
        Pull::CutBack => Err(Resent::All),
        Pull::Fault(why) => Err(Resent::Blocked(why)),
        Pull::Empty | Pull::Broken => Err(Resent::Broken),
    })
    .unwrap_or(Resent::Broken)
}

/// Calls `piece` until it ends with something, or has gone through more bytes than a ring
/// holds: a hostile peer must not lead us in circles.
fn for_each_piece<E>(mut piece: impl FnMut() -> Result<usize, E>) -> Option<E> {
    let mut total = 0;
    while total <= RING {
        match piece() {
            Ok(0) => return None,
            Ok(n) => total += n,
            Err(end) => return Some(end),
        }
    }
    None
}

/// For the reader, with its lock held: passes everything up to the cut-back record, and
/// that too. False if there is none: the ring cannot be used again.
pub fn skip<M: Memory>(c: &Consumer<'_, M>, state: &ConsumerState) -> bool {
    state.reopen();
    let end = for_each_piece(|| match c.pull(RING, |_, _, n| Ok(n)) {
        Pull::Data(n) => Ok(n),
        end => Err(end),
    });
    if end == Some(Pull::CutBack) && c.pass_cut_back() {
        return true;
    }
    state.close();
    false
}
