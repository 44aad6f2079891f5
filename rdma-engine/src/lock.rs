//! A lock that outlives its holder.
//!
//! One word in end-private shared memory: the holder's thread id, or zero. It
//! is held for the few steps of one ring operation and never over a wait. It
//! is *stolen*
//! * by the thread that holds it already: then a signal handler has interrupted
//!   the holding frame (or a `siglongjmp` has left it), and must get through;
//! * from a thread that is dead.
//!
//! What the lock guards must therefore be mendable at any instruction: see
//! [`crate::ring`].

use crate::sync::{relax, take_out, AtomicU32, Ordering};

/// The lock word. All zero is «free».
#[repr(transparent)]
pub struct Lock {
    owner: AtomicU32,
}

/// How a lock was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// Nobody held it.
    Clean,
    /// Its holder is a frame of this thread that was interrupted; the guarded state
    /// wants mending.
    Stolen,
    /// Its holder is dead. The same, and what it did last may be half done.
    Orphaned,
}

#[allow(clippy::new_without_default)]
impl Lock {
    /// A free lock.
    #[cfg(not(loom))]
    pub const fn new() -> Lock {
        Lock {
            owner: AtomicU32::new(0),
        }
    }

    /// A free lock.
    #[cfg(loom)]
    pub fn new() -> Lock {
        Lock {
            owner: AtomicU32::new(0),
        }
    }

    /// Takes the lock for thread `me`; waits while another live thread is in
    /// its few steps, yielding the processor to it.
    #[inline]
    pub fn acquire(&self, me: u32) -> Acquired {
        match self
            .owner
            .compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Acquired::Clean,
            Err(owner) => self.contend(me, owner),
        }
    }

    #[cold]
    fn contend(&self, me: u32, mut owner: u32) -> Acquired {
        let mut rounds = 0u32;
        loop {
            if owner == me {
                return Acquired::Stolen;
            }
            rounds += 1;
            if rounds % 256 == 64 && !crate::sys::alive(owner) {
                let taken =
                    self.owner
                        .compare_exchange(owner, me, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    return Acquired::Orphaned;
                }
            }
            relax(rounds);
            match self
                .owner
                .compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Acquired::Clean,
                Err(now) => owner = now,
            }
        }
    }

    /// Gives the lock back. A frame that was robbed by a signal handler finds
    /// it free already, or taken by another thread: then this changes nothing.
    #[inline]
    pub fn release(&self, me: u32) {
        if self.owner.load(Ordering::Relaxed) == me {
            // A handler may come here, and another thread behind it. Partner:
            // the acquire in `acquire`.
            take_out(&self.owner, me);
        }
    }

    /// In a forked child, whose copy of a lock in private memory may name a thread of
    /// the parent: makes it free.
    pub fn reset(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Takes the lock if it is free, or if its holder is dead; never waits. What
    /// it guards may want mending then.
    pub fn try_acquire(&self, me: u32) -> bool {
        let (yes, no) = (Ordering::Acquire, Ordering::Relaxed);
        match self.owner.compare_exchange(0, me, yes, no) {
            Ok(_) => true,
            Err(owner) if owner == me || crate::sys::alive(owner) => false,
            Err(owner) => self.owner.compare_exchange(owner, me, yes, no).is_ok(),
        }
    }
}
