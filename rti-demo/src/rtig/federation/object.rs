//! Object management: registration, discovery, updates and removal.

use super::declaration::{not_defined, not_published};
use super::{Federation, Post};
use crate::handle::{AttributeHandle, FederateHandle, ObjectClassHandle, ObjectHandle};
use crate::rtig::LinkId;
use crate::wire::{AttributeValues, Bytes, Callback};
use crate::{ExceptionKind, RtiException};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An object instance.
pub(super) struct Object {
    name: String,
    class: ObjectClassHandle,
    registrar: FederateHandle,
    /// Who may update each attribute; one that nobody owns is absent.
    owners: BTreeMap<AttributeHandle, FederateHandle>,
}

impl Federation {
    /// registerObjectInstance: the federate owns the attributes that it publishes of the class. Without a name the RTI
    /// gives one.
    pub fn register_object(
        &mut self,
        federate: FederateHandle,
        class: ObjectClassHandle,
        name: &str,
        post: &mut impl Post,
    ) -> Result<ObjectHandle, RtiException> {
        let index = self.object_class_index(class)?;
        let member = self.member(federate)?;
        let published = member.published.get(&class);
        let published = published.ok_or_else(|| not_published(class))?;
        let owners = published.iter().map(|&a| (a, federate)).collect();
        if self.object_names.contains_key(name) {
            let reason = format!("there is an object '{name}'");
            return Err(RtiException::new(
                ExceptionKind::ObjectAlreadyRegistered,
                reason,
            ));
        }
        self.last_object += 1;
        let object = ObjectHandle(self.last_object);
        let name = match name {
            "" => self.free_name(object),
            given => given.to_owned(),
        };
        let instance = Object {
            name: name.clone(),
            class,
            registrar: federate,
            owners,
        };
        self.object_names.insert(name, object);
        self.objects.insert(object, instance);
        self.member(federate)?.registered.insert(object);
        let audience = self.object_audience[index].iter();
        let others: Vec<_> = audience
            .map(|l| l.federate)
            .filter(|&f| f != federate)
            .collect();
        for listener in others {
            self.discover(listener, object, post);
        }
        Ok(object)
    }

    fn free_name(&self, object: ObjectHandle) -> String {
        let mut name = format!("HLAobject{object}");
        while self.object_names.contains_key(&name) {
            name.push('_');
        }
        name
    }

    /// updateAttributeValues: each subscriber gets the values of the attributes that it has subscribed to.
    pub fn update(
        &mut self,
        federate: FederateHandle,
        object: ObjectHandle,
        values: AttributeValues,
        tag: Bytes,
        post: &mut impl Post,
    ) -> Result<(), RtiException> {
        let instance = self.object(object)?;
        let index = self.object_class_index(instance.class)?;
        for (attribute, _) in &values {
            if instance.owners.get(attribute) != Some(&federate) {
                return Err(self.cannot_update(object, instance, *attribute));
            }
        }
        let mut whole: Vec<LinkId> = Vec::new();
        for listener in &self.object_audience[index] {
            let wanted = |a: &AttributeHandle| listener.attributes.contains(a);
            if listener.federate == federate {
                continue;
            }
            if values.iter().all(|(a, _)| wanted(a)) {
                whole.push(listener.link);
                continue;
            }
            let part: AttributeValues = values
                .iter()
                .filter(|(a, _)| wanted(a))
                .map(|(a, value)| (*a, Cow::Borrowed(&**value)))
                .collect();
            if !part.is_empty() {
                let tag = Cow::Borrowed(&*tag);
                post.post(&[listener.link], reflection(object, part, tag));
            }
        }
        if !whole.is_empty() {
            post.post(&whole, reflection(object, values, tag));
        }
        Ok(())
    }

    fn cannot_update(
        &self,
        object: ObjectHandle,
        instance: &Object,
        attribute: AttributeHandle,
    ) -> RtiException {
        match self.object_class_index(instance.class) {
            Ok(index) if self.model.objects.has(index, attribute.0) => {
                let name = &instance.name;
                let reason = format!("attribute {attribute} of object {object} '{name}'");
                RtiException::new(ExceptionKind::AttributeNotOwned, reason)
            }
            _ => not_defined(instance.class, attribute),
        }
    }

    /// deleteObjectInstance.
    pub fn delete_object(
        &mut self,
        federate: FederateHandle,
        object: ObjectHandle,
        tag: &[u8],
        post: &mut impl Post,
    ) -> Result<(), RtiException> {
        if self.object(object)?.registrar != federate {
            let reason = format!("object {object} is another federate's");
            return Err(RtiException::new(
                ExceptionKind::DeletePrivilegeNotHeld,
                reason,
            ));
        }
        self.member(federate)?.registered.remove(&object);
        self.remove_object(object, tag, post);
        Ok(())
    }

    /// Takes an object away and tells who has discovered it.
    pub(super) fn remove_object(&mut self, object: ObjectHandle, tag: &[u8], post: &mut impl Post) {
        let Some(instance) = self.objects.remove(&object) else {
            return;
        };
        self.object_names.remove(&instance.name);
        let members = self.members.values_mut();
        let links: Vec<_> = members
            .filter_map(|m| m.discovered.remove(&object).then_some(m.link))
            .collect();
        if !links.is_empty() {
            let tag = tag.into();
            post.post(&links, Callback::RemoveObjectInstance { object, tag });
        }
    }

    /// The federate discovers what is there of the classes that it hears.
    pub(super) fn discover_all(&mut self, federate: FederateHandle, post: &mut impl Post) {
        let others = self.objects.iter().filter(|(_, o)| o.registrar != federate);
        let objects: Vec<_> = others.map(|(&handle, _)| handle).collect();
        for object in objects {
            self.discover(federate, object, post);
        }
    }

    /// The federate discovers the object, unless it has before or doesn't hear the class.
    fn discover(&mut self, federate: FederateHandle, object: ObjectHandle, post: &mut impl Post) {
        let instance = &self.objects[&object];
        let audience = &self.object_audience[instance.class.0 as usize - 1];
        let Some(listener) = audience.iter().find(|l| l.federate == federate) else {
            return;
        };
        let (class, name) = (listener.class, instance.name.as_str().into());
        let Some(member) = self.members.get_mut(&federate) else {
            return;
        };
        if member.discovered.insert(object) {
            let discovery = Callback::DiscoverObjectInstance {
                object,
                class,
                name,
            };
            post.post(&[member.link], discovery);
        }
    }

    fn object(&self, object: ObjectHandle) -> Result<&Object, RtiException> {
        self.objects.get(&object).ok_or_else(|| {
            let reason = format!("there is no object {object}");
            RtiException::new(ExceptionKind::ObjectNotKnown, reason)
        })
    }
}

fn reflection<'a>(
    object: ObjectHandle,
    values: AttributeValues<'a>,
    tag: Bytes<'a>,
) -> Callback<'a> {
    Callback::ReflectAttributeValues {
        object,
        values,
        tag,
    }
}
