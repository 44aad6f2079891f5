//! What the federate may do, kept at home, so that a wrong update is refused on the spot and a right one waits for no
//! answer. The RTI checks again: it believes no federate.

use crate::handle::{AttributeHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle};
use crate::wire::Callback;
use crate::{ExceptionKind, RtiException};
use std::collections::{HashMap, HashSet};

/// The federate's own account.
#[derive(Default)]
pub(super) struct Book {
    published: HashMap<ObjectClassHandle, Vec<AttributeHandle>>,
    interactions: HashSet<InteractionClassHandle>,
    owned: HashMap<ObjectHandle, Vec<AttributeHandle>>,
    discovered: HashSet<ObjectHandle>,
}

impl Book {
    pub(super) fn publish(&mut self, class: ObjectClassHandle, attributes: &[AttributeHandle]) {
        self.published.insert(class, attributes.into());
    }

    pub(super) fn unpublish(&mut self, class: ObjectClassHandle) {
        self.published.remove(&class);
    }

    pub(super) fn publish_interaction(&mut self, class: InteractionClassHandle) {
        self.interactions.insert(class);
    }

    pub(super) fn unpublish_interaction(&mut self, class: InteractionClassHandle) {
        self.interactions.remove(&class);
    }

    pub(super) fn register(&mut self, object: ObjectHandle, class: ObjectClassHandle) {
        let attributes = self.published.get(&class).cloned().unwrap_or_default();
        self.owned.insert(object, attributes);
    }

    pub(super) fn delete(&mut self, object: ObjectHandle) {
        self.owned.remove(&object);
    }

    /// Before a callback is delivered.
    pub(super) fn note(&mut self, callback: &Callback) {
        match callback {
            Callback::DiscoverObjectInstance { object, .. } => {
                self.discovered.insert(*object);
            }
            Callback::RemoveObjectInstance { object, .. } => {
                self.discovered.remove(object);
            }
            _ => {}
        }
    }

    pub(super) fn may_update(
        &self,
        object: ObjectHandle,
        values: &[(AttributeHandle, &[u8])],
    ) -> Result<(), RtiException> {
        let Some(owned) = self.owned.get(&object) else {
            let (kind, what) = if self.discovered.contains(&object) {
                (ExceptionKind::AttributeNotOwned, "another federate's")
            } else {
                (ExceptionKind::ObjectNotKnown, "unknown here")
            };
            return Err(RtiException::new(
                kind,
                format!("object {object} is {what}"),
            ));
        };
        match values.iter().find(|(a, _)| !owned.contains(a)) {
            None => Ok(()),
            Some((attribute, _)) => {
                let reason = format!("attribute {attribute} of object {object}");
                Err(RtiException::new(ExceptionKind::AttributeNotOwned, reason))
            }
        }
    }

    pub(super) fn may_send(&self, class: InteractionClassHandle) -> Result<(), RtiException> {
        if self.interactions.contains(&class) {
            return Ok(());
        }
        let reason = format!("interaction class {class} is not published");
        let kind = ExceptionKind::InteractionClassNotPublished;
        Err(RtiException::new(kind, reason))
    }
}
