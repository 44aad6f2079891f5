use super::*;
use crate::handle::*;
use crate::{ExceptionKind, RtiException};
use std::fmt::Debug;
use std::io::Read;

fn requests() -> Vec<Request<'static>> {
    let class = ObjectClassHandle(3);
    let attributes = vec![AttributeHandle(1), AttributeHandle(9)];
    let services = vec![
        Service::Connect { protocol: PROTOCOL },
        Service::CreateFederationExecution {
            federation: "Übung".into(),
            fed: "(FED)".into(),
        },
        Service::ResignFederationExecution {},
        Service::PublishObjectClass { class, attributes },
        Service::UpdateAttributeValues {
            object: ObjectHandle(77),
            values: vec![
                (AttributeHandle(1), vec![0; 300].into()),
                (AttributeHandle(2), vec![].into()),
            ],
            tag: b"tag".as_slice().into(),
        },
    ];
    let number = |(serial, service)| Request { serial, service };
    (1..).zip(services).map(number).collect()
}

fn notices() -> Vec<Notice<'static>> {
    let callbacks = vec![
        Callback::DiscoverObjectInstance {
            object: ObjectHandle(1),
            class: ObjectClassHandle(2),
            name: "a".into(),
        },
        Callback::ReceiveInteraction {
            class: InteractionClassHandle(4),
            values: vec![(ParameterHandle(5), vec![1, 2, 3].into())],
            tag: vec![].into(),
        },
        Callback::FederationSynchronized { label: "go".into() },
    ];
    let exception = RtiException::new(ExceptionKind::AttributeNotOwned, "no");
    let mut all = vec![
        Notice::Answered {
            serial: 1,
            answer: 2,
        },
        Notice::Refused {
            serial: 3,
            exception,
        },
    ];
    all.extend(
        callbacks
            .into_iter()
            .map(|callback| Notice::Callback { callback }),
    );
    all
}

fn body<'a>(message: &impl Wire<'a>) -> Vec<u8> {
    let mut frame = Vec::new();
    append(&mut frame, message).unwrap();
    frame.split_off(HEADER)
}

/// Bytes that the property tests below have in common.
fn bodies() -> Vec<Vec<u8>> {
    let of_requests = requests().iter().map(body).collect::<Vec<_>>();
    of_requests
        .into_iter()
        .chain(notices().iter().map(body))
        .collect()
}

fn returns<'a, M: Wire<'a> + PartialEq + Debug>(message: &M, bytes: &'a [u8]) {
    assert_eq!(&decode::<M>(bytes).unwrap(), message);
    for cut in 0..bytes.len() {
        assert_eq!(
            decode::<M>(&bytes[..cut]),
            Err(WireError::Truncated),
            "{message:?} cut at {cut}"
        );
    }
}

#[test]
fn messages_return_and_are_never_read_from_a_part() {
    for request in requests() {
        returns(&request, &body(&request));
    }
    for notice in notices() {
        returns(&notice, &body(&notice));
    }
}

#[test]
fn trailing_bytes_are_refused() {
    for request in requests() {
        let mut bytes = body(&request);
        bytes.extend([0, 0]);
        assert_eq!(
            decode::<Request>(&bytes),
            Err(WireError::Trailing { extra: 2 })
        );
    }
}

/// A changed byte is an error or another message, and that one returns as well; nothing panics.
#[test]
fn any_changed_byte_is_survived() {
    for original in bodies() {
        for at in 0..original.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, original[at] ^ 1] {
                let mut bytes = original.clone();
                bytes[at] = value;
                if let Ok(message) = decode::<Request>(&bytes) {
                    assert_eq!(body(&message), bytes);
                }
                if let Ok(message) = decode::<Notice>(&bytes) {
                    assert_eq!(body(&message), bytes);
                }
            }
        }
    }
}

#[test]
fn unknown_numbers_are_named() {
    let mut bytes = body(&requests()[0]);
    bytes[4] = 200;
    let (what, tag) = ("service", 200);
    assert_eq!(
        decode::<Request>(&bytes),
        Err(WireError::UnknownTag { what, tag })
    );
    let label = Service::SynchronizationPointAchieved { label: "x".into() };
    let mut bytes = body(&label);
    *bytes.last_mut().unwrap() = 0xff;
    assert_eq!(decode::<Service>(&bytes), Err(WireError::NotText));
}

/// A count far beyond the message must not be believed.
#[test]
fn hostile_counts_are_refused() {
    for count in [3, 1 << 20, u32::MAX] {
        let mut bytes = vec![8];
        ObjectClassHandle(1).put(&mut bytes);
        count.put(&mut bytes);
        bytes.extend([0; 8]);
        assert_eq!(decode::<Service>(&bytes), Err(WireError::Truncated));
    }
}

#[test]
fn hostile_lengths_are_refused() {
    let over = MAX_FRAME as u32 + 1;
    let cases = [
        (0, WireError::Empty),
        (over, WireError::TooLong { length: over }),
        (u32::MAX, WireError::TooLong { length: u32::MAX }),
    ];
    for (length, error) in cases {
        let mut reader = FrameReader::default();
        reader.fill(&mut length.to_le_bytes().as_slice()).unwrap();
        assert_eq!(reader.next_frame(), Err(error));
        assert_eq!(reader.finish(), Err(error));
    }
}

#[test]
fn what_is_too_long_is_not_sent() {
    let fed = "x".repeat(MAX_FRAME).into();
    let federation = "f".into();
    let mut out = vec![1, 2, 3];
    let long = Service::CreateFederationExecution { federation, fed };
    assert!(matches!(
        append(&mut out, &long),
        Err(WireError::TooLong { .. })
    ));
    assert_eq!(out, [1, 2, 3]);
}

/// Gives out at most so many bytes per read.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.1.min(into.len()).min(self.0.len());
        assert!(
            n > 0 || self.0.is_empty(),
            "there has to be room for a read"
        );
        into[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn frames_are_cut_alike_however_they_come() {
    let mut sent: Vec<Vec<u8>> = vec![vec![1], vec![2; 100], vec![3; MAX_FRAME], vec![4; 70_000]];
    sent.extend((1..500).map(|n| vec![n as u8; n * 7]));
    let mut stream = Vec::new();
    for body in &sent {
        (body.len() as u32).put(&mut stream);
        stream.extend(body);
    }
    for piece in [977, 65_536, usize::MAX] {
        let (mut source, mut reader) = (Trickle(&stream, piece), FrameReader::default());
        let mut got = Vec::new();
        while reader.fill(&mut source).unwrap() > 0 {
            while let Some(body) = reader.next_frame().unwrap() {
                got.push(body.to_vec());
            }
        }
        assert!(got == sent, "in pieces of {piece}");
        reader.finish().unwrap();
    }
}

#[test]
fn a_stream_that_ends_within_a_frame_is_told() {
    let mut stream = Vec::new();
    append(&mut stream, &requests()[0]).unwrap();
    for cut in 1..stream.len() {
        let mut reader = FrameReader::default();
        reader.fill(&mut &stream[..cut]).unwrap();
        assert_eq!(reader.next_frame(), Ok(None));
        let missing = if cut < HEADER {
            HEADER - cut
        } else {
            stream.len() - cut
        };
        assert_eq!(reader.finish(), Err(WireError::CutShort { missing }));
    }
}
