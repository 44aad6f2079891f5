//! What both recorders have in common: joining, meeting, and keeping what is called back.

use super::{FED, FEDERATION};
use crate::federate::{FederateAmbassador, RtiAmbassador};
use crate::handle::{
    AttributeHandle, FederateHandle, InteractionClassHandle, ObjectClassHandle, ObjectHandle,
    ParameterHandle,
};
use crate::wire::{AttributeValues, ParameterValues};
use crate::{ExceptionKind, RtiException};
use std::time::{Duration, Instant};

/// The synchronization point from which the game starts.
pub(super) const READY: &str = "ReadyToPlay";

/// For how long to wait for the other recorder to come.
const MEETING: Duration = Duration::from_secs(60);

/// For how long to wait for its answer within the game.
const ROUND: Duration = Duration::from_secs(30);

/// What the RTI has told.
#[derive(Default)]
pub(super) struct Heard {
    /// The other recorder's object.
    pub(super) other: Option<ObjectHandle>,
    /// How many of its updates have come.
    pub(super) reflected: u64,
    /// The payload of the last.
    pub(super) payload: Vec<u8>,
    pub(super) announced: bool,
    pub(super) synchronized: bool,
    /// The interaction that ends the game, with the number of rounds that were played.
    pub(super) game_over: Option<u64>,
    lost: Option<String>,
}

impl FederateAmbassador for Heard {
    fn discover_object_instance(&mut self, object: ObjectHandle, _: ObjectClassHandle, _: &str) {
        self.other = Some(object);
    }

    fn reflect_attribute_values(&mut self, _: ObjectHandle, values: &AttributeValues, _: &[u8]) {
        if let Some((_, payload)) = values.first() {
            self.reflected += 1;
            self.payload.clear();
            self.payload.extend_from_slice(payload);
        }
    }

    fn receive_interaction(
        &mut self,
        _: InteractionClassHandle,
        values: &ParameterValues,
        _: &[u8],
    ) {
        let rounds = values.first().and_then(|(_, v)| v.first_chunk());
        self.game_over = rounds.map(|b| u64::from_le_bytes(*b));
    }

    fn announce_synchronization_point(&mut self, label: &str, _: &[u8]) {
        self.announced |= label == READY;
    }

    fn federation_synchronized(&mut self, label: &str) {
        self.synchronized |= label == READY;
    }

    fn federate_lost(&mut self, _: FederateHandle, name: &str, reason: &str) {
        self.lost = Some(format!("recorder {name} is lost: {reason}"));
    }
}

/// A recorder that has joined and met the other.
pub(super) struct Player {
    pub(super) rti: RtiAmbassador,
    pub(super) heard: Heard,
    pub(super) game_over: InteractionClassHandle,
    pub(super) rounds: ParameterHandle,
    object: ObjectHandle,
    message: AttributeHandle,
}

impl Player {
    /// Joins, declares, registers its object and waits until the other's is discovered. As each subscribes before it
    /// registers, both then hear each other.
    pub(super) fn join(address: &str, name: &str) -> Result<Self, RtiException> {
        let mut rti = RtiAmbassador::connect(address)?;
        match rti.create_federation_execution_from(FEDERATION, FED) {
            Err(e) if e.kind == ExceptionKind::FederationExecutionAlreadyExists => {}
            other => other?,
        }
        rti.join_federation_execution(name, FEDERATION)?;
        let class = rti.get_object_class_handle("Recorder")?;
        let message = rti.get_attribute_handle(class, "Message")?;
        let game_over = rti.get_interaction_class_handle("GameOver")?;
        let rounds = rti.get_parameter_handle(game_over, "Rounds")?;
        rti.publish_interaction_class(game_over)?;
        rti.subscribe_interaction_class(game_over)?;
        rti.publish_object_class_attributes(class, &[message])?;
        rti.subscribe_object_class_attributes(class, &[message])?;
        let object = rti.register_object_instance(class, name)?;
        let mut player = Self {
            rti,
            heard: Heard::default(),
            game_over,
            rounds,
            object,
            message,
        };
        player.until(MEETING, "the other recorder", |h| h.other.is_some())?;
        Ok(player)
    }

    /// Waits for the start, once the point is registered by either.
    pub(super) fn start(&mut self) -> Result<(), RtiException> {
        self.until(MEETING, READY, |h| h.announced)?;
        self.rti.synchronization_point_achieved(READY)?;
        self.until(MEETING, "the start", |h| h.synchronized)
    }

    /// Updates the own object.
    pub(super) fn update(&mut self, payload: &[u8]) -> Result<(), RtiException> {
        let values = [(self.message, payload)];
        self.rti.update_attribute_values(self.object, &values, b"")
    }

    /// Waits for the other's next move.
    pub(super) fn next(&mut self, happened: impl Fn(&Heard) -> bool) -> Result<(), RtiException> {
        self.until(ROUND, "the other's answer", happened)
    }

    /// Takes callbacks until it has happened.
    fn until(
        &mut self,
        limit: Duration,
        what: &str,
        happened: impl Fn(&Heard) -> bool,
    ) -> Result<(), RtiException> {
        let mut start = None;
        while !happened(&self.heard) {
            if let Some(lost) = &self.heard.lost {
                return Err(RtiException::internal(lost.clone()));
            }
            // Mostly the first callback is the one; the clock is looked at for the others.
            if !self.rti.evoke_callback(limit, &mut self.heard)?
                || start.get_or_insert_with(Instant::now).elapsed() > limit
            {
                return Err(RtiException::internal(format!("{what} never came")));
            }
        }
        Ok(())
    }

    /// Resigns, and takes the federation away if the other has left already.
    pub(super) fn leave(mut self) -> Result<(), RtiException> {
        self.rti.resign_federation_execution()?;
        match self.rti.destroy_federation_execution(FEDERATION) {
            Err(e) if e.kind == ExceptionKind::FederatesCurrentlyJoined => Ok(()),
            Err(e) if e.kind == ExceptionKind::FederationExecutionDoesNotExist => Ok(()),
            other => other,
        }
    }
}
