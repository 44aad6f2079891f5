//! The messages, each with its number and its fields.

use super::codec::{Decoder, Wire};
use super::error::WireError;
use crate::handle::{
    AttributeHandle, FederateHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle,
    ParameterHandle,
};
use crate::RtiException;
use std::borrow::Cow;

/// Text within a message.
pub type Text<'a> = Cow<'a, str>;
/// Bytes that the RTI carries without looking into them.
pub type Bytes<'a> = Cow<'a, [u8]>;
/// Values of attributes (AttributeHandleValuePairSet).
pub type AttributeValues<'a> = Vec<(AttributeHandle, Bytes<'a>)>;
/// Values of parameters (ParameterHandleValuePairSet).
pub type ParameterValues<'a> = Vec<(ParameterHandle, Bytes<'a>)>;

/// The version of this protocol; both ends have to speak the same.
pub const PROTOCOL: u32 = 1;

/// Defines an enum of messages together with how each is written and read.
macro_rules! messages {
    ($(#[$doc:meta])* $what:literal enum $name:ident<$a:lifetime> {
        $($(#[$variant_doc:meta])* $tag:literal $variant:ident { $($field:ident: $kind:ty),* })*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the fields: each bears the name of what it holds
        pub enum $name<$a> {
            $($(#[$variant_doc])* $variant { $($field: $kind),* },)*
        }

        impl<$a> Wire<$a> for $name<$a> {
            const LEAST: usize = 1;

            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant { $($field),* } => {
                        out.push($tag);
                        $($field.put(out);)*
                    })*
                }
            }

            fn take(from: &mut Decoder<$a>) -> Result<Self, WireError> {
                match u8::take(from)? {
                    $($tag => Ok(Self::$variant { $($field: Wire::take(from)?),* }),)*
                    tag => Err(WireError::UnknownTag { what: $what, tag: tag.into() }),
                }
            }
        }
    };
}

/// From a federate: a service with a serial number, by which its answer is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Chosen by the federate; 0 is left to the RTI.
    pub serial: u32,
    /// The service.
    pub service: Service<'a>,
}

impl<'a> Wire<'a> for Request<'a> {
    const LEAST: usize = u32::LEAST + Service::LEAST;

    fn put(&self, out: &mut Vec<u8>) {
        self.serial.put(out);
        self.service.put(out);
    }

    fn take(from: &mut Decoder<'a>) -> Result<Self, WireError> {
        let serial = Wire::take(from)?;
        let service = Wire::take(from)?;
        Ok(Self { serial, service })
    }
}

messages! {
    /// The services of the RTI. All are answered, but for `UpdateAttributeValues` and `SendInteraction`, which are
    /// only ever refused.
    "service"
    enum Service<'a> {
        /// The first on every connection.
        1 Connect { protocol: u32 }
        /// createFederationExecution, with the text of the FED file.
        2 CreateFederationExecution { federation: Text<'a>, fed: Text<'a> }
        /// destroyFederationExecution.
        3 DestroyFederationExecution { federation: Text<'a> }
        /// joinFederationExecution; the answer is the federate's handle.
        4 JoinFederationExecution { federate: Text<'a>, federation: Text<'a> }
        /// resignFederationExecution.
        5 ResignFederationExecution {}
        /// registerFederationSynchronizationPoint.
        6 RegisterSynchronizationPoint { label: Text<'a>, tag: Bytes<'a> }
        /// synchronizationPointAchieved.
        7 SynchronizationPointAchieved { label: Text<'a> }
        /// publishObjectClass(Attributes).
        8 PublishObjectClass { class: ObjectClassHandle, attributes: Vec<AttributeHandle> }
        /// unpublishObjectClass.
        9 UnpublishObjectClass { class: ObjectClassHandle }
        /// subscribeObjectClassAttributes.
        10 SubscribeObjectClass { class: ObjectClassHandle, attributes: Vec<AttributeHandle> }
        /// unsubscribeObjectClass.
        11 UnsubscribeObjectClass { class: ObjectClassHandle }
        /// publishInteractionClass.
        12 PublishInteractionClass { class: InteractionClassHandle }
        /// unpublishInteractionClass.
        13 UnpublishInteractionClass { class: InteractionClassHandle }
        /// subscribeInteractionClass.
        14 SubscribeInteractionClass { class: InteractionClassHandle }
        /// unsubscribeInteractionClass.
        15 UnsubscribeInteractionClass { class: InteractionClassHandle }
        /// registerObjectInstance; an empty name asks the RTI for one. The answer is the object's handle.
        16 RegisterObjectInstance { class: ObjectClassHandle, name: Text<'a> }
        /// updateAttributeValues.
        17 UpdateAttributeValues { object: ObjectHandle, values: AttributeValues<'a>, tag: Bytes<'a> }
        /// deleteObjectInstance.
        18 DeleteObjectInstance { object: ObjectHandle, tag: Bytes<'a> }
        /// sendInteraction.
        19 SendInteraction { class: InteractionClassHandle, values: ParameterValues<'a>, tag: Bytes<'a> }
        /// getObjectClassHandle.
        20 GetObjectClassHandle { name: Text<'a> }
        /// getAttributeHandle.
        21 GetAttributeHandle { class: ObjectClassHandle, name: Text<'a> }
        /// getInteractionClassHandle.
        22 GetInteractionClassHandle { name: Text<'a> }
        /// getParameterHandle.
        23 GetParameterHandle { class: InteractionClassHandle, name: Text<'a> }
    }
}

messages! {
    /// What the RTI tells a federate.
    "message of the RTI"
    enum Notice<'a> {
        /// The service was done; the answer is a handle, or 0 where there is nothing to say.
        1 Answered { serial: u32, answer: u32 }
        /// The service was refused. Serial number 0: what came was no service at all, and the connection ends.
        2 Refused { serial: u32, exception: RtiException }
        /// A callback.
        3 Callback { callback: Callback<'a> }
    }
}

messages! {
    /// The callbacks of the federate.
    "callback"
    enum Callback<'a> {
        /// discoverObjectInstance.
        1 DiscoverObjectInstance { object: ObjectHandle, class: ObjectClassHandle, name: Text<'a> }
        /// reflectAttributeValues.
        2 ReflectAttributeValues { object: ObjectHandle, values: AttributeValues<'a>, tag: Bytes<'a> }
        /// removeObjectInstance.
        3 RemoveObjectInstance { object: ObjectHandle, tag: Bytes<'a> }
        /// receiveInteraction.
        4 ReceiveInteraction { class: InteractionClassHandle, values: ParameterValues<'a>, tag: Bytes<'a> }
        /// synchronizationPointRegistrationSucceeded.
        5 SynchronizationPointRegistrationSucceeded { label: Text<'a> }
        /// synchronizationPointRegistrationFailed.
        6 SynchronizationPointRegistrationFailed { label: Text<'a> }
        /// announceSynchronizationPoint.
        7 AnnounceSynchronizationPoint { label: Text<'a>, tag: Bytes<'a> }
        /// federationSynchronized.
        8 FederationSynchronized { label: Text<'a> }
        /// A federate was lost and has been resigned (HLAreportFederateLost of the standard's MOM).
        9 FederateLost { federate: FederateHandle, name: Text<'a>, reason: Text<'a> }
    }
}
