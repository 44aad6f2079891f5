//! Rings that are returned: what the reader took and what the writer sends again are the
//! bytes that were written, in order, each once.

use super::wire::Wire;
use crate::abi::record::RING;
use crate::ring::*;
use proptest::prelude::*;

fn pattern(from: usize, n: usize) -> Vec<u8> {
    (from..from + n).map(|i| (i * 7 + (i >> 8)) as u8).collect()
}

/// Sends again into a vector, `at_once` bytes for each attempt.
fn resend_all(w: &Wire, at: &ConsumerState, at_once: u32) -> Vec<u8> {
    let mut got = Vec::new();
    let mut blocked = false;
    loop {
        let r = resend(&w.mem, at, |mem, off, n| {
            if blocked {
                blocked = false;
                return Err(Fault(libc::EAGAIN));
            }
            blocked = true;
            let n = n.min(at_once);
            // SAFETY: `n` bytes of the ring, of which nobody makes a reference.
            let bytes = unsafe { core::slice::from_raw_parts(mem.bytes(off, n), n as usize) };
            got.extend_from_slice(bytes);
            Ok(n)
        });
        match r {
            Resent::Blocked(Fault(libc::EAGAIN)) => {}
            Resent::All => return got,
            r => panic!("{r:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn all_bytes_come_once(
        sizes in proptest::collection::vec(1usize..40_000, 1..60),
        taken in 0.0f64..1.0,
        at_once in 1u32..70_000,
        after in 1usize..5000,
    ) {
        let w = Wire::new();
        let mut written = 0;
        for n in sizes {
            let bytes = pattern(written, n);
            let Push::Done(n) = w.push(&bytes, RING, false) else { panic!("no room") };
            written += n;
        }
        let mut got = Vec::new();
        let goal = (written as f64 * taken) as usize;
        while got.len() < goal {
            let max = (goal - got.len()).min(7000);
            let before = got.len();
            w.pull(&mut got, max);
            prop_assert!(got.len() > before);
        }
        let place = w.rx.close();
        prop_assert!(!w.rx.anything(&w.mem));
        prop_assert_eq!(w.pull(&mut got, 1), Pull::Empty);
        // Written before the writer knows.
        let late = pattern(written, after);
        let Push::Done(n) = w.push(&late, RING, false) else { panic!("no room") };
        written += n;
        prop_assert!(w.producer(false).push_cut_back());

        let at = ConsumerState::new();
        prop_assert!(at.begin_where(place));
        got.extend(resend_all(&w, &at, at_once));
        prop_assert_eq!(got.len(), written);
        prop_assert!(got == pattern(0, written));

        // The ring serves again.
        let c = w.consumer();
        prop_assert!(skip(&c, &w.rx));
        let again = pattern(3, 100);
        let Push::Done(n) = w.push(&again, RING, false) else { panic!("no room") };
        let mut got = Vec::new();
        prop_assert_eq!(w.pull(&mut got, 1000), Pull::Data(n));
        prop_assert_eq!(&got[..], &again[..n]);
    }

    /// Whatever place a peer names, and whatever stands there.
    #[test]
    fn strange_places_harm_nobody(place: u64, near in 0u64..200_000, word: u64) {
        let w = Wire::new();
        w.push(&pattern(0, 100_000), RING, false);
        w.mem.header(4096).store(word, crate::sync::Ordering::Relaxed);
        w.producer(false).push_cut_back();
        for place in [place, near, near << 40, place & !(1 << 63)] {
            let at = ConsumerState::new();
            if at.begin_where(place) {
                let mut left = 1 << 20;
                let _ = resend(&w.mem, &at, |_, _, n| {
                    left -= n as i64;
                    if left < 0 { Err(Fault(1)) } else { Ok(n) }
                });
            }
        }
    }
}

#[test]
fn a_ring_that_was_not_left_cannot_be_skipped() {
    let w = Wire::new();
    w.push(&pattern(0, 1000), RING, false);
    w.rx.close();
    assert!(!skip(&w.consumer(), &w.rx));
    assert!(!w.rx.anything(&w.mem), "it is closed still");
}
