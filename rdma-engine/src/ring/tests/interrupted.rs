//! A signal handler that uses the ring, behind every single instruction of a
//! push or a pull.

use super::step::{at_every_point, interrupt};
use super::wire::{take, Tag};
use super::world::*;
use crate::abi::record::Pos;
use crate::ring::*;
use std::cell::Cell;

type Act = fn(&World);

/// The thread that interrupts itself.
const ME: u32 = 7;

/// `victim`, interrupted by `handler` at every point, each time in a world that
/// `before` has prepared.
fn each(before: Act, victim: Act, handler: Act, after: Act) {
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        before(&w);
        let steps = interrupt(at, || victim(&w), &mut || handler(&w));
        after(&w);
        steps
    });
}

fn push(w: &World, frame: usize, n: usize) {
    let stolen = take(&w.wire.tx_lock, ME);
    let pushed = w.push(frame, n, LIMIT, stolen);
    w.wire.tx_lock.release(ME);
    assert!(matches!(pushed, Push::Done(_)), "{pushed:?}");
}

fn laps(w: &World, frame: usize) {
    let stolen = take(&w.wire.tx_lock, ME);
    w.laps(frame, stolen);
    w.wire.tx_lock.release(ME);
}

fn fresh(_: &World) {}

fn nearly_full_chunk(w: &World) {
    w.advance(40);
}

fn push_small(w: &World) {
    push(w, VICTIM, 16);
}

/// After all, in a ring that goes on being used.
fn all_arrived(w: &World) {
    assert!(!take(&w.wire.tx_lock, ME), "the lock was left behind");
    w.wire.tx_lock.release(ME);
    w.laps(PEER, false);
    w.assert_whole(true);
}

#[test]
fn a_handler_pushes() {
    each(fresh, push_small, |w| push(w, HANDLER, 16), all_arrived);
}

#[test]
fn a_handler_pushes_much() {
    let handler: Act = |w| {
        [16, 250_000, 250_000, 3000]
            .into_iter()
            .for_each(|n| push(w, HANDLER, n))
    };
    each(fresh, push_small, handler, all_arrived);
}

/// The chunk that the victim writes to is left, and would be used again.
#[test]
fn a_handler_goes_round_the_window() {
    each(fresh, push_small, |w| laps(w, HANDLER), all_arrived);
}

#[test]
fn a_handler_pushes_while_the_victim_changes_chunks() {
    let handler: Act = |w| push(w, HANDLER, 16);
    each(nearly_full_chunk, push_small, handler, all_arrived);
}

#[test]
fn a_handler_goes_round_while_the_victim_changes_chunks() {
    let handler: Act = |w| laps(w, HANDLER);
    each(nearly_full_chunk, push_small, handler, all_arrived);
}

/// Whatever the victim writes late, it would fall on records that wait there.
fn goes_round_and_fills_the_window(before: Act) {
    let victim: Act = |w| {
        let stolen = take(&w.wire.tx_lock, ME);
        let pushed = w.push(VICTIM, 16, LIMIT, stolen);
        w.wire.tx_lock.release(ME);
        assert!(matches!(pushed, Push::Done(16) | Push::Full), "{pushed:?}");
    };
    let handler: Act = |w| {
        let stolen = take(&w.wire.tx_lock, ME);
        w.laps(HANDLER, stolen);
        w.fill(HANDLER, stolen);
        w.wire.tx_lock.release(ME);
    };
    let after: Act = |w| {
        w.drain(PEER);
        all_arrived(w);
    };
    each(before, victim, handler, after);
}

#[test]
fn a_handler_fills_the_window() {
    goes_round_and_fills_the_window(fresh);
}

#[test]
fn a_handler_fills_the_window_while_the_victim_changes_chunks() {
    goes_round_and_fills_the_window(nearly_full_chunk);
}

/// A handler that finds no room leaves all as it was.
#[test]
fn a_handler_finds_no_room() {
    let handler: Act = |w| {
        let stolen = take(&w.wire.tx_lock, ME);
        assert_eq!(w.push(HANDLER, 64, 0, stolen), Push::Full);
        w.wire.tx_lock.release(ME);
    };
    each(fresh, push_small, handler, all_arrived);
}

/// The victim's source fails, or has nothing.
#[test]
fn a_handler_pushes_while_the_victim_gives_up() {
    let victim: Act = |w| {
        let p = w.wire.producer(false);
        let failed = p.push(64, LIMIT, true, |_, _, _| Err(Fault(14)));
        assert_eq!(failed, Push::Fault(Fault(14)));
        assert_eq!(p.push(64, LIMIT, true, |_, _, _| Ok(0)), Push::Done(0));
    };
    let handler: Act = |w| {
        assert!(matches!(w.push(HANDLER, 64, LIMIT, true), Push::Done(64)));
    };
    each(fresh, victim, handler, |w| {
        w.laps(PEER, false);
        w.assert_whole(true);
    });
}

/// The direction goes back to TCP under the victim's hands: nothing comes behind
/// the cut-back record from a producer that was made before.
#[test]
fn a_handler_cuts_back() {
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        let p = w.wire.producer(false);
        let pushed = Cell::new(Push::Broken);
        let victim = || pushed.set(w.push_by(&p, VICTIM, 16, LIMIT));
        let mut cut = false;
        let steps = interrupt(at, victim, &mut || {
            cut = w.wire.producer(true).push_cut_back()
        });
        assert!(matches!(pushed.get(), Push::Done(16) | Push::Full));
        w.drain(PEER);
        assert_eq!(w.wire.consumer().pass_cut_back(), cut);
        assert_eq!(w.pull(PEER), Pull::Empty);
        all_arrived(&w);
        steps
    });
}

/// Five records; the third, of which a part fits, is the chunk's last.
fn five_records(w: &World) {
    w.advance(500);
    more_records(w);
}

fn more_records(w: &World) {
    for n in [100, 64, 3000, 16, 50_000] {
        assert!(matches!(w.push(PEER, n, LIMIT, false), Push::Done(_)));
    }
}

fn pull(w: &World, frame: usize) {
    take(&w.wire.rx_lock, ME);
    assert!(matches!(w.pull(frame), Pull::Data(_)));
    w.wire.rx_lock.release(ME);
}

/// `handler` interrupts a pull.
fn each_pull(before: Act, handler: Act) {
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        before(&w);
        let mut pulled = Pull::Broken;
        let victim = || {
            take(&w.wire.rx_lock, ME);
            pulled = w.pull_unseen(VICTIM);
            w.wire.rx_lock.release(ME);
        };
        let steps = interrupt(at, victim, &mut || handler(&w));
        // The handler may have taken all.
        assert!(matches!(pulled, Pull::Data(_) | Pull::Empty), "{pulled:?}");
        w.check(VICTIM, pulled);
        each_was_taken_once(&w);
        steps
    });
}

fn each_was_taken_once(w: &World) {
    assert!(!take(&w.wire.rx_lock, ME), "the lock was left behind");
    w.wire.rx_lock.release(ME);
    w.laps(PEER, false);
    w.assert_whole(false);
}

#[test]
fn a_handler_pulls() {
    each_pull(five_records, |w| pull(w, HANDLER));
}

#[test]
fn a_handler_pulls_while_the_victim_changes_chunks() {
    let before: Act = |w| {
        five_records(w);
        (0..3).for_each(|_| pull(w, PEER));
    };
    each_pull(before, |w| pull(w, HANDLER));
}

/// What the victim looks at is taken, and its place used again.
#[test]
fn a_handler_pulls_all_while_the_window_goes_round() {
    each_pull(five_records, |w| {
        w.drain(HANDLER);
        w.laps(HANDLER, false);
    });
}

/// The same, and new records are there when the victim goes on.
#[test]
fn a_handler_pulls_all_and_more_comes() {
    each_pull(five_records, |w| {
        w.drain(HANDLER);
        w.laps(HANDLER, false);
        more_records(w);
    });
}

/// A victim that takes a part, and a handler that takes another.
#[test]
fn parts_of_a_record_are_taken_once() {
    let whole = super::wire::bytes(0, 64);
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        assert_eq!(w.wire.push(&whole, LIMIT, true), Push::Done(64));
        let (mut mine, mut theirs) = (Vec::with_capacity(64), Vec::with_capacity(64));
        let mut rest = Vec::new();
        let victim = || assert_eq!(w.wire.pull(&mut mine, 10), Pull::Data(10));
        let steps = interrupt(at, victim, &mut || {
            assert_eq!(w.wire.pull(&mut theirs, 20), Pull::Data(20));
        });
        while let Pull::Data(_) = w.wire.pull(&mut rest, 7) {}
        let one = [&mine[..], &theirs, &rest].concat();
        let other = [&theirs[..], &mine, &rest].concat();
        assert!(one == whole || other == whole);
        steps
    });
}

/// As above, where the victim takes parts of several records at once.
#[test]
fn many_records_are_taken_once() {
    let whole = super::wire::bytes(0, 96);
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        for record in whole.chunks(24) {
            assert_eq!(w.wire.push(record, LIMIT, true), Push::Done(24));
        }
        let (mut mine, mut theirs) = (Vec::with_capacity(96), Vec::with_capacity(96));
        let mut rest = Vec::new();
        let victim = || assert_eq!(w.wire.pull_many(&mut mine, 50), Pull::Data(50));
        let steps = interrupt(at, victim, &mut || {
            assert_eq!(w.wire.pull_many(&mut theirs, 30), Pull::Data(30));
        });
        while let Pull::Data(_) = w.wire.pull_many(&mut rest, 7) {}
        let one = [&mine[..], &theirs, &rest].concat();
        let other = [&theirs[..], &mine, &rest].concat();
        assert!(one == whole || other == whole);
        steps
    });
}

/// What a victim has looked at is what stood in the stream, if not at one moment
/// then at another.
#[test]
fn a_handler_pulls_while_the_victim_looks_ahead() {
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        five_records(&w);
        let mut seen = vec![0u8; 300];
        let mut n = 0;
        let victim = || {
            n = w.wire.consumer().look_ahead(300, |mem, off, n, at| {
                let n = n as usize;
                // SAFETY: `n` bytes are valid in the ring.
                let bytes = unsafe { std::slice::from_raw_parts(mem.bytes(off, n as u32), n) };
                seen[at..at + n].copy_from_slice(bytes);
            });
        };
        let steps = interrupt(at, victim, &mut || {
            w.drain(HANDLER);
            w.laps(HANDLER, false);
            more_records(&w);
        });
        assert_eq!(n, 300);
        let mut rest = &seen[..];
        let mut numbers = Vec::new();
        while let Some(record) = Tag::first(rest) {
            numbers.push(Tag::read(record).expect("a whole record").number);
            rest = &rest[record.len()..];
        }
        assert!(numbers.len() > 1, "only a part of the last does not fit");
        assert!(numbers.windows(2).all(|w| w[1] == w[0] + 1), "{numbers:?}");
        each_was_taken_once(&w);
        steps
    });
}

#[test]
fn a_tail_is_an_end_at_some_moment() {
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        let old = w.wire.consumer().tail(Pos(0));
        five_records(&w);
        let before = w.wire.consumer().tail(old);
        let found = Cell::new(Pos(0));
        let mut fired = false;
        let victim = || found.set(w.wire.consumer().tail(old));
        let steps = interrupt(at, victim, &mut || {
            w.drain(HANDLER);
            w.laps(HANDLER, false);
            more_records(&w);
            fired = true;
        });
        let after = w.wire.consumer().tail(before);
        assert_eq!(before != after, fired);
        assert!([before, after].contains(&found.get()));
        assert_eq!(w.wire.consumer().tail(found.get()), after);
        steps
    });
}

#[test]
fn a_cut_back_is_passed_once() {
    let w = World::new();
    at_every_point(|at| {
        w.reset();
        assert!(w.wire.producer(false).push_cut_back());
        let (mut mine, mut theirs) = (false, false);
        let victim = || mine = w.wire.consumer().pass_cut_back();
        let steps = interrupt(at, victim, &mut || {
            theirs = w.wire.consumer().pass_cut_back();
        });
        assert!(mine ^ theirs);
        steps
    });
}
