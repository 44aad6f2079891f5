//! The cut-over under the model checker: whatever the two ends do and when, the
//! receiver gets the bytes in order. Here a byte is a number, and TCP and the
//! ring are lists of them; 0 in the ring is the cut-back record.

use super::{state, word, FAST, IDLE, LEFT, READY, RESENT, RETURNED};
use crate::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

const CUT_BACK: u64 = 0;

/// What one of the two wires holds.
struct Wire {
    items: Vec<AtomicU64>,
    len: AtomicU64,
}

impl Wire {
    fn new() -> Wire {
        Wire {
            items: (0..4).map(|_| AtomicU64::new(99)).collect(),
            len: AtomicU64::new(0),
        }
    }

    fn put(&self, item: u64) {
        let n = self.len.load(Ordering::Relaxed);
        self.items[n as usize].store(item, Ordering::Relaxed);
        self.len.store(n + 1, Ordering::Release);
    }

    fn get(&self, i: u64) -> Option<u64> {
        (i < self.len.load(Ordering::Acquire))
            .then(|| self.items[i as usize].load(Ordering::Relaxed))
    }
}

/// What the two ends share.
struct Direction {
    gate: AtomicU64,
    cut_at: AtomicU64,
    returned_at: AtomicU64,
    tcp: Wire,
    ring: Wire,
}

/// The sending end.
struct Sender {
    d: Arc<Direction>,
    epoch: u64,
    fast: bool,
}

impl Sender {
    fn send(&self, byte: u64) {
        let wire = if self.fast { &self.d.ring } else { &self.d.tcp };
        wire.put(byte);
    }

    fn cut_over(&mut self) {
        // Else the receiver may yet have to read where we cut the last time.
        if self.fast || self.d.gate.load(Ordering::Acquire) != word(self.epoch, READY) {
            return;
        }
        let sent = self.d.tcp.len.load(Ordering::Relaxed);
        self.d.cut_at.store(sent, Ordering::Relaxed);
        let (ready, fast) = (word(self.epoch, READY), word(self.epoch, FAST));
        let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
        self.fast = self.d.gate.compare_exchange(ready, fast, ok, fail).is_ok();
    }

    fn cut_back(&mut self) {
        if !self.fast {
            return;
        }
        let (fast, left) = (word(self.epoch, FAST), word(self.epoch, LEFT));
        let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
        let moved = self.d.gate.compare_exchange(fast, left, ok, fail);
        self.d.ring.put(CUT_BACK);
        if let Err(now) = moved {
            assert_eq!(now, word(self.epoch, RETURNED));
            self.resend(self.d.returned_at.load(Ordering::Relaxed));
            let resent = word(self.epoch, RESENT);
            self.d.gate.store(resent, Ordering::SeqCst);
        }
        self.epoch += 1;
        self.fast = false;
    }

    fn resend(&self, from: u64) {
        let taken = (from..).map_while(|i| self.d.ring.get(i));
        for byte in taken.take_while(|byte| *byte != CUT_BACK) {
            self.d.tcp.put(byte);
        }
    }
}

#[derive(PartialEq)]
enum Mode {
    Plain,
    Promised,
    Fast(u64),
}

/// The receiving end.
struct Receiver {
    d: Arc<Direction>,
    epoch: u64,
    mode: Mode,
    from_tcp: u64,
    from_ring: u64,
    got: Vec<u64>,
}

impl Receiver {
    fn promise(&mut self) {
        match state(self.d.gate.load(Ordering::Acquire)) {
            RETURNED => return,
            RESENT => {
                while self.d.ring.get(self.from_ring) != Some(CUT_BACK) {
                    self.from_ring += 1;
                }
                self.pass_cut_back();
            }
            _ => {}
        }
        let (idle, ready) = (word(self.epoch, IDLE), word(self.epoch, READY));
        let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
        let promised = self.d.gate.compare_exchange(idle, ready, ok, fail);
        assert!(promised.is_ok(), "only the receiver leaves IDLE");
        self.mode = Mode::Promised;
    }

    fn take_back(&mut self) {
        let (idle, ready) = (word(self.epoch, IDLE), word(self.epoch, READY));
        let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
        if self.d.gate.compare_exchange(ready, idle, ok, fail).is_ok() {
            self.mode = Mode::Plain;
        }
    }

    fn see_cut(&mut self) -> bool {
        let gate = self.d.gate.load(Ordering::Acquire);
        let cut = [FAST, LEFT].iter().any(|s| gate == word(self.epoch, *s));
        if cut {
            self.mode = Mode::Fast(self.d.cut_at.load(Ordering::Relaxed));
        }
        cut
    }

    fn hand_back(&mut self) {
        if self.mode == Mode::Promised {
            self.take_back();
        }
        if self.mode == Mode::Plain || self.mode == Mode::Promised && !self.see_cut() {
            return;
        }
        self.d.returned_at.store(self.from_ring, Ordering::Relaxed);
        let (fast, returned) = (word(self.epoch, FAST), word(self.epoch, RETURNED));
        let (ok, fail) = (Ordering::SeqCst, Ordering::Acquire);
        let done = self.d.gate.compare_exchange(fast, returned, ok, fail);
        if done.is_ok() {
            self.mode = Mode::Plain;
        }
    }

    fn pass_cut_back(&mut self) {
        self.from_ring += 1;
        self.epoch += 1;
        self.mode = Mode::Plain;
        let idle = word(self.epoch, IDLE);
        self.d.gate.store(idle, Ordering::SeqCst);
    }

    /// Takes a byte if one is due.
    fn receive(&mut self) {
        // What stands there while there is no cut comes before any.
        let sure = self.d.tcp.len.load(Ordering::Acquire);
        if self.mode == Mode::Promised {
            self.see_cut();
        }
        match self.mode {
            Mode::Fast(cut_at) if self.from_tcp == cut_at => {
                match self.d.ring.get(self.from_ring) {
                    Some(CUT_BACK) => self.pass_cut_back(),
                    Some(byte) => {
                        self.from_ring += 1;
                        self.got.push(byte);
                    }
                    None => {}
                }
            }
            Mode::Promised if self.from_tcp >= sure => {}
            _ => {
                if let Some(byte) = self.d.tcp.get(self.from_tcp) {
                    self.from_tcp += 1;
                    self.got.push(byte);
                }
                if let Mode::Fast(cut_at) = self.mode {
                    assert!(self.from_tcp <= cut_at, "read beyond the cut");
                }
            }
        }
    }
}

fn ends() -> (Sender, Receiver) {
    let d = Arc::new(Direction {
        gate: AtomicU64::new(word(0, IDLE)),
        cut_at: AtomicU64::new(0),
        returned_at: AtomicU64::new(0),
        tcp: Wire::new(),
        ring: Wire::new(),
    });
    let sender = Sender {
        d: d.clone(),
        epoch: 0,
        fast: false,
    };
    let receiver = Receiver {
        d,
        epoch: 0,
        mode: Mode::Plain,
        from_tcp: 0,
        from_ring: 0,
        got: Vec::new(),
    };
    (sender, receiver)
}

/// `sending` beside `receiving`; then the receiver takes what is left.
fn check(sending: fn(&mut Sender), receiving: fn(&mut Receiver)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(move || {
        let (mut sender, mut receiver) = ends();
        let other = thread::spawn(move || sending(&mut sender));
        receiving(&mut receiver);
        other.join().unwrap();
        for _ in 0..8 {
            receiver.receive();
        }
        let all: Vec<u64> = (1..=receiver.got.len() as u64).collect();
        assert_eq!(receiver.got, all);
        assert_eq!(all.len(), 3, "a byte is lost");
    });
}

#[test]
fn a_cut_over_beside_a_promise() {
    check(
        |s| {
            s.send(1);
            s.cut_over();
            s.send(2);
            s.send(3);
        },
        |r| {
            r.promise();
            r.receive();
            r.receive();
        },
    );
}

#[test]
fn a_promise_is_taken_back() {
    check(
        |s| {
            s.send(1);
            s.cut_over();
            s.send(2);
            s.send(3);
        },
        |r| {
            r.promise();
            r.take_back();
            r.receive();
            r.receive();
        },
    );
}

#[test]
fn a_cut_back_and_a_second_epoch() {
    check(
        |s| {
            s.cut_over();
            s.send(1);
            s.cut_back();
            s.send(2);
            s.cut_over();
            s.send(3);
        },
        |r| {
            r.promise();
            for _ in 0..4 {
                r.receive();
                if r.mode == Mode::Plain {
                    r.promise();
                }
            }
        },
    );
}

#[test]
fn a_cut_back_that_nobody_has_seen() {
    check(
        |s| {
            s.send(1);
            s.cut_over();
            s.send(2);
            s.cut_back();
            s.send(3);
        },
        |r| {
            r.promise();
            r.receive();
            r.receive();
        },
    );
}

#[test]
fn a_ring_is_returned() {
    check(
        |s| {
            s.cut_over();
            s.send(1);
            s.send(2);
            s.cut_back();
            s.send(3);
        },
        |r| {
            r.promise();
            r.receive();
            r.hand_back();
            r.receive();
        },
    );
}

#[test]
fn a_ring_is_returned_and_used_again() {
    check(
        |s| {
            s.cut_over();
            s.send(1);
            s.cut_back();
            s.cut_over();
            s.send(2);
            s.cut_back();
            s.send(3);
        },
        |r| {
            r.promise();
            r.hand_back();
            r.receive();
            if r.mode == Mode::Plain {
                r.promise();
            }
            r.receive();
        },
    );
}
