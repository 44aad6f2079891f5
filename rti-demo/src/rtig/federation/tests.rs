use super::*;
use crate::fed;
use crate::wire::AttributeValues;
use std::borrow::Cow;

const FED: &str = "
(FED (Federation Test) (FEDversion v1.3) (spaces)
  (objects (class Root
    (class Ship (attribute Position reliable receive) (attribute Name reliable receive)
      (class Ferry (attribute Cars reliable receive)))))
  (interactions (class Root reliable receive
    (class Hail reliable receive (parameter Text)
      (class Mayday reliable receive (parameter Souls))))))";

/// What was posted: to whom, and what in words.
#[derive(Default)]
struct Posted(Vec<(usize, String)>);

impl Post for Posted {
    fn post(&mut self, to: &[LinkId], callback: Callback) {
        let text = match &callback {
            Callback::DiscoverObjectInstance { object, class, .. } => {
                format!("discover {object} as {class}")
            }
            Callback::ReflectAttributeValues { object, values, .. } => {
                let values: Vec<_> = values.iter().map(|(a, _)| a.to_string()).collect();
                format!("reflect {object}: {}", values.join(" "))
            }
            Callback::RemoveObjectInstance { object, .. } => format!("remove {object}"),
            Callback::ReceiveInteraction { class, values, .. } => {
                format!("receive {class} with {}", values.len())
            }
            Callback::AnnounceSynchronizationPoint { label, .. } => format!("announce {label}"),
            Callback::FederationSynchronized { label } => format!("synchronized {label}"),
            Callback::SynchronizationPointRegistrationSucceeded { label } => format!("new {label}"),
            Callback::SynchronizationPointRegistrationFailed { label } => format!("old {label}"),
            Callback::FederateLost { name, reason, .. } => format!("lost {name}: {reason}"),
        };
        self.0.extend(to.iter().map(|l| (l.0, text.clone())));
    }
}

impl Posted {
    /// What came since the last time.
    fn take(&mut self) -> Vec<(usize, String)> {
        let mut all = std::mem::take(&mut self.0);
        all.sort();
        all
    }
}

fn lines(expected: &[(usize, &str)]) -> Vec<(usize, String)> {
    expected.iter().map(|(l, t)| (*l, t.to_string())).collect()
}

struct World {
    at: Federation,
    posted: Posted,
    ship: ObjectClassHandle,
    ferry: ObjectClassHandle,
    position: AttributeHandle,
    cars: AttributeHandle,
}

/// A federation with federates 1, 2 and 3 on links of the same number.
fn world() -> (World, [FederateHandle; 3]) {
    let mut at = Federation::new(fed::parse(FED).unwrap());
    let mut posted = Posted::default();
    let federates = [1, 2, 3].map(|n| {
        let name = format!("f{n}");
        at.join(&name, LinkId(n), &mut posted).unwrap()
    });
    let ship = at.model().object_class("Ship").unwrap();
    let ferry = at.model().object_class("Ship.Ferry").unwrap();
    let position = at.model().attribute(ship, "Position").unwrap();
    let cars = at.model().attribute(ferry, "Cars").unwrap();
    let world = World {
        at,
        posted,
        ship,
        ferry,
        position,
        cars,
    };
    (world, federates)
}

fn values(of: &[AttributeHandle]) -> AttributeValues<'static> {
    of.iter().map(|&a| (a, Cow::Borrowed(&b"v"[..]))).collect()
}

fn kind<T: std::fmt::Debug>(outcome: Result<T, RtiException>) -> ExceptionKind {
    outcome.unwrap_err().kind
}

#[test]
fn each_gets_what_it_has_subscribed_to() {
    let (mut w, [a, b, c]) = world();
    let p = &mut w.posted;
    w.at.subscribe_object_class(b, w.ship, &[w.position], p)
        .unwrap();
    w.at.publish_object_class(a, w.ferry, &[w.position, w.cars])
        .unwrap();
    let o = w.at.register_object(a, w.ferry, "", p).unwrap();
    assert_eq!(p.take(), lines(&[(2, "discover 1 as 2")]));
    // A late subscriber, to the class itself.
    w.at.subscribe_object_class(c, w.ferry, &[w.position, w.cars], p)
        .unwrap();
    assert_eq!(p.take(), lines(&[(3, "discover 1 as 3")]));
    let both = values(&[w.position, w.cars]);
    w.at.update(a, o, both, Cow::Borrowed(b""), p).unwrap();
    assert_eq!(
        p.take(),
        lines(&[(2, "reflect 1: 1"), (3, "reflect 1: 1 3")])
    );
    w.at.update(a, o, values(&[w.cars]), Cow::Borrowed(b""), p)
        .unwrap();
    assert_eq!(p.take(), lines(&[(3, "reflect 1: 3")]));
    w.at.unsubscribe_object_class(c, w.ferry, p).unwrap();
    w.at.update(a, o, values(&[w.cars]), Cow::Borrowed(b""), p)
        .unwrap();
    assert_eq!(p.take(), []);
    w.at.delete_object(a, o, b"", p).unwrap();
    assert_eq!(p.take(), lines(&[(2, "remove 1"), (3, "remove 1")]));
}

#[test]
fn updates_are_checked() {
    use ExceptionKind::*;
    let (mut w, [a, b, _]) = world();
    let p = &mut w.posted;
    let (none, unknown) = (ObjectHandle(99), AttributeHandle(99));
    w.at.publish_object_class(a, w.ship, &[w.position]).unwrap();
    assert_eq!(
        kind(w.at.register_object(b, w.ship, "x", p)),
        ObjectClassNotPublished
    );
    let o = w.at.register_object(a, w.ship, "x", p).unwrap();
    assert_eq!(
        kind(w.at.register_object(a, w.ship, "x", p)),
        ObjectAlreadyRegistered
    );
    let name = w.at.model().attribute(w.ship, "Name").unwrap();
    let cases = [
        (b, o, w.position, AttributeNotOwned),
        (a, o, name, AttributeNotOwned),
        (a, o, w.cars, AttributeNotDefined),
        (a, o, unknown, AttributeNotDefined),
        (a, none, w.position, ObjectNotKnown),
    ];
    for (who, object, attribute, expected) in cases {
        let update = values(&[attribute]);
        let outcome = w.at.update(who, object, update, Cow::Borrowed(b""), p);
        assert_eq!(kind(outcome), expected);
    }
    assert_eq!(
        kind(w.at.delete_object(b, o, b"", p)),
        DeletePrivilegeNotHeld
    );
    let stranger = ObjectClassHandle(99);
    assert_eq!(
        kind(w.at.publish_object_class(a, stranger, &[])),
        ObjectClassNotDefined
    );
    assert_eq!(
        kind(w.at.publish_object_class(a, w.ship, &[w.cars])),
        AttributeNotDefined
    );
    assert_eq!(p.take(), []);
}

#[test]
fn interactions_rise_to_the_class_that_is_subscribed_to() {
    let (mut w, [a, b, c]) = world();
    let p = &mut w.posted;
    let model = w.at.model();
    let hail = model.interaction_class("Hail").unwrap();
    let mayday = model.interaction_class("Hail.Mayday").unwrap();
    let text = model.parameter(mayday, "Text").unwrap();
    let souls = model.parameter(mayday, "Souls").unwrap();
    w.at.subscribe_interaction_class(b, hail).unwrap();
    w.at.subscribe_interaction_class(c, hail).unwrap();
    w.at.subscribe_interaction_class(c, mayday).unwrap();
    let both = || {
        vec![
            (text, Cow::Borrowed(&b"t"[..])),
            (souls, Cow::Borrowed(b"s")),
        ]
    };
    let mut send = |at: &mut Federation, class, values| {
        at.send_interaction(a, class, values, Cow::Borrowed(b""), p)
    };
    assert_eq!(
        kind(send(&mut w.at, mayday, both())),
        ExceptionKind::InteractionClassNotPublished
    );
    w.at.publish_interaction_class(a, mayday).unwrap();
    w.at.publish_interaction_class(a, hail).unwrap();
    assert_eq!(
        kind(send(&mut w.at, hail, both())),
        ExceptionKind::InteractionParameterNotDefined
    );
    send(&mut w.at, mayday, both()).unwrap();
    assert_eq!(
        p.take(),
        lines(&[(2, "receive 2 with 1"), (3, "receive 3 with 2")])
    );
}

#[test]
fn all_have_to_reach_a_point() {
    let (mut w, [a, b, c]) = world();
    let p = &mut w.posted;
    w.at.register_point(a, "go", b"", p).unwrap();
    let told = [(1, "announce go"), (1, "new go"), (2, "announce go")];
    assert_eq!(p.take()[..3], lines(&told));
    w.at.register_point(b, "go", b"", p).unwrap();
    assert_eq!(p.take(), lines(&[(2, "old go")]));
    w.at.achieve_point(a, "go", p).unwrap();
    w.at.achieve_point(b, "go", p).unwrap();
    let again = kind(w.at.achieve_point(b, "go", p));
    assert_eq!(
        again,
        ExceptionKind::SynchronizationPointLabelWasNotAnnounced
    );
    // One who comes late has to reach it too; one who is lost is not waited for.
    let d = w.at.join("f4", LinkId(4), p).unwrap();
    assert_eq!(p.take(), lines(&[(4, "announce go")]));
    w.at.achieve_point(d, "go", p).unwrap();
    assert_eq!(p.take(), []);
    w.at.lose(c, "gone", p);
    let synchronized = [1, 2, 4].map(|l| (l, "synchronized go"));
    let lost = [1, 2, 4].map(|l| (l, "lost f3: gone"));
    let mut expected = lines(&[synchronized, lost].concat());
    expected.sort();
    assert_eq!(p.take(), expected);
}

#[test]
fn who_leaves_takes_its_objects_along() {
    let (mut w, [a, b, c]) = world();
    let p = &mut w.posted;
    w.at.publish_object_class(a, w.ship, &[w.position]).unwrap();
    w.at.subscribe_object_class(b, w.ship, &[w.position], p)
        .unwrap();
    w.at.register_object(a, w.ship, "x", p).unwrap();
    p.take();
    w.at.resign(a, p);
    assert_eq!(p.take(), lines(&[(2, "remove 1")]));
    assert_eq!(w.at.member_count(), 2);
    assert_eq!(
        kind(w.at.publish_object_class(a, w.ship, &[])),
        ExceptionKind::FederateNotExecutionMember
    );
    // Its name and its object's name are free again.
    let a = w.at.join("f1", LinkId(1), p).unwrap();
    w.at.publish_object_class(a, w.ship, &[w.position]).unwrap();
    w.at.register_object(a, w.ship, "x", p).unwrap();
    assert_eq!(p.take(), lines(&[(2, "discover 2 as 2")]));
    let twice = kind(w.at.join("f3", LinkId(5), p));
    assert_eq!(twice, ExceptionKind::FederateAlreadyExecutionMember);
    w.at.lose(c, "gone", p);
    assert_eq!(w.at.member_count(), 2);
}
