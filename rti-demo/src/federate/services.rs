//! The services, by the standard's groups.

use super::book::Book;
use super::RtiAmbassador;
use crate::handle::{
    AttributeHandle, FederateHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle,
    ParameterHandle,
};
use crate::wire::Service;
use crate::{ExceptionKind, RtiException};
use std::borrow::Cow;
use std::path::Path;

/// Federation management.
impl RtiAmbassador {
    /// createFederationExecution: the FED file is read here, so that the RTI need not have it, and parsed there.
    pub fn create_federation_execution(
        &mut self,
        federation: &str,
        fed: &Path,
    ) -> Result<(), RtiException> {
        let text = std::fs::read_to_string(fed).map_err(|e| {
            let reason = format!("{}: {e}", fed.display());
            RtiException::new(ExceptionKind::CouldNotOpenFED, reason)
        })?;
        self.create_federation_execution_from(federation, &text)
    }

    /// createFederationExecution with the FED file's text.
    pub fn create_federation_execution_from(
        &mut self,
        federation: &str,
        fed: &str,
    ) -> Result<(), RtiException> {
        let (federation, fed) = (federation.into(), fed.into());
        self.done(Service::CreateFederationExecution { federation, fed })
    }

    /// destroyFederationExecution.
    pub fn destroy_federation_execution(&mut self, federation: &str) -> Result<(), RtiException> {
        let federation = federation.into();
        self.done(Service::DestroyFederationExecution { federation })
    }

    /// joinFederationExecution.
    pub fn join_federation_execution(
        &mut self,
        federate: &str,
        federation: &str,
    ) -> Result<FederateHandle, RtiException> {
        let (federate, federation) = (federate.into(), federation.into());
        let join = Service::JoinFederationExecution {
            federate,
            federation,
        };
        self.connection.call(join).map(FederateHandle)
    }

    /// resignFederationExecution. Objects of the federate are deleted.
    pub fn resign_federation_execution(&mut self) -> Result<(), RtiException> {
        self.done(Service::ResignFederationExecution {})?;
        self.book = Book::default();
        self.connection.early.clear();
        Ok(())
    }

    /// registerFederationSynchronizationPoint.
    pub fn register_federation_synchronization_point(
        &mut self,
        label: &str,
        tag: &[u8],
    ) -> Result<(), RtiException> {
        let (label, tag) = (label.into(), tag.into());
        self.done(Service::RegisterSynchronizationPoint { label, tag })
    }

    /// synchronizationPointAchieved.
    pub fn synchronization_point_achieved(&mut self, label: &str) -> Result<(), RtiException> {
        let label = label.into();
        self.done(Service::SynchronizationPointAchieved { label })
    }

    fn done(&mut self, service: Service) -> Result<(), RtiException> {
        self.connection.call(service).map(|_| ())
    }
}

/// Declaration management.
impl RtiAmbassador {
    /// publishObjectClass (publishObjectClassAttributes), in place of what was published of the class before.
    pub fn publish_object_class_attributes(
        &mut self,
        class: ObjectClassHandle,
        attributes: &[AttributeHandle],
    ) -> Result<(), RtiException> {
        let list = attributes.into();
        self.done(Service::PublishObjectClass {
            class,
            attributes: list,
        })?;
        self.book.publish(class, attributes);
        Ok(())
    }

    /// unpublishObjectClass.
    pub fn unpublish_object_class(&mut self, class: ObjectClassHandle) -> Result<(), RtiException> {
        self.done(Service::UnpublishObjectClass { class })?;
        self.book.unpublish(class);
        Ok(())
    }

    /// subscribeObjectClassAttributes, in place of the class's subscription before.
    pub fn subscribe_object_class_attributes(
        &mut self,
        class: ObjectClassHandle,
        attributes: &[AttributeHandle],
    ) -> Result<(), RtiException> {
        let attributes = attributes.into();
        self.done(Service::SubscribeObjectClass { class, attributes })
    }

    /// unsubscribeObjectClass.
    pub fn unsubscribe_object_class(
        &mut self,
        class: ObjectClassHandle,
    ) -> Result<(), RtiException> {
        self.done(Service::UnsubscribeObjectClass { class })
    }

    /// publishInteractionClass.
    pub fn publish_interaction_class(
        &mut self,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.done(Service::PublishInteractionClass { class })?;
        self.book.publish_interaction(class);
        Ok(())
    }

    /// unpublishInteractionClass.
    pub fn unpublish_interaction_class(
        &mut self,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.done(Service::UnpublishInteractionClass { class })?;
        self.book.unpublish_interaction(class);
        Ok(())
    }

    /// subscribeInteractionClass.
    pub fn subscribe_interaction_class(
        &mut self,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.done(Service::SubscribeInteractionClass { class })
    }

    /// unsubscribeInteractionClass.
    pub fn unsubscribe_interaction_class(
        &mut self,
        class: InteractionClassHandle,
    ) -> Result<(), RtiException> {
        self.done(Service::UnsubscribeInteractionClass { class })
    }
}

/// Object management.
impl RtiAmbassador {
    /// registerObjectInstance. An empty name asks the RTI for one.
    pub fn register_object_instance(
        &mut self,
        class: ObjectClassHandle,
        name: &str,
    ) -> Result<ObjectHandle, RtiException> {
        let name = name.into();
        let register = Service::RegisterObjectInstance { class, name };
        let object = ObjectHandle(self.connection.call(register)?);
        self.book.register(object, class);
        Ok(object)
    }

    /// deleteObjectInstance.
    pub fn delete_object_instance(
        &mut self,
        object: ObjectHandle,
        tag: &[u8],
    ) -> Result<(), RtiException> {
        let tag = tag.into();
        self.done(Service::DeleteObjectInstance { object, tag })?;
        self.book.delete(object);
        Ok(())
    }

    /// updateAttributeValues. Returns once the values are sent.
    pub fn update_attribute_values(
        &mut self,
        object: ObjectHandle,
        values: &[(AttributeHandle, &[u8])],
        tag: &[u8],
    ) -> Result<(), RtiException> {
        self.book.may_update(object, values)?;
        let values = values.iter().map(|&(a, v)| (a, Cow::Borrowed(v)));
        let update = Service::UpdateAttributeValues {
            object,
            values: values.collect(),
            tag: tag.into(),
        };
        self.connection.send(update).map(|_| ())
    }

    /// sendInteraction. Returns once the interaction is sent.
    pub fn send_interaction(
        &mut self,
        class: InteractionClassHandle,
        values: &[(ParameterHandle, &[u8])],
        tag: &[u8],
    ) -> Result<(), RtiException> {
        self.book.may_send(class)?;
        let values = values.iter().map(|&(p, v)| (p, Cow::Borrowed(v)));
        let interaction = Service::SendInteraction {
            class,
            values: values.collect(),
            tag: tag.into(),
        };
        self.connection.send(interaction).map(|_| ())
    }
}

/// Support services.
impl RtiAmbassador {
    /// getObjectClassHandle, by a dotted path in which the root may be left out.
    pub fn get_object_class_handle(
        &mut self,
        name: &str,
    ) -> Result<ObjectClassHandle, RtiException> {
        let name = name.into();
        let get = Service::GetObjectClassHandle { name };
        self.connection.call(get).map(ObjectClassHandle)
    }

    /// getAttributeHandle.
    pub fn get_attribute_handle(
        &mut self,
        class: ObjectClassHandle,
        name: &str,
    ) -> Result<AttributeHandle, RtiException> {
        let name = name.into();
        let get = Service::GetAttributeHandle { class, name };
        self.connection.call(get).map(AttributeHandle)
    }

    /// getInteractionClassHandle, by a dotted path in which the root may be left out.
    pub fn get_interaction_class_handle(
        &mut self,
        name: &str,
    ) -> Result<InteractionClassHandle, RtiException> {
        let name = name.into();
        let get = Service::GetInteractionClassHandle { name };
        self.connection.call(get).map(InteractionClassHandle)
    }

    /// getParameterHandle.
    pub fn get_parameter_handle(
        &mut self,
        class: InteractionClassHandle,
        name: &str,
    ) -> Result<ParameterHandle, RtiException> {
        let name = name.into();
        let get = Service::GetParameterHandle { class, name };
        self.connection.call(get).map(ParameterHandle)
    }
}
