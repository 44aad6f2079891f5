use super::*;

const SHIPS: &str = r#"
;; two spaces, three levels
(FED
  (Federation Ships)
  (FEDVersion "v1.3")
  (federate "bridge" "Public")
  (spaces
    (space Sea (dimension X) (dimension Y))
    (space Air (dimension Z)))
  (objects
    (class ObjectRoot
      (attribute privilegeToDelete reliable timestamp)
      (class RTIprivate)
      (class Ship
        (sec_level Public)
        (attribute Position best_effort receive Sea)
        (class Ferry (attribute Cars reliable receive)))
      (class Plane (attribute Position reliable timestamp Air))))
  (interactions
    (class InteractionRoot reliable receive
      (class RTIprivate reliable receive)
      (class Hail best_effort timestamp Air
        (parameter Text)
        (class Mayday reliable receive (parameter Souls))))))
"#;

#[test]
fn a_whole_file_is_read() {
    let model = parse(SHIPS).unwrap();
    assert_eq!(
        (model.federation.as_str(), model.version.as_str()),
        ("Ships", "v1.3")
    );
    assert_eq!(model.spaces[0].dimensions, ["X", "Y"]);
    let ferry = model.object_class("Ship.Ferry").unwrap();
    assert_eq!(model.object_class("ObjectRoot.Ship.Ferry"), Some(ferry));
    assert_eq!(model.object_class("Ferry"), None);
    let ship = model.object_class("Ship").unwrap();
    let position = model.attribute(ship, "Position").unwrap();
    assert_eq!(model.attribute(ferry, "Position"), Some(position));
    assert_eq!(model.attribute(ship, "Cars"), None);
    let plane = model.object_class("Plane").unwrap();
    assert_ne!(model.attribute(plane, "Position"), Some(position));
    let delivery = &model.attribute_delivery[position.0 as usize - 1];
    assert_eq!(delivery.transport, Transport::BestEffort);
    assert_eq!((delivery.order, delivery.space), (Order::Receive, Some(0)));
    let mayday = model.interaction_class("Hail.Mayday").unwrap();
    assert!(model.parameter(mayday, "Text").is_some());
    assert!(model.parameter(mayday, "Souls").is_some());
    let delivery = &model.interaction_delivery[mayday.0 as usize - 1];
    assert_eq!(delivery.transport, Transport::Reliable);
}

/// A file around one part, which starts at line 2, column 1.
fn with(part: &str) -> String {
    let rest =
        "(objects (class ObjectRoot)) (interactions (class InteractionRoot reliable receive))";
    format!("(FED (Federation F) (FEDversion v1) (spaces (space S))\n{part}\n{rest})")
}

#[test]
fn faults_have_their_place() {
    use FedErrorKind::*;
    let cases = [
        ("(rooms)", 1, Unknown("rooms".into())),
        ("rooms", 1, Expected("a list that starts with a keyword")),
        ("()", 1, Expected("a list that starts with a keyword")),
        ("(Federation G)", 1, Duplicate("Federation".into())),
        ("(objects)", 1, Missing("root class")),
        ("(objects (class A) (class B))", 20, Expected("')'")),
        ("(objects (klass A))", 10, Expected("(class NAME ...)")),
        ("(objects (class))", 10, Expected("a name")),
        ("(objects (class R (class A) (class A)))", 29, Duplicate("A".into())),
        ("(objects (class R (attribute a swift receive)))", 32, Unknown("swift".into())),
        ("(objects (class R (attribute a reliable)))", 19, Expected("'receive' or 'timestamp'")),
        ("(objects (class R (attribute a reliable receive T)))", 49, UnknownSpace("T".into())),
        ("(objects (class R (attribute a reliable receive S x)))", 51, Expected("')'")),
        ("(objects (class R (parameter a)))", 19, Unknown("parameter".into())),
        (
            "(objects (class R (attribute a reliable receive) (class A (attribute a reliable receive))))",
            59,
            Duplicate("a".into()),
        ),
        ("(interactions (class R (parameter p)))", 24, Expected("'reliable' or 'best_effort'")),
        ("(spaces", 1, Duplicate("spaces".into())),
        ("(federate \"x)", 11, UnclosedString),
    ];
    for (part, column, kind) in cases {
        let part = if part == "(spaces" { "(spaces)" } else { part };
        let place = Place { line: 2, column };
        assert_eq!(parse(&with(part)), Err(FedError { place, kind }), "{part}");
    }
}

#[test]
fn parentheses_have_to_match() {
    let unclosed = parse("(FED\n  (objects").unwrap_err();
    assert_eq!(
        unclosed.to_string(),
        "line 2, column 3: this list is never closed"
    );
    let unopened = parse("(FED))").unwrap_err();
    assert_eq!(
        unopened.to_string(),
        "line 1, column 6: a ')' that closes nothing"
    );
    assert_eq!(
        parse("").unwrap_err().kind,
        FedErrorKind::Missing("(FED ...)")
    );
    assert_eq!(
        parse(&"(".repeat(100_000)).unwrap_err().kind,
        FedErrorKind::TooDeep
    );
}

#[test]
fn columns_count_characters() {
    let e = parse("(FED \"äöü\" (x))").unwrap_err();
    assert_eq!(e.place, Place { line: 1, column: 6 });
    let e = parse("(FED (federate \"äöü\") (x))").unwrap_err();
    assert_eq!(
        e.place,
        Place {
            line: 1,
            column: 23
        }
    );
}

#[test]
fn a_file_cut_anywhere_is_a_fault() {
    let end = SHIPS.trim_end().len();
    for cut in (0..end).filter(|&i| SHIPS.is_char_boundary(i)) {
        assert!(parse(&SHIPS[..cut]).is_err(), "cut at {cut}");
    }
}
