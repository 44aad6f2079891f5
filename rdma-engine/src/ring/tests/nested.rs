//! Frames that interrupt each other two deep, at random points, doing random
//! things: the stream comes out whole whatever they do.

use super::step::interrupt;
use super::world::*;
use crate::ring::*;
use proptest::prelude::*;

/// What a frame does with the ring.
#[derive(Clone, Debug)]
enum Act {
    /// As much as fits of so many bytes.
    Push(usize),
    /// No room at all.
    PushInVain,
    /// The source of the bytes fails.
    PushBadSource,
    Pull,
    Drain,
    /// Everything that is needed to use each chunk of the window again.
    Laps,
    /// All the room that the window has.
    Fill,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (16usize..2000).prop_map(Act::Push),
        1 => (100_000usize..300_000).prop_map(Act::Push),
        1 => Just(Act::PushInVain),
        1 => Just(Act::PushBadSource),
        3 => Just(Act::Pull),
        1 => Just(Act::Drain),
        1 => Just(Act::Laps),
        1 => Just(Act::Fill),
    ]
}

fn perform(w: &World, me: usize, acts: &[Act], stolen: bool) {
    for a in acts {
        match a {
            Act::Push(n) => {
                let pushed = w.push(me, *n, LIMIT, stolen);
                // The window may be full.
                assert!(matches!(pushed, Push::Done(_) | Push::Full), "{pushed:?}");
            }
            Act::PushInVain => assert_eq!(w.push(me, 64, 0, stolen), Push::Full),
            Act::PushBadSource => {
                let p = w.wire.producer(stolen);
                let pushed = p.push(64, LIMIT, true, |_, _, _| Err(Fault(14)));
                assert!(matches!(pushed, Push::Fault(_) | Push::Full), "{pushed:?}");
            }
            Act::Pull => {
                let pulled = w.pull(me);
                assert!(matches!(pulled, Pull::Data(_) | Pull::Empty), "{pulled:?}");
            }
            Act::Drain => w.drain(me),
            Act::Fill => w.fill(me, stolen),
            Act::Laps => {
                for _ in 0..12 {
                    let pushed = w.push(me, 100_000, LIMIT, stolen);
                    assert!(matches!(pushed, Push::Done(_) | Push::Full), "{pushed:?}");
                    w.drain(me);
                }
            }
        }
    }
}

/// Where a frame is interrupted: a share of its instructions, in 65536ths. The
/// code differs from build to build, and most of the points shall count.
fn point(share: u16, length: u64) -> u64 {
    1 + u64::from(share) * length / 65536
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 40 } else { 150 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_handlers_do_the_stream_is_whole(
        before in proptest::collection::vec(act(), 0..6),
        room in 16u32..600,
        victim in prop_oneof![(16usize..64).prop_map(Act::Push), Just(Act::Pull)],
        handler in proptest::collection::vec(act(), 1..4),
        nested in proptest::collection::vec(act(), 1..4),
        first: u16,
        second: u16,
    ) {
        thread_local!(static WORLD: World = World::new());
        WORLD.with(|w| {
            let prepare = || {
                w.reset();
                w.advance(room);
                perform(w, PEER, &before, false);
            };
            prepare();
            let alone = std::slice::from_ref(&victim);
            let length = interrupt(u64::MAX, || perform(w, VICTIM, alone, false), &mut || {});
            prepare();
            let at = point(first, length);
            interrupt(at, || perform(w, VICTIM, alone, false), &mut || {
                // The first thousand instructions of the handler hold a whole
                // push or pull.
                let at = point(second, if cfg!(debug_assertions) { 8000 } else { 1000 });
                interrupt(at, || perform(w, HANDLER, &handler, true), &mut || {
                    perform(w, NESTED, &nested, true);
                });
            });
            w.drain(PEER);
            w.laps(PEER, false);
            w.assert_whole(false);
        });
    }
}
