//! The exceptions of HLA, as a closed list.

use std::fmt;

macro_rules! exceptions {
    ($($code:literal $name:ident $text:literal;)*) => {
        /// Which exception; the variant's name is the standard's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ExceptionKind {
            $(#[doc = $text] $name,)*
        }

        impl ExceptionKind {
            /// Every kind, for tests and tables.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The standard's name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// The number on the wire.
            pub fn code(self) -> u16 {
                match self { $(Self::$name => $code,)* }
            }

            /// The kind with that number on the wire.
            pub fn from_code(code: u16) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }
        }
    };
}

exceptions! {
    1 RTIinternalError "The connection or the RTI itself failed.";
    2 FederationExecutionAlreadyExists "There is a federation execution of that name.";
    3 FederationExecutionDoesNotExist "There is no federation execution of that name.";
    4 FederatesCurrentlyJoined "A federation execution with members cannot be destroyed.";
    5 FederateAlreadyExecutionMember "The federate, or one of its name, has joined already.";
    6 FederateNotExecutionMember "The service needs a federate that has joined.";
    7 CouldNotOpenFED "The FED file cannot be opened.";
    8 ErrorReadingFED "The FED file is malformed.";
    9 NameNotFound "The object model has nothing of that name.";
    10 ObjectClassNotDefined "There is no object class of that handle.";
    11 ObjectClassNotPublished "The federate does not publish the object class.";
    12 ObjectClassNotSubscribed "The federate does not subscribe to the object class.";
    13 AttributeNotDefined "The object class has no attribute of that handle.";
    14 AttributeNotOwned "The federate does not own the attribute.";
    15 ObjectAlreadyRegistered "There is an object of that name.";
    16 ObjectNotKnown "There is no object of that handle.";
    17 DeletePrivilegeNotHeld "Only who registered the object may delete it.";
    18 InteractionClassNotDefined "There is no interaction class of that handle.";
    19 InteractionClassNotPublished "The federate does not publish the interaction class.";
    20 InteractionClassNotSubscribed "The federate does not subscribe to the interaction class.";
    21 InteractionParameterNotDefined "The interaction class has no parameter of that handle.";
    22 SynchronizationPointLabelWasNotAnnounced "There is no synchronization point of that label.";
}

/// The longest reason, in characters.
const REASON: usize = 1000;

/// An exception with its reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtiException {
    /// Which exception.
    pub kind: ExceptionKind,
    /// What exactly, for people.
    pub reason: String,
}

impl RtiException {
    /// An exception of that kind for that reason, of which a hostile length is cut off.
    pub fn new(kind: ExceptionKind, reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        if let Some((end, _)) = reason.char_indices().nth(REASON) {
            reason.truncate(end);
        }
        Self { kind, reason }
    }

    /// `RTIinternalError`.
    pub fn internal(reason: impl Into<String>) -> Self {
        Self::new(ExceptionKind::RTIinternalError, reason)
    }
}

impl fmt::Display for RtiException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.reason)
    }
}

impl std::error::Error for RtiException {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_lead_back() {
        for &kind in ExceptionKind::ALL {
            assert_eq!(ExceptionKind::from_code(kind.code()), Some(kind));
        }
        assert_eq!(ExceptionKind::from_code(0), None);
    }
}
