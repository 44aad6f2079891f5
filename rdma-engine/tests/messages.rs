//! Packets of the side channel, from honest and from hostile peers.

#![cfg(not(loom))]

use proptest::prelude::*;
use rdma_engine::abi::message::{Answer, Hello};
use rdma_engine::abi::reason::Reason;
use rdma_engine::abi::VERSION;

fn any_reason() -> impl Strategy<Value = Reason> {
    prop::sample::select(Reason::ALL)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_hello_arrives(pid: u32, fd: u32, cookie: u64) {
        let hello = Hello { pid, fd, cookie };
        prop_assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
        prop_assert!(Answer::decode(&hello.encode()).is_err());
    }

    #[test]
    fn an_answer_arrives(verdict in any_reason(), pid: u32, fd: u32, cookie: u64) {
        let answer = Answer { verdict, pid, fd, cookie };
        prop_assert_eq!(Answer::decode(&answer.encode()), Ok(answer));
        prop_assert!(Hello::decode(&answer.encode()).is_err());
    }

    #[test]
    fn any_packet_is_refused_or_means_itself(packet in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(hello) = Hello::decode(&packet) {
            prop_assert_eq!(&hello.encode()[..], &packet[..]);
        }
        prop_assert!(Answer::decode(&packet).is_err() || packet.len() == Answer::SIZE);
    }

    /// The right length and first word, and anything behind.
    #[test]
    fn a_packet_that_begins_well(
        rest in proptest::collection::vec(any::<u8>(), Answer::SIZE - 4),
        version in prop_oneof![Just(VERSION), any::<u32>()],
        cut in 0..Answer::SIZE,
    ) {
        let (verdict, pid, fd, cookie) = (Reason::None, 1, 2, 3);
        let answer = Answer { verdict, pid, fd, cookie }.encode();
        let mut packet = [&answer[..4], &version.to_le_bytes(), &rest[4..]].concat();
        match Answer::decode(&packet) {
            Ok(a) => {
                prop_assert_eq!(version, VERSION);
                // A reason that we don't know is one, and no consent.
                let code = u32::from_le_bytes(packet[8..12].try_into().unwrap());
                prop_assert_eq!(a.verdict == Reason::None, code == 0);
            }
            Err(reason) => prop_assert_eq!(reason, Reason::Version),
        }
        packet.truncate(cut);
        prop_assert_eq!(Answer::decode(&packet), Err(Reason::Broken));
    }
}

#[test]
fn codes_of_reasons_are_one_to_one() {
    for r in Reason::ALL {
        assert_eq!(Reason::from_code(*r as u32), *r);
        assert!(!r.text().is_empty());
    }
    assert_eq!(Reason::from_code(0xffff_ffff), Reason::Unknown);
}
