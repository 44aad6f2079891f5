//! One end of a TCP stream, in plain numbers.

use crate::diag;
use rdma_engine::abi::arena::{flags, Address, RxMode, Slot};
use rdma_engine::abi::reason::Reason;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Where a direction's bytes go now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Over TCP.
    Tcp,
    /// Over TCP; the receiver has promised, so that the sender may cut over.
    Ready,
    /// Over the wire.
    Fast,
}

impl State {
    /// As `sidewire ps` prints it.
    pub fn text(self) -> &'static str {
        match self {
            State::Tcp => "TCP",
            State::Ready => "Ready",
            State::Fast => "Fast",
        }
    }
}

/// What a direction has carried.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub state: State,
    pub wire_bytes: u64,
    pub tcp_bytes: u64,
    pub messages: u64,
}

/// A slot's content.
#[derive(Clone, Debug)]
pub struct Stream {
    pub slot: u32,
    pub generation: u32,
    /// Processes that hold the end, by the ids that they have themselves.
    pub holders: Vec<u32>,
    /// `None` while the library has not asked for them: a stream that stays cold
    /// costs it no system call.
    pub local: Option<SocketAddr>,
    pub remote: Option<SocketAddr>,
    /// When it was opened, monotonic ns.
    pub opened: u64,
    pub out: Traffic,
    pub inward: Traffic,
    /// Both directions were Fast at least once.
    pub was_fast: bool,
    /// On TCP for good, and the library counts neither its bytes nor its messages any more.
    pub settled: bool,
    reason: Reason,
}

fn word(w: &AtomicU32) -> u32 {
    w.load(Ordering::Relaxed)
}

fn long(w: &AtomicU64) -> u64 {
    w.load(Ordering::Relaxed)
}

/// Addresses are printed as users know them: v4-mapped ones as IPv4.
fn plain(address: &Address) -> Option<SocketAddr> {
    let known = word(&address.family_port) != 0;
    let address = address.get();
    known.then(|| SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// An address, or `-`.
pub fn shown(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "-".to_owned(), |a| a.to_string())
}

impl Stream {
    /// Reads a private copy of a slot.
    pub(super) fn of(index: u32, slot: &Slot) -> Stream {
        let out = match word(&slot.tx.fast) {
            0 => State::Tcp,
            _ => State::Fast,
        };
        let inward = match slot.rx_mode() {
            RxMode::Plain => State::Tcp,
            RxMode::Promised => State::Ready,
            RxMode::Fast => State::Fast,
        };
        let code = match word(&slot.pin) {
            0 => word(&slot.reason),
            pin => pin,
        };
        Stream {
            slot: index,
            generation: word(&slot.generation),
            holders: slot.holders.iter().map(word).filter(|p| *p != 0).collect(),
            local: plain(&slot.local),
            remote: plain(&slot.remote),
            opened: long(&slot.opened),
            out: Traffic {
                state: out,
                wire_bytes: long(&slot.tx.wire_bytes),
                tcp_bytes: long(&slot.tcp.sent),
                messages: long(&slot.tcp.sends).saturating_add(long(&slot.tx.wire_messages)),
            },
            inward: Traffic {
                state: inward,
                wire_bytes: long(&slot.rx.wire_bytes),
                tcp_bytes: long(&slot.tcp.received),
                messages: long(&slot.tcp.receives).saturating_add(long(&slot.rx.wire_messages)),
            },
            was_fast: slot.has(flags::WAS_FAST),
            settled: slot.has(flags::SETTLED),
            reason: Reason::from_code(code),
        }
    }

    /// Takes the kernel's word for what a settled stream has carried, where it has one.
    pub fn ask_kernel(&mut self) {
        let (Some(local), Some(remote), true) = (self.local, self.remote, self.settled) else {
            return;
        };
        if let Some((sent, received)) = diag::find(local, remote).and_then(|s| s.carried) {
            self.out.tcp_bytes = sent;
            self.inward.tcp_bytes = received;
        }
    }

    /// Why it is not Fast; `None` if both directions are.
    pub fn reason(&self) -> Option<Reason> {
        let fast = self.out.state == State::Fast && self.inward.state == State::Fast;
        (!fast).then_some(self.reason)
    }

    /// The same in words.
    pub fn reason_text(&self) -> Option<&'static str> {
        let half = self.out.state == State::Fast || self.inward.state == State::Fast;
        Some(match self.reason()? {
            Reason::None | Reason::Attached if half => {
                "half is fast; the other direction follows with its next messages"
            }
            Reason::None => "ready: fast from the next message on",
            other => other.text(),
        })
    }

    /// The wire that it uses, or used.
    pub fn wire(&self) -> &'static str {
        let used = |t: &Traffic| t.state == State::Fast || t.wire_bytes > 0;
        if used(&self.out) || used(&self.inward) {
            "shm"
        } else {
            "tcp"
        }
    }
}

#[cfg(test)]
impl Stream {
    /// A stream for tests of what is printed.
    pub fn example(local: SocketAddr, remote: SocketAddr, out: Traffic, inward: Traffic) -> Stream {
        Stream {
            slot: 0,
            generation: 1,
            holders: vec![1],
            local: Some(local),
            remote: Some(remote),
            opened: 0,
            out,
            inward,
            settled: false,
            was_fast: false,
            reason: Reason::Cold,
        }
    }
}
