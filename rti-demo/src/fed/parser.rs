//! From lists to the object model.

use super::error::{FedError, FedErrorKind, Place};
use super::model::{
    number, Class, ClassTree, Delivery, Member, ObjectModel, Order, Space, Transport,
};
use super::sexpr::{self, Form, Node};

/// More classes and members in one tree are refused, so that a hostile file cannot keep the RTI busy.
const NAMES: usize = 10_000;

/// Reads a FED file.
pub fn parse(text: &str) -> Result<ObjectModel, FedError> {
    let nodes = sexpr::read(text)?;
    let start = Place { line: 1, column: 1 };
    let whole = nodes
        .first()
        .ok_or_else(|| fault(start, FedErrorKind::Missing("(FED ...)")))?;
    let mut fed = List::open(whole)?;
    if !fed.head.eq_ignore_ascii_case("FED") {
        return Err(fault(whole.place, FedErrorKind::Expected("(FED ...)")));
    }
    if let Some(extra) = nodes.get(1) {
        return Err(fault(
            extra.place,
            FedErrorKind::Expected("the end of the file"),
        ));
    }
    sections(&mut fed)
}

fn sections(fed: &mut List) -> Result<ObjectModel, FedError> {
    let (mut federation, mut version, mut spaces) = (None, None, None);
    let (mut objects, mut interactions) = (None, None);
    while let Some(node) = fed.next() {
        let mut list = List::open(node)?;
        let head = list.head;
        let again = match head.to_ascii_lowercase().as_str() {
            "federation" => federation.replace(list.last_word("a name")?).is_some(),
            "fedversion" => version.replace(list.last_word("a version")?).is_some(),
            // Who may join: read over, as the security levels are.
            "federate" => false,
            "spaces" => spaces.replace(read_spaces(&mut list)?).is_some(),
            "objects" => {
                let section = Tree::section(spaces.as_deref(), Side::Objects, &mut list)?;
                objects.replace(section).is_some()
            }
            "interactions" => {
                let section = Tree::section(spaces.as_deref(), Side::Interactions, &mut list)?;
                interactions.replace(section).is_some()
            }
            _ => return Err(fault(list.place, FedErrorKind::Unknown(head.into()))),
        };
        if again {
            return Err(fault(list.place, FedErrorKind::Duplicate(head.into())));
        }
    }
    let missing = |what| fault(fed.place, FedErrorKind::Missing(what));
    let (objects, attribute_delivery) = objects.ok_or_else(|| missing("section (objects ...)"))?;
    let (interactions, interaction_delivery) =
        interactions.ok_or_else(|| missing("section (interactions ...)"))?;
    let federation = federation.ok_or_else(|| missing("section (Federation ...)"))?;
    let version = version.ok_or_else(|| missing("section (FEDversion ...)"))?;
    Ok(ObjectModel {
        federation: federation.into(),
        version: version.into(),
        spaces: spaces.unwrap_or_default(),
        objects,
        attribute_delivery,
        interactions,
        interaction_delivery,
    })
}

fn read_spaces(list: &mut List) -> Result<Vec<Space>, FedError> {
    let mut spaces: Vec<Space> = Vec::new();
    while let Some(node) = list.next() {
        let mut space = List::headed(node, "space", "(space NAME (dimension NAME) ...)")?;
        let name = space.word("a name")?;
        if spaces.iter().any(|s| s.name == name) {
            return Err(fault(space.place, FedErrorKind::Duplicate(name.into())));
        }
        let mut dimensions: Vec<String> = Vec::new();
        while let Some(node) = space.next() {
            let mut dimension = List::headed(node, "dimension", "(dimension NAME)")?;
            let name = dimension.last_word("a name")?.to_owned();
            if dimensions.contains(&name) {
                return Err(fault(node.place, FedErrorKind::Duplicate(name)));
            }
            dimensions.push(name);
        }
        let name = name.to_owned();
        spaces.push(Space { name, dimensions });
    }
    Ok(spaces)
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Objects,
    Interactions,
}

/// One of the two trees of classes while it is read.
struct Tree<'s> {
    spaces: &'s [Space],
    side: Side,
    tree: ClassTree,
    delivery: Vec<Delivery>,
    members: u32,
}

impl<'s> Tree<'s> {
    /// A section holds exactly one class: the root.
    fn section(
        spaces: Option<&'s [Space]>,
        side: Side,
        list: &mut List,
    ) -> Result<(ClassTree, Vec<Delivery>), FedError> {
        let mut tree = Self {
            spaces: spaces.unwrap_or(&[]),
            side,
            tree: ClassTree::default(),
            delivery: Vec::new(),
            members: 0,
        };
        let missing = fault(list.place, FedErrorKind::Missing("root class"));
        let root = list.next().ok_or(missing)?;
        tree.class(root, None)?;
        list.end()?;
        Ok((tree.tree, tree.delivery))
    }

    fn class(&mut self, node: &Node, parent: Option<usize>) -> Result<(), FedError> {
        let mut list = List::headed(node, "class", "(class NAME ...)")?;
        let name = list.word("a name")?.to_owned();
        self.bounded(list.place)?;
        if parent.is_some_and(|p| self.tree.child(p, &name).is_some()) {
            return Err(fault(list.place, FedErrorKind::Duplicate(name)));
        }
        if self.side == Side::Interactions {
            let delivery = self.delivery(&mut list)?;
            self.delivery.push(delivery);
        }
        let index = self.tree.classes.len();
        self.tree.classes.push(Class {
            name,
            parent,
            members: Vec::new(),
        });
        while let Some(node) = list.next() {
            let mut inner = List::open(node)?;
            match inner.head.to_ascii_lowercase().as_str() {
                "class" => self.class(node, Some(index))?,
                // Security levels are no part of what this RTI does.
                "sec_level" => {}
                "attribute" if self.side == Side::Objects => {
                    let name = inner.word("a name")?;
                    let delivery = self.delivery(&mut inner)?;
                    self.delivery.push(delivery);
                    self.member(index, name, &inner)?;
                }
                "parameter" if self.side == Side::Interactions => {
                    let name = inner.word("a name")?;
                    self.member(index, name, &inner)?;
                }
                _ => return Err(fault(inner.place, FedErrorKind::Unknown(inner.head.into()))),
            }
        }
        Ok(())
    }

    fn member(&mut self, class: usize, name: &str, list: &List) -> Result<(), FedError> {
        list.end()?;
        self.bounded(list.place)?;
        if self.tree.member(class, name).is_some() {
            return Err(fault(list.place, FedErrorKind::Duplicate(name.into())));
        }
        let handle = number(self.members as usize);
        self.members = handle;
        let name = name.into();
        self.tree.classes[class]
            .members
            .push(Member { name, handle });
        Ok(())
    }

    fn bounded(&self, place: Place) -> Result<(), FedError> {
        if self.tree.classes.len() + self.members as usize >= NAMES {
            return Err(fault(place, FedErrorKind::TooMany));
        }
        Ok(())
    }

    /// `TRANSPORT ORDER [SPACE]`.
    fn delivery(&self, list: &mut List) -> Result<Delivery, FedError> {
        let (place, word) = (list.here(), list.word("'reliable' or 'best_effort'")?);
        let transport = match word.to_ascii_lowercase().as_str() {
            "reliable" => Transport::Reliable,
            "best_effort" => Transport::BestEffort,
            _ => return Err(fault(place, FedErrorKind::Unknown(word.into()))),
        };
        let (place, word) = (list.here(), list.word("'receive' or 'timestamp'")?);
        let order = match word.to_ascii_lowercase().as_str() {
            "receive" => Order::Receive,
            "timestamp" => Order::Timestamp,
            _ => return Err(fault(place, FedErrorKind::Unknown(word.into()))),
        };
        let place = list.here();
        let space = match list.optional_word() {
            None => None,
            Some(name) => match self.spaces.iter().position(|s| s.name == name) {
                Some(index) => Some(index),
                None => return Err(fault(place, FedErrorKind::UnknownSpace(name.into()))),
            },
        };
        Ok(Delivery {
            transport,
            order,
            space,
        })
    }
}

/// A list that starts with a word, read from left to right.
struct List<'t, 'n> {
    place: Place,
    head: &'t str,
    rest: &'n [Node<'t>],
}

impl<'t, 'n> List<'t, 'n> {
    fn open(node: &'n Node<'t>) -> Result<Self, FedError> {
        if let Form::List(nodes) = &node.form {
            if let Some((first, rest)) = nodes.split_first() {
                if let Form::Word(head) = first.form {
                    let place = node.place;
                    return Ok(Self { place, head, rest });
                }
            }
        }
        let what = "a list that starts with a keyword";
        Err(fault(node.place, FedErrorKind::Expected(what)))
    }

    fn headed(node: &'n Node<'t>, head: &str, what: &'static str) -> Result<Self, FedError> {
        match Self::open(node) {
            Ok(list) if list.head.eq_ignore_ascii_case(head) => Ok(list),
            _ => Err(fault(node.place, FedErrorKind::Expected(what))),
        }
    }

    fn next(&mut self) -> Option<&'n Node<'t>> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Where the next thing stands, or the list itself at its end.
    fn here(&self) -> Place {
        self.rest.first().map_or(self.place, |n| n.place)
    }

    fn optional_word(&mut self) -> Option<&'t str> {
        match self.rest.first()?.form {
            Form::Word(word) => {
                self.rest = &self.rest[1..];
                Some(word)
            }
            Form::List(_) => None,
        }
    }

    fn word(&mut self, what: &'static str) -> Result<&'t str, FedError> {
        let place = self.here();
        self.optional_word()
            .ok_or_else(|| fault(place, FedErrorKind::Expected(what)))
    }

    fn last_word(&mut self, what: &'static str) -> Result<&'t str, FedError> {
        let word = self.word(what)?;
        self.end()?;
        Ok(word)
    }

    fn end(&self) -> Result<(), FedError> {
        match self.rest.first() {
            None => Ok(()),
            Some(node) => Err(fault(node.place, FedErrorKind::Expected("')'"))),
        }
    }
}

fn fault(place: Place, kind: FedErrorKind) -> FedError {
    FedError { place, kind }
}
