//! Who holds the end of a stream: the processes that have a descriptor of it, by
//! their ids, in the slot.

use crate::process;
use crate::streams::Stream;
use core::sync::atomic::{AtomicU32, Ordering};
use rdma_engine::abi::arena::{flags, HOLDERS};

impl Stream {
    /// Names a process as a holder; beyond [`HOLDERS`] it's a crowd for ever.
    pub fn add_holder(&self, pid: u32) {
        for h in &self.slot.holders {
            let was = h.load(Ordering::Acquire);
            if (was == 0 || !process::may_live(was))
                && h.compare_exchange(was, pid, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
            {
                return;
            }
        }
        self.slot.flags.fetch_or(flags::CROWD, Ordering::AcqRel);
    }

    /// Names a child that is about to be born; nothing dead is looked for.
    pub fn add_unborn(&self, unborn: u32) {
        self.slot.flags.fetch_or(flags::SHARED, Ordering::AcqRel);
        for h in &self.slot.holders {
            if h.compare_exchange(0, unborn, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return;
            }
        }
        self.add_holder(unborn);
    }

    /// The child has been born: parent and child both say so, the first to come
    /// replaces the word.
    pub fn name_unborn(&self, unborn: u32, pid: u32) {
        let known = |h: &AtomicU32| h.load(Ordering::Acquire) == pid;
        if self.slot.holders.iter().any(known) {
            return;
        }
        for h in &self.slot.holders {
            if h.compare_exchange(unborn, pid, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Takes this name off again.
    pub fn remove_holder(&self, pid: u32) {
        for h in &self.slot.holders {
            if h.compare_exchange(pid, 0, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
            {
                return;
            }
        }
    }

    /// Is process `pid` named as a holder?
    pub fn is_held_by(&self, pid: u32) -> bool {
        let named = |h: &AtomicU32| h.load(Ordering::Acquire) == pid;
        self.slot.holders.iter().any(named)
    }

    /// Does this process alone hold the end?
    pub fn is_sole(&self) -> bool {
        let me = process::pid();
        !self.slot.has(flags::CROWD)
            && self.slot.holders.iter().all(|h| {
                let pid = h.load(Ordering::Acquire);
                pid == 0 || pid == me || !process::may_live(pid)
            })
    }

    /// Is any of the holders alive?
    pub fn has_live_holder(&self) -> bool {
        self.slot.has(flags::CROWD)
            || self.slot.holders[..HOLDERS].iter().any(|h| {
                let pid = h.load(Ordering::Acquire);
                pid != 0 && process::may_live(pid)
            })
    }
}
