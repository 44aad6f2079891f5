//! Declaration management: who publishes and who subscribes to what.

use super::{Federation, InteractionListener, ObjectListener, Post};
use crate::handle::{AttributeHandle, FederateHandle, InteractionClassHandle, ObjectClassHandle};
use crate::{ExceptionKind, RtiException};
use std::collections::BTreeSet;

impl Federation {
    /// publishObjectClass, in place of what was published of the class before; no attributes are no publication.
    pub fn publish_object_class(
        &mut self,
        federate: FederateHandle,
        class: ObjectClassHandle,
        attributes: &[AttributeHandle],
    ) -> Result<(), RtiException> {
        let attributes = self.attribute_set(class, attributes)?;
        let published = &mut self.member(federate)?.published;
        if attributes.is_empty() {
            published.remove(&class);
        } else {
            published.insert(class, attributes);
        }
        Ok(())
    }

    /// unpublishObjectClass. Objects of the class stay with the federate.
    pub fn unpublish_object_class(
        &mut self,
        federate: FederateHandle,
        class: ObjectClassHandle,
    ) -> Result<(), RtiException> {
        self.object_class_index(class)?;
        match self.member(federate)?.published.remove(&class) {
            Some(_) => Ok(()),
            None => Err(not_published(class)),
        }
    }

    /// subscribeObjectClassAttributes, in place of the class's subscription before; no attributes are none. Objects that
    /// are there are discovered.
    pub fn subscribe_object_class(
        &mut self,
        federate: FederateHandle,
        class: ObjectClassHandle,
        attributes: &[AttributeHandle],
        post: &mut impl Post,
    ) -> Result<(), RtiException> {
        let attributes = self.attribute_set(class, attributes)?;
        let subscribed = &mut self.member(federate)?.subscribed;
        if attributes.is_empty() {
            subscribed.remove(&class);
        } else {
            subscribed.insert(class, attributes);
        }
        self.refresh_object_audience(federate);
        self.discover_all(federate, post);
        Ok(())
    }

    /// unsubscribeObjectClass.
    pub fn unsubscribe_object_class(
        &mut self,
        federate: FederateHandle,
        class: ObjectClassHandle,
        post: &mut impl Post,
    ) -> Result<(), RtiException> {
        self.object_class_index(class)?;
        if self.member(federate)?.subscribed.remove(&class).is_none() {
            let reason = format!("object class {class} is not subscribed to");
            return Err(RtiException::new(
                ExceptionKind::ObjectClassNotSubscribed,
                reason,
            ));
        }
        self.refresh_object_audience(federate);
        self.discover_all(federate, post);
        Ok(())
    }

    /// publishInteractionClass.
    pub fn publish_interaction_class(
        &mut self,
        federate: FederateHandle,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.interaction_class_index(class)?;
        let member = self.member(federate)?;
        member.published_interactions.insert(class);
        Ok(())
    }

    /// unpublishInteractionClass.
    pub fn unpublish_interaction_class(
        &mut self,
        federate: FederateHandle,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.interaction_class_index(class)?;
        let member = self.member(federate)?;
        if member.published_interactions.remove(&class) {
            return Ok(());
        }
        let reason = format!("interaction class {class} is not published");
        Err(RtiException::new(
            ExceptionKind::InteractionClassNotPublished,
            reason,
        ))
    }

    /// subscribeInteractionClass.
    pub fn subscribe_interaction_class(
        &mut self,
        federate: FederateHandle,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.interaction_class_index(class)?;
        let member = self.member(federate)?;
        member.subscribed_interactions.insert(class);
        self.refresh_interaction_audience(federate);
        Ok(())
    }

    /// unsubscribeInteractionClass.
    pub fn unsubscribe_interaction_class(
        &mut self,
        federate: FederateHandle,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.interaction_class_index(class)?;
        let member = self.member(federate)?;
        if !member.subscribed_interactions.remove(&class) {
            let reason = format!("interaction class {class} is not subscribed to");
            return Err(RtiException::new(
                ExceptionKind::InteractionClassNotSubscribed,
                reason,
            ));
        }
        self.refresh_interaction_audience(federate);
        Ok(())
    }

    /// Out of every audience.
    pub(super) fn leave_audiences(&mut self, federate: FederateHandle) {
        for audience in &mut self.object_audience {
            audience.retain(|l| l.federate != federate);
        }
        for audience in &mut self.interaction_audience {
            audience.retain(|l| l.federate != federate);
        }
    }

    /// A class is heard through the nearest subscription at it or above it.
    fn refresh_object_audience(&mut self, federate: FederateHandle) {
        let member = &self.members[&federate];
        for (index, audience) in self.object_audience.iter_mut().enumerate() {
            audience.retain(|l| l.federate != federate);
            let lineage = self.model.objects.lineage(index);
            let nearest = lineage
                .map(|i| ObjectClassHandle(i as u32 + 1))
                .find_map(|class| member.subscribed.get_key_value(&class));
            if let Some((&class, attributes)) = nearest {
                audience.push(ObjectListener {
                    federate,
                    link: member.link,
                    class,
                    attributes: attributes.clone(),
                });
            }
        }
    }

    fn refresh_interaction_audience(&mut self, federate: FederateHandle) {
        let member = &self.members[&federate];
        for (index, audience) in self.interaction_audience.iter_mut().enumerate() {
            audience.retain(|l| l.federate != federate);
            let lineage = self.model.interactions.lineage(index);
            let nearest = lineage
                .map(|i| InteractionClassHandle(i as u32 + 1))
                .find(|class| member.subscribed_interactions.contains(class));
            if let Some(class) = nearest {
                let link = member.link;
                audience.push(InteractionListener {
                    federate,
                    link,
                    class,
                });
            }
        }
    }

    /// The class's index, if there is such a class.
    pub(super) fn object_class_index(
        &self,
        class: ObjectClassHandle,
    ) -> Result<usize, RtiException> {
        self.model.objects.index(class.0).ok_or_else(|| {
            let reason = format!("there is no object class {class}");
            RtiException::new(ExceptionKind::ObjectClassNotDefined, reason)
        })
    }

    /// The class's index, if there is such a class.
    pub(super) fn interaction_class_index(
        &self,
        class: InteractionClassHandle,
    ) -> Result<usize, RtiException> {
        self.model.interactions.index(class.0).ok_or_else(|| {
            let reason = format!("there is no interaction class {class}");
            RtiException::new(ExceptionKind::InteractionClassNotDefined, reason)
        })
    }

    /// The attributes as a set, each checked to be one of the class.
    fn attribute_set(
        &self,
        class: ObjectClassHandle,
        attributes: &[AttributeHandle],
    ) -> Result<BTreeSet<AttributeHandle>, RtiException> {
        let index = self.object_class_index(class)?;
        let known = |a: &&AttributeHandle| self.model.objects.has(index, a.0);
        match attributes.iter().find(|a| !known(a)) {
            Some(&attribute) => Err(not_defined(class, attribute)),
            None => Ok(attributes.iter().copied().collect()),
        }
    }
}

/// `ObjectClassNotPublished`.
pub(super) fn not_published(class: ObjectClassHandle) -> RtiException {
    let reason = format!("object class {class} is not published");
    RtiException::new(ExceptionKind::ObjectClassNotPublished, reason)
}

/// `AttributeNotDefined`.
pub(super) fn not_defined(class: ObjectClassHandle, attribute: AttributeHandle) -> RtiException {
    let reason = format!("object class {class} has no attribute {attribute}");
    RtiException::new(ExceptionKind::AttributeNotDefined, reason)
}
