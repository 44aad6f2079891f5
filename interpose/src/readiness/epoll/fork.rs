//! Epoll sets in a forked child, which shares them with its parent.

use super::super::register::{HOT, TAKEN};
use super::{Set, TABLE};
use crate::streams::FDS;
use core::sync::atomic::Ordering;

/// In a forked child: the sets are shared with the parent, and a change that we
/// made would be one of the parent's too.
pub fn after_fork() {
    for set in &TABLE {
        // Another thread may have held it at the fork, in the midst of a change.
        set.lock.reset();
        set.changing.store(0, Ordering::Relaxed);
        set.foreign.store(1, Ordering::Release);
        set.local.store(0, Ordering::Release);
        set.reheat();
    }
}

impl Set {
    /// Makes the list of hot descriptors anew: the one that a forked child has copied, or
    /// that a handler left in the midst of a change, may be torn.
    #[cold]
    pub(super) fn reheat(&self) {
        let first = self.first.swap(0, Ordering::Relaxed);
        self.last.store(0, Ordering::Relaxed);
        if self.users.load(Ordering::Acquire) == 0 {
            return;
        }
        // Numbers that are closed may stand in it, too, while a duplicate is open.
        let at = |place: u32| {
            let fd = (place as i32).checked_sub(1)?;
            Some((fd, self.registration(fd)?))
        };
        let streams = || {
            crate::streams::ours().flat_map(|s| {
                let fds: [Option<i32>; FDS] = core::array::from_fn(|i| s.descriptors().nth(i));
                fds.into_iter().flatten().filter_map(|fd| {
                    let r = self.registration(fd).filter(|r| r.is(TAKEN))?;
                    Some((fd, r))
                })
            })
        };
        let mut place = first;
        while let Some((_, r)) = at(place).filter(|(_, r)| r.is(HOT)) {
            r.clear(HOT);
            place = r.next.load(Ordering::Relaxed);
        }
        for (_, r) in streams() {
            r.clear(HOT);
        }
        place = first;
        while let Some((fd, r)) = at(place).filter(|(_, r)| !r.is(HOT)) {
            place = r.next.load(Ordering::Relaxed);
            self.heat(fd, r);
        }
        for (fd, r) in streams() {
            self.heat(fd, r);
        }
    }
}
