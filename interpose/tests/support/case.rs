//! What the list in `conformance.rs` says about a case.

use super::process::Role;

/// How many processes the program is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Pair,
    OneProcess,
}

/// What is expected of the streams when both ends are accelerated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fast {
    /// At least one stream of each process has been fast.
    Yes,
    /// None may be.
    No,
    /// Either is right.
    Either,
}

pub struct Case {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) fast: Fast,
    /// Roles that end without a chance to write statistics (killed, `_exit`).
    pub(super) silent: &'static [Role],
    /// More compiler flags.
    pub(super) flags: &'static [&'static str],
    /// Seconds that one run may take.
    pub(super) limit: u32,
    /// Bytes that a bulk case moves natively and in mixtures of one end, and with both ends accelerated.
    pub(super) bytes: Option<(u64, u64)>,
    /// Force state changes about every so many calls, where nothing else is asked for.
    pub(super) chaos: Option<u32>,
}

impl Case {
    const fn new(name: &'static str, shape: Shape) -> Case {
        Case {
            name,
            shape,
            fast: Fast::Yes,
            silent: &[],
            flags: &[],
            limit: 30,
            bytes: None,
            chaos: None,
        }
    }

    /// A server and a client process.
    pub const fn pair(name: &'static str) -> Case {
        Case::new(name, Shape::Pair)
    }

    /// One process that is both ends.
    pub const fn one(name: &'static str) -> Case {
        Case::new(name, Shape::OneProcess)
    }

    /// No stream may become fast.
    pub const fn stays_plain(mut self) -> Case {
        self.fast = Fast::No;
        self
    }

    /// Whether streams become fast is the library's choice.
    pub const fn either(mut self) -> Case {
        self.fast = Fast::Either;
        self
    }

    /// The client ends without writing statistics.
    pub const fn silent_client(mut self) -> Case {
        self.silent = &[Role::Client];
        self
    }

    /// The server ends without writing statistics.
    pub const fn silent_server(mut self) -> Case {
        self.silent = &[Role::Server];
        self
    }

    /// Neither end writes statistics.
    pub const fn silent(mut self) -> Case {
        self.silent = &[Role::Server, Role::Client, Role::SelfContained];
        self
    }

    pub const fn flags(mut self, flags: &'static [&'static str]) -> Case {
        self.flags = flags;
        self
    }

    pub const fn limit(mut self, seconds: u32) -> Case {
        self.limit = seconds;
        self
    }

    /// MiB to move natively or with one end accelerated, and with both.
    pub const fn mib(mut self, plain: u64, both: u64) -> Case {
        self.bytes = Some((plain << 20, both << 20));
        self
    }

    pub const fn chaos(mut self, calls: u32) -> Case {
        self.chaos = Some(calls);
        self
    }
}
