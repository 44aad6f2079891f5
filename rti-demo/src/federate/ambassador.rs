//! The federate ambassador: what the RTI calls in a federate.

use crate::handle::{FederateHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle};
use crate::wire::{AttributeValues, Callback, ParameterValues};

/// The callbacks. Each does nothing unless the federate says otherwise.
///
/// They run within [`evoke_callback`](super::RtiAmbassador::evoke_callback), so that none of them can call the RTI, which the
/// standard forbids anyway (ConcurrentAccessAttempted): they take note, and the federate acts afterwards.
#[allow(unused_variables)]
pub trait FederateAmbassador {
    /// discoverObjectInstance: there is an object, known to this federate as one of `class`.
    fn discover_object_instance(
        &mut self,
        object: ObjectHandle,
        class: ObjectClassHandle,
        name: &str,
    ) {
    }

    /// reflectAttributeValues: new values of those attributes that this federate subscribes to.
    fn reflect_attribute_values(
        &mut self,
        object: ObjectHandle,
        values: &AttributeValues,
        tag: &[u8],
    ) {
    }

    /// removeObjectInstance: the object is gone.
    fn remove_object_instance(&mut self, object: ObjectHandle, tag: &[u8]) {}

    /// receiveInteraction, as one of the class that this federate subscribes to.
    fn receive_interaction(
        &mut self,
        class: InteractionClassHandle,
        values: &ParameterValues,
        tag: &[u8],
    ) {
    }

    /// synchronizationPointRegistrationSucceeded.
    fn synchronization_point_registration_succeeded(&mut self, label: &str) {}

    /// synchronizationPointRegistrationFailed: there is one of that label.
    fn synchronization_point_registration_failed(&mut self, label: &str) {}

    /// announceSynchronizationPoint: to be answered with synchronizationPointAchieved when it is reached.
    fn announce_synchronization_point(&mut self, label: &str, tag: &[u8]) {}

    /// federationSynchronized: all have reached it.
    fn federation_synchronized(&mut self, label: &str) {}

    /// Another federate was lost and has been resigned (the MOM's HLAreportFederateLost).
    fn federate_lost(&mut self, federate: FederateHandle, name: &str, reason: &str) {}
}

/// Calls what the callback is meant for.
pub(super) fn dispatch(callback: &Callback, to: &mut impl FederateAmbassador) {
    match callback {
        Callback::DiscoverObjectInstance {
            object,
            class,
            name,
        } => to.discover_object_instance(*object, *class, name),
        Callback::ReflectAttributeValues {
            object,
            values,
            tag,
        } => to.reflect_attribute_values(*object, values, tag),
        Callback::RemoveObjectInstance { object, tag } => to.remove_object_instance(*object, tag),
        Callback::ReceiveInteraction { class, values, tag } => {
            to.receive_interaction(*class, values, tag)
        }
        Callback::SynchronizationPointRegistrationSucceeded { label } => {
            to.synchronization_point_registration_succeeded(label)
        }
        Callback::SynchronizationPointRegistrationFailed { label } => {
            to.synchronization_point_registration_failed(label)
        }
        Callback::AnnounceSynchronizationPoint { label, tag } => {
            to.announce_synchronization_point(label, tag)
        }
        Callback::FederationSynchronized { label } => to.federation_synchronized(label),
        Callback::FederateLost {
            federate,
            name,
            reason,
        } => to.federate_lost(*federate, name, reason),
    }
}
