//! Synchronization points.
//!
//! ```text
//!   register ──▶ announced to all ──▶ each says achieved ──▶ federationSynchronized to all
//!                     ▲                     ▲
//!                who joins now        who leaves is waited for no longer
//! ```

use super::{Federation, Post};
use crate::handle::FederateHandle;
use crate::wire::Callback;
use crate::{ExceptionKind, RtiException};
use std::collections::BTreeSet;

/// A point that has been announced and not been reached by all.
pub(super) struct SynchronizationPoint {
    tag: Vec<u8>,
    awaited: BTreeSet<FederateHandle>,
}

impl Federation {
    /// registerFederationSynchronizationPoint. Whether it went well the registrar learns by callback.
    pub fn register_point(
        &mut self,
        federate: FederateHandle,
        label: &str,
        tag: &[u8],
        post: &mut impl Post,
    ) -> Result<(), RtiException> {
        let link = self.member(federate)?.link;
        let text = label.into();
        if self.points.contains_key(label) {
            let failed = Callback::SynchronizationPointRegistrationFailed { label: text };
            post.post(&[link], failed);
            return Ok(());
        }
        let succeeded = Callback::SynchronizationPointRegistrationSucceeded { label: text };
        post.post(&[link], succeeded);
        let announcement = announcement(label, tag);
        post.post(&self.links(), announcement);
        let point = SynchronizationPoint {
            tag: tag.into(),
            awaited: self.members.keys().copied().collect(),
        };
        self.points.insert(label.into(), point);
        Ok(())
    }

    /// synchronizationPointAchieved.
    pub fn achieve_point(
        &mut self,
        federate: FederateHandle,
        label: &str,
        post: &mut impl Post,
    ) -> Result<(), RtiException> {
        let point = self.points.get_mut(label);
        if !point.is_some_and(|p| p.awaited.remove(&federate)) {
            let reason = format!("'{label}' is not awaited from federate {federate}");
            let kind = ExceptionKind::SynchronizationPointLabelWasNotAnnounced;
            return Err(RtiException::new(kind, reason));
        }
        self.complete_points(post);
        Ok(())
    }

    /// Who joins while points are pending has to reach them too.
    pub(super) fn points_for_newcomer(&mut self, federate: FederateHandle, post: &mut impl Post) {
        let link = self.members[&federate].link;
        for (label, point) in &mut self.points {
            point.awaited.insert(federate);
            post.post(&[link], announcement(label, &point.tag));
        }
    }

    /// Who has left is waited for no longer.
    pub(super) fn points_without(&mut self, federate: FederateHandle, post: &mut impl Post) {
        for point in self.points.values_mut() {
            point.awaited.remove(&federate);
        }
        self.complete_points(post);
    }

    fn complete_points(&mut self, post: &mut impl Post) {
        let links = self.links();
        self.points.retain(|label, point| {
            let reached = point.awaited.is_empty();
            if reached && !links.is_empty() {
                let label = label.as_str().into();
                post.post(&links, Callback::FederationSynchronized { label });
            }
            !reached
        });
    }
}

fn announcement<'a>(label: &'a str, tag: &'a [u8]) -> Callback<'a> {
    let (label, tag) = (label.into(), tag.into());
    Callback::AnnounceSynchronizationPoint { label, tag }
}
