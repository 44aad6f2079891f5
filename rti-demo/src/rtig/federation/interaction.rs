//! Interactions: sent once, received by all who subscribe to the class or to one above it.

use super::{Federation, Post};
use crate::handle::{FederateHandle, InteractionClassHandle, ParameterHandle};
use crate::rtig::LinkId;
use crate::wire::{Bytes, Callback, ParameterValues};
use crate::{ExceptionKind, RtiException};
use std::borrow::Cow;
use std::collections::BTreeMap;

impl Federation {
    /// sendInteraction. A receiver gets it as the class that it has subscribed to, with the parameters of that class.
    pub fn send_interaction(
        &mut self,
        federate: FederateHandle,
        class: InteractionClassHandle,
        values: ParameterValues,
        tag: Bytes,
        post: &mut impl Post,
    ) -> Result<(), RtiException> {
        let index = self.interaction_class_index(class)?;
        let published = &self.member(federate)?.published_interactions;
        if !published.contains(&class) {
            let reason = format!("interaction class {class} is not published");
            return Err(RtiException::new(
                ExceptionKind::InteractionClassNotPublished,
                reason,
            ));
        }
        let tree = &self.model.interactions;
        if let Some((parameter, _)) = values.iter().find(|(p, _)| !tree.has(index, p.0)) {
            return Err(not_defined(class, *parameter));
        }
        // One message for all who receive it as the same class.
        let mut receivers: BTreeMap<InteractionClassHandle, Vec<LinkId>> = BTreeMap::new();
        for listener in &self.interaction_audience[index] {
            if listener.federate != federate {
                let links = receivers.entry(listener.class).or_default();
                links.push(listener.link);
            }
        }
        for (class, links) in receivers {
            let heard = self.interaction_class_index(class)?;
            let values = values
                .iter()
                .filter(|(p, _)| self.model.interactions.has(heard, p.0))
                .map(|(p, value)| (*p, Cow::Borrowed(&**value)))
                .collect();
            let tag = Cow::Borrowed(&*tag);
            let interaction = Callback::ReceiveInteraction { class, values, tag };
            post.post(&links, interaction);
        }
        Ok(())
    }
}

fn not_defined(class: InteractionClassHandle, parameter: ParameterHandle) -> RtiException {
    let reason = format!("interaction class {class} has no parameter {parameter}");
    RtiException::new(ExceptionKind::InteractionParameterNotDefined, reason)
}
