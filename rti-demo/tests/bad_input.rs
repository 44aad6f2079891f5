//! What federates do wrong has a name, and harms nobody else.

mod support;

use rti_demo::federate::RtiAmbassador;
use rti_demo::game::FED;
use rti_demo::handle::{AttributeHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle};
use rti_demo::wire::{Service, MAX_FRAME, PROTOCOL};
use rti_demo::ExceptionKind::{self, *};
use rti_demo::RtiException;
use std::io::Write;
use std::path::Path;
use support::{rtig, Federate, Raw, FEDERATION};

fn kind<T: std::fmt::Debug>(outcome: Result<T, RtiException>) -> ExceptionKind {
    outcome.unwrap_err().kind
}

#[test]
fn federations_have_their_order() {
    let mut rti = RtiAmbassador::connect(rtig()).unwrap();
    assert_eq!(
        kind(rti.join_federation_execution("a", FEDERATION)),
        FederationExecutionDoesNotExist
    );
    assert_eq!(
        kind(rti.destroy_federation_execution(FEDERATION)),
        FederationExecutionDoesNotExist
    );
    assert_eq!(
        kind(rti.resign_federation_execution()),
        FederateNotExecutionMember
    );
    rti.create_federation_execution_from(FEDERATION, FED)
        .unwrap();
    assert_eq!(
        kind(rti.create_federation_execution_from(FEDERATION, FED)),
        FederationExecutionAlreadyExists
    );
    rti.join_federation_execution("a", FEDERATION).unwrap();
    assert_eq!(
        kind(rti.join_federation_execution("b", FEDERATION)),
        FederateAlreadyExecutionMember
    );
    assert_eq!(
        kind(rti.destroy_federation_execution(FEDERATION)),
        FederatesCurrentlyJoined
    );
    rti.resign_federation_execution().unwrap();
    rti.destroy_federation_execution(FEDERATION).unwrap();
}

#[test]
fn a_fed_file_has_to_be_there_and_well_formed() {
    let mut rti = RtiAmbassador::connect(rtig()).unwrap();
    let missing = Path::new("/no/such/file.fed");
    assert_eq!(
        kind(rti.create_federation_execution(FEDERATION, missing)),
        CouldNotOpenFED
    );
    let bad = FED.replace("(class Recorder", "(klass Recorder");
    let refused = rti
        .create_federation_execution_from(FEDERATION, &bad)
        .unwrap_err();
    assert_eq!(refused.kind, ErrorReadingFED);
    assert_eq!(
        refused.reason,
        "line 10, column 7: 'klass' has no meaning here"
    );
    // Nothing has come of it.
    rti.create_federation_execution_from(FEDERATION, FED)
        .unwrap();
}

#[test]
fn names_and_handles_have_to_exist() {
    let mut a = Federate::join(rtig(), "a");
    assert_eq!(kind(a.rti.get_object_class_handle("Ship")), NameNotFound);
    assert_eq!(
        kind(a.rti.get_attribute_handle(a.class, "Size")),
        NameNotFound
    );
    assert_eq!(
        kind(a.rti.get_interaction_class_handle("Hail")),
        NameNotFound
    );
    let (class, attribute) = (ObjectClassHandle(99), AttributeHandle(99));
    assert_eq!(
        kind(a.rti.subscribe_object_class_attributes(class, &[])),
        ObjectClassNotDefined
    );
    assert_eq!(
        kind(a.rti.publish_object_class_attributes(a.class, &[attribute])),
        AttributeNotDefined
    );
    assert_eq!(
        kind(a.rti.register_object_instance(class, "")),
        ObjectClassNotDefined
    );
    let class = InteractionClassHandle(99);
    assert_eq!(
        kind(a.rti.subscribe_interaction_class(class)),
        InteractionClassNotDefined
    );
}

#[test]
fn only_the_owner_updates() {
    let address = rtig();
    let (mut a, mut b) = (Federate::join(address, "a"), Federate::join(address, "b"));
    let object = a.rti.register_object_instance(a.class, "mine").unwrap();
    assert_eq!(b.next(), "discover mine");
    let values = [(b.message, &b"x"[..])];
    assert_eq!(
        kind(b.rti.update_attribute_values(object, &values, b"")),
        AttributeNotOwned
    );
    assert_eq!(
        kind(
            b.rti
                .update_attribute_values(ObjectHandle(99), &values, b"")
        ),
        ObjectNotKnown
    );
    let other = [(AttributeHandle(1), &b"x"[..])];
    assert_eq!(
        kind(a.rti.update_attribute_values(object, &other, b"")),
        AttributeNotOwned
    );
    // The library finds out by itself; the RTI does too, when it is asked without it.
    let mut raw = Raw::join(address, "raw");
    let update = |object| Service::UpdateAttributeValues {
        object,
        values: vec![(b.message, b"x".as_slice().into())],
        tag: b"".as_slice().into(),
    };
    assert_eq!(kind(raw.call(update(object))), AttributeNotOwned);
    assert_eq!(kind(raw.call(update(ObjectHandle(99)))), ObjectNotKnown);
    a.rti
        .update_attribute_values(object, &[(a.message, b"right")], b"")
        .unwrap();
    assert_eq!(b.next(), "reflect 5 bytes");
}

#[test]
fn the_first_word_is_connect() {
    let address = rtig();
    let mut raw = Raw::connect(address);
    let early = raw.call(Service::ResignFederationExecution {});
    assert_eq!(kind(early), RTIinternalError);
    let protocol = PROTOCOL + 1;
    let wrong = raw.call(Service::Connect { protocol }).unwrap_err();
    assert!(wrong.reason.starts_with("protocol 2,"), "{wrong}");
}

#[test]
fn hostile_bytes_end_their_own_connection_only() {
    let address = rtig();
    let mut witness = Federate::join(address, "witness");
    let limit = MAX_FRAME;
    let cases: [(&[u8], String); 4] = [
        (
            &[0xff; 4],
            format!("a frame of {} bytes is over the limit of {limit}", u32::MAX),
        ),
        (&[0; 4], "a frame of no bytes".into()),
        (&[5, 0, 0, 0, 1, 0, 0, 0, 99], "99 is no service".into()),
        (
            &[5, 0, 0, 0, 1, 0, 0, 0, 1],
            "a message ends before its last field".into(),
        ),
    ];
    for (bytes, reason) in cases {
        let mut raw = Raw::join(address, "hostile");
        raw.stream.write_all(bytes).unwrap();
        let told = raw.outcome().unwrap_err();
        assert_eq!((told.kind, &told.reason), (RTIinternalError, &reason));
        assert_eq!(raw.fill(), 0);
        assert_eq!(witness.next(), format!("lost hostile: {reason}"));
    }
    let class = witness.class;
    witness.rti.register_object_instance(class, "").unwrap();
}
