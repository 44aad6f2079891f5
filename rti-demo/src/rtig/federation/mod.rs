//! One federation execution: its object model, its members, and what they have declared and registered.
//!
//! ```text
//!   mod           members: join, resign, loss          object        register, update, delete
//!   declaration   publish, subscribe, the audiences    interaction   send
//!                                                      sync          synchronization points
//! ```
//!
//! This is state without sockets: a service takes the calling federate, and what has to be told to members goes to a
//! [`Post`]. A service that is refused has changed nothing.
//!
//! Routing looks nothing up by search: for each class there is its *audience*, kept while declarations change, so that
//! an update costs as much as it has receivers.

mod declaration;
mod interaction;
mod object;
mod sync;
#[cfg(test)]
mod tests;

use super::LinkId;
use crate::fed::ObjectModel;
use crate::handle::{
    AttributeHandle, FederateHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle,
};
use crate::wire::Callback;
use crate::{ExceptionKind, RtiException};
use object::Object;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use sync::SynchronizationPoint;

/// Takes messages for members.
pub trait Post {
    /// The same callback for each of the links.
    fn post(&mut self, to: &[LinkId], callback: Callback);
}

/// A federation execution.
pub struct Federation {
    model: ObjectModel,
    members: BTreeMap<FederateHandle, Member>,
    last_federate: u32,
    objects: BTreeMap<ObjectHandle, Object>,
    object_names: HashMap<String, ObjectHandle>,
    last_object: u32,
    /// Who hears of objects of each class, by the class's index.
    object_audience: Vec<Vec<ObjectListener>>,
    /// Who hears interactions of each class, by the class's index.
    interaction_audience: Vec<Vec<InteractionListener>>,
    points: BTreeMap<String, SynchronizationPoint>,
}

/// A federate that has joined.
struct Member {
    name: String,
    link: LinkId,
    published: HashMap<ObjectClassHandle, BTreeSet<AttributeHandle>>,
    subscribed: HashMap<ObjectClassHandle, BTreeSet<AttributeHandle>>,
    published_interactions: HashSet<InteractionClassHandle>,
    subscribed_interactions: HashSet<InteractionClassHandle>,
    /// Objects that it has registered.
    registered: BTreeSet<ObjectHandle>,
    /// Objects of others that it has discovered.
    discovered: HashSet<ObjectHandle>,
}

/// A subscriber of an object class, or of one above it.
struct ObjectListener {
    federate: FederateHandle,
    link: LinkId,
    /// The class it has subscribed to, as which it knows the object.
    class: ObjectClassHandle,
    attributes: BTreeSet<AttributeHandle>,
}

/// A subscriber of an interaction class, or of one above it.
struct InteractionListener {
    federate: FederateHandle,
    link: LinkId,
    /// The class it has subscribed to, as which it receives the interaction.
    class: InteractionClassHandle,
}

impl Federation {
    /// A federation without members.
    pub fn new(model: ObjectModel) -> Self {
        let (objects, interactions) = (&model.objects.classes, &model.interactions.classes);
        Self {
            object_audience: objects.iter().map(|_| Vec::new()).collect(),
            interaction_audience: interactions.iter().map(|_| Vec::new()).collect(),
            model,
            members: BTreeMap::new(),
            last_federate: 0,
            objects: BTreeMap::new(),
            object_names: HashMap::new(),
            last_object: 0,
            points: BTreeMap::new(),
        }
    }

    /// The object model.
    pub fn model(&self) -> &ObjectModel {
        &self.model
    }

    /// How many federates have joined.
    pub fn member_count(&self) -> usize {
        self.members.len()
    }

    /// joinFederationExecution.
    pub fn join(
        &mut self,
        name: &str,
        link: LinkId,
        post: &mut impl Post,
    ) -> Result<FederateHandle, RtiException> {
        if self.members.values().any(|m| m.name == name) {
            let reason = format!("a federate '{name}' has joined already");
            return Err(RtiException::new(
                ExceptionKind::FederateAlreadyExecutionMember,
                reason,
            ));
        }
        self.last_federate += 1;
        let federate = FederateHandle(self.last_federate);
        let member = Member {
            name: name.into(),
            link,
            published: HashMap::new(),
            subscribed: HashMap::new(),
            published_interactions: HashSet::new(),
            subscribed_interactions: HashSet::new(),
            registered: BTreeSet::new(),
            discovered: HashSet::new(),
        };
        self.members.insert(federate, member);
        self.points_for_newcomer(federate, post);
        Ok(federate)
    }

    /// resignFederationExecution, which deletes the federate's objects.
    pub fn resign(&mut self, federate: FederateHandle, post: &mut impl Post) {
        self.leave(federate, post);
    }

    /// A federate's connection is gone: it is resigned, and the others are told.
    pub fn lose(&mut self, federate: FederateHandle, reason: &str, post: &mut impl Post) {
        let Some(name) = self.leave(federate, post) else {
            return;
        };
        let lost = Callback::FederateLost {
            federate,
            name: name.into(),
            reason: reason.into(),
        };
        post.post(&self.links(), lost);
    }

    /// Takes the federate out of everything; its name, if it was a member.
    fn leave(&mut self, federate: FederateHandle, post: &mut impl Post) -> Option<String> {
        let member = self.members.remove(&federate)?;
        self.leave_audiences(federate);
        for object in member.registered {
            self.remove_object(object, &[], post);
        }
        self.points_without(federate, post);
        Some(member.name)
    }

    fn member(&mut self, federate: FederateHandle) -> Result<&mut Member, RtiException> {
        self.members.get_mut(&federate).ok_or_else(|| {
            let reason = format!("federate {federate} has not joined");
            RtiException::new(ExceptionKind::FederateNotExecutionMember, reason)
        })
    }

    /// Every member's link.
    fn links(&self) -> Vec<LinkId> {
        self.members.values().map(|m| m.link).collect()
    }
}
