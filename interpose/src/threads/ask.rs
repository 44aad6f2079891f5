//! What the other threads are doing: asked by who wants to change something under
//! them.

use super::mark::{bit, word, Kind};
use super::single;
use super::table::{marks, mine, CROWDED};
use core::sync::atomic::Ordering;
use rdma_engine::syscall;

/// Makes the plain stores of all running threads of this process visible to us,
/// and ours to them (membarrier(2)). False if the kernel can't.
pub fn barrier() -> bool {
    const PRIVATE_EXPEDITED: usize = 8;
    const REGISTER_PRIVATE_EXPEDITED: usize = 16;
    if single() {
        return true;
    }
    // SAFETY: no memory is passed.
    unsafe {
        syscall!(libc::SYS_membarrier, PRIVATE_EXPEDITED) == 0
            || (syscall!(libc::SYS_membarrier, REGISTER_PRIVATE_EXPEDITED) == 0
                && syscall!(libc::SYS_membarrier, PRIVATE_EXPEDITED) == 0)
    }
}

/// Is another thread doing one of `kinds` with stream `index`? Meaningful after
/// [`barrier`].
pub fn anyone(kinds: &[Kind], index: u32) -> bool {
    let me = mine();
    if CROWDED.load(Ordering::SeqCst) {
        return true;
    }
    marks().iter().any(|m| {
        if m.has_hidden(index) && m.is_alive() {
            return true;
        }
        if core::ptr::eq(m, me) {
            return false;
        }
        let doing = m.doing.load(Ordering::Acquire);
        let hit = kinds.iter().any(|&k| match k {
            Kind::Many | Kind::SleepMany => {
                doing == word(k, 0) && m.set.load(Ordering::Acquire) & bit(index) != 0
            }
            _ => doing == word(k, index),
        });
        hit && m.is_alive()
    })
}

/// Is any thread, this one too, doing anything at all with stream `index`?
pub fn in_use(index: u32) -> bool {
    if CROWDED.load(Ordering::SeqCst) {
        return true;
    }
    marks().iter().any(|m| {
        let doing = m.doing.load(Ordering::Acquire);
        let kind = doing >> 32;
        let hit = if kind == Kind::Many as u64 || kind == Kind::SleepMany as u64 {
            m.set.load(Ordering::Acquire) & bit(index) != 0
        } else {
            kind != 0 && kind != Kind::SleepEpoll as u64 && doing as u32 == index
        } || m.has_hidden(index);
        hit && m.is_alive()
    })
}

/// As [`in_use`], but for the calling thread.
pub fn others_in_use(index: u32) -> bool {
    const ALL: [Kind; 6] = [
        Kind::Use,
        Kind::PlainRecv,
        Kind::PlainSend,
        Kind::Sleep,
        Kind::Many,
        Kind::SleepMany,
    ];
    anyone(&ALL, index)
}
