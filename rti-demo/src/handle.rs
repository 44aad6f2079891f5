//! Handles: the small numbers that stand for names on the wire.

use std::fmt;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    )*};
}

handles! {
    /// A member of a federation.
    FederateHandle;
    /// A class of objects in the object model.
    ObjectClassHandle;
    /// An attribute; the same number in the class that declares it and in all that inherit it.
    AttributeHandle;
    /// An object that a federate has registered.
    ObjectHandle;
    /// A class of interactions in the object model.
    InteractionClassHandle;
    /// A parameter; the same number in the class that declares it and in all that inherit it.
    ParameterHandle;
}
