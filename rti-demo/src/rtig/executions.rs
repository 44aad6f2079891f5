//! All federation executions, and the door to them: who may ask for what, and where a service goes.

use super::federation::{Federation, Post};
use super::LinkId;
use crate::fed;
use crate::handle::FederateHandle;
use crate::wire::{Service, PROTOCOL};
use crate::{ExceptionKind, RtiException};
use std::collections::{BTreeMap, HashMap};

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// It has not said which protocol it speaks.
    #[default]
    Stranger,
    /// It may create, destroy and join.
    Connected,
    /// It is a member of a federation.
    Joined {
        /// The federation's number.
        execution: u32,
        /// Who it is there.
        federate: FederateHandle,
    },
}

/// What comes of a service that was done: an answer, or silence for those that have none.
pub type Done = Option<u32>;

/// Every federation execution of the process.
#[derive(Default)]
pub struct Executions {
    names: HashMap<String, u32>,
    all: BTreeMap<u32, Federation>,
    created: u32,
}

impl Executions {
    /// There were federations, and none is left.
    pub fn over(&self) -> bool {
        self.created > 0 && self.all.is_empty()
    }

    /// Does what a connection asks for.
    pub fn serve(
        &mut self,
        link: LinkId,
        standing: &mut Standing,
        service: Service,
        post: &mut impl Post,
    ) -> Result<Done, RtiException> {
        let done = Ok(Some(0));
        check_name(&service)?;
        match (*standing, service) {
            (Standing::Stranger, Service::Connect { protocol }) => {
                if protocol != PROTOCOL {
                    let reason = format!("protocol {protocol}, where {PROTOCOL} is spoken");
                    return Err(RtiException::internal(reason));
                }
                *standing = Standing::Connected;
                done
            }
            (Standing::Stranger, _) => Err(RtiException::internal(
                "the first service has to be connect",
            )),
            (_, Service::Connect { .. }) => Err(RtiException::internal("connected already")),
            (_, Service::CreateFederationExecution { federation, fed }) => {
                self.create(&federation, &fed)?;
                done
            }
            (_, Service::DestroyFederationExecution { federation }) => {
                self.destroy(&federation)?;
                done
            }
            (
                Standing::Connected,
                Service::JoinFederationExecution {
                    federate,
                    federation,
                },
            ) => {
                let execution = self.number(&federation)?;
                let members = self.execution(execution)?;
                let federate = members.join(&federate, link, post)?;
                *standing = Standing::Joined {
                    execution,
                    federate,
                };
                Ok(Some(federate.0))
            }
            (Standing::Joined { .. }, Service::JoinFederationExecution { .. }) => {
                let reason = "this connection is a federate already";
                let kind = ExceptionKind::FederateAlreadyExecutionMember;
                Err(RtiException::new(kind, reason))
            }
            (
                Standing::Joined {
                    execution,
                    federate,
                },
                Service::ResignFederationExecution {},
            ) => {
                self.execution(execution)?.resign(federate, post);
                *standing = Standing::Connected;
                done
            }
            (
                Standing::Joined {
                    execution,
                    federate,
                },
                service,
            ) => member_service(self.execution(execution)?, federate, service, post),
            (Standing::Connected, _) => {
                let reason = "this connection has not joined a federation";
                let kind = ExceptionKind::FederateNotExecutionMember;
                Err(RtiException::new(kind, reason))
            }
        }
    }

    /// A connection is gone; a federate behind it is resigned, and the others are told why.
    pub fn lose(&mut self, standing: Standing, reason: &str, post: &mut impl Post) {
        if let Standing::Joined {
            execution,
            federate,
        } = standing
        {
            if let Some(federation) = self.all.get_mut(&execution) {
                federation.lose(federate, reason, post);
            }
        }
    }

    fn create(&mut self, name: &str, fed: &str) -> Result<(), RtiException> {
        if self.names.contains_key(name) {
            let reason = format!("there is a federation '{name}'");
            let kind = ExceptionKind::FederationExecutionAlreadyExists;
            return Err(RtiException::new(kind, reason));
        }
        let model = fed::parse(fed)
            .map_err(|e| RtiException::new(ExceptionKind::ErrorReadingFED, e.to_string()))?;
        self.created += 1;
        self.names.insert(name.into(), self.created);
        self.all.insert(self.created, Federation::new(model));
        Ok(())
    }

    fn destroy(&mut self, name: &str) -> Result<(), RtiException> {
        let number = self.number(name)?;
        let members = self.execution(number)?.member_count();
        if members > 0 {
            let reason = format!("federation '{name}' has {members} members");
            let kind = ExceptionKind::FederatesCurrentlyJoined;
            return Err(RtiException::new(kind, reason));
        }
        self.names.remove(name);
        self.all.remove(&number);
        Ok(())
    }

    fn number(&self, name: &str) -> Result<u32, RtiException> {
        let missing = || {
            let reason = format!("there is no federation '{name}'");
            RtiException::new(ExceptionKind::FederationExecutionDoesNotExist, reason)
        };
        self.names.get(name).copied().ok_or_else(missing)
    }

    fn execution(&mut self, number: u32) -> Result<&mut Federation, RtiException> {
        let missing = || RtiException::internal(format!("federation {number} is gone"));
        self.all.get_mut(&number).ok_or_else(missing)
    }
}

/// The longest name or label, in bytes.
const NAME: usize = 1000;

fn check_name(service: &Service) -> Result<(), RtiException> {
    match service {
        Service::CreateFederationExecution {
            federation: name, ..
        }
        | Service::JoinFederationExecution { federate: name, .. }
        | Service::RegisterObjectInstance { name, .. }
        | Service::RegisterSynchronizationPoint { label: name, .. }
            if name.len() > NAME =>
        {
            let reason = format!("a name of {} bytes is over the limit of {NAME}", name.len());
            Err(RtiException::internal(reason))
        }
        _ => Ok(()),
    }
}

/// The services that only a member may ask for.
fn member_service(
    at: &mut Federation,
    who: FederateHandle,
    service: Service,
    post: &mut impl Post,
) -> Result<Done, RtiException> {
    use Service::*;
    let done = |()| Some(0);
    match service {
        UpdateAttributeValues {
            object,
            values,
            tag,
        } => at.update(who, object, values, tag, post).map(|()| None),
        SendInteraction { class, values, tag } => at
            .send_interaction(who, class, values, tag, post)
            .map(|()| None),
        RegisterSynchronizationPoint { label, tag } => {
            at.register_point(who, &label, &tag, post).map(done)
        }
        SynchronizationPointAchieved { label } => at.achieve_point(who, &label, post).map(done),
        PublishObjectClass { class, attributes } => {
            at.publish_object_class(who, class, &attributes).map(done)
        }
        UnpublishObjectClass { class } => at.unpublish_object_class(who, class).map(done),
        SubscribeObjectClass { class, attributes } => at
            .subscribe_object_class(who, class, &attributes, post)
            .map(done),
        UnsubscribeObjectClass { class } => at.unsubscribe_object_class(who, class, post).map(done),
        PublishInteractionClass { class } => at.publish_interaction_class(who, class).map(done),
        UnpublishInteractionClass { class } => at.unpublish_interaction_class(who, class).map(done),
        SubscribeInteractionClass { class } => at.subscribe_interaction_class(who, class).map(done),
        UnsubscribeInteractionClass { class } => {
            at.unsubscribe_interaction_class(who, class).map(done)
        }
        RegisterObjectInstance { class, name } => at
            .register_object(who, class, &name, post)
            .map(|object| Some(object.0)),
        DeleteObjectInstance { object, tag } => at.delete_object(who, object, &tag, post).map(done),
        GetObjectClassHandle { name } => found(at.model().object_class(&name).map(|h| h.0), &name),
        GetAttributeHandle { class, name } => {
            found(at.model().attribute(class, &name).map(|h| h.0), &name)
        }
        GetInteractionClassHandle { name } => {
            found(at.model().interaction_class(&name).map(|h| h.0), &name)
        }
        GetParameterHandle { class, name } => {
            found(at.model().parameter(class, &name).map(|h| h.0), &name)
        }
        // `Executions::serve` has done with these.
        Connect { .. }
        | CreateFederationExecution { .. }
        | DestroyFederationExecution { .. }
        | JoinFederationExecution { .. }
        | ResignFederationExecution {} => Err(RtiException::internal("no service of a member")),
    }
}

fn found(handle: Option<u32>, name: &str) -> Result<Done, RtiException> {
    let reason = || format!("the object model has no '{name}' there");
    let missing = || RtiException::new(ExceptionKind::NameNotFound, reason());
    handle.map(Some).ok_or_else(missing)
}
