//! The closed list of reasons why a stream is not Fast.
//!
//! Every stream that is not Fast has exactly one; `sidewire ps`, `--stats` and
//! `--require` show its text. A user's first question is «why isn't it faster?».

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Why a stream is not Fast. Codes are part of the shared layout.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum Reason { $($(#[$doc])* $name = $code,)* }

        impl Reason {
            /// All reasons, in the order of their codes.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The reason of this code; [`Reason::Unknown`] for a strange one.
            pub fn from_code(code: u32) -> Reason {
                match code { $($code => Reason::$name,)* _ => Reason::Unknown }
            }

            /// What a user reads.
            pub fn text(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// Both directions are Fast, or will be at the next message.
    None = 0, "fast";
    /// Too few messages or bytes so far to be worth an offer.
    Cold = 1, "cold: too few messages so far";
    /// The other end did not answer the offer.
    NoPeer = 2, "peer does not run Sidewire";
    /// An offer is under way.
    Offered = 3, "offered, waiting for the peer";
    /// Both ends are attached; the receiver has not promised yet.
    Attached = 4, "attached, waiting for a quiet moment";
    /// A policy rule or `--transport tcp` keeps the stream on TCP.
    Policy = 5, "policy: tcp";
    /// The peer's user is another one.
    Owner = 6, "refused: owner differs";
    /// The other socket is not the one that the peer holds.
    Identity = 7, "refused: the peer does not hold the other end of this connection";
    /// The connection is translated (NAT), so equal addresses prove nothing.
    Nat = 8, "refused: address translation between the ends";
    /// A socket connected to itself.
    SelfConnect = 9, "refused: connected to itself";
    /// Not plain TCP (MPTCP).
    Protocol = 10, "refused: not plain TCP";
    /// Different network namespaces.
    Namespace = 11, "refused: different network namespaces";
    /// The peer's library has another version.
    Version = 12, "refused: peer has another version";
    /// A check that the kernel is too old (or too restricted) for.
    Kernel = 13, "refused: the kernel lacks a needed check";
    /// Memory, descriptors or mappings are short.
    Resources = 14, "no resources: memory, descriptors or mappings";
    /// Another process may hold the same end.
    SharedEnd = 15, "another process shares this end";
    /// The stream is used through stdio (fdopen), which no hook sees.
    Stdio = 16, "pinned: stdio on the socket";
    /// Urgent (out-of-band) data.
    Urgent = 17, "pinned: urgent data";
    /// Kernel TLS or another upper-layer protocol.
    Ulp = 18, "pinned: TCP_ULP";
    /// SO_ZEROCOPY or MSG_ZEROCOPY.
    ZeroCopy = 19, "pinned: MSG_ZEROCOPY";
    /// Signal-driven I/O.
    Sigio = 20, "pinned: O_ASYNC";
    /// Time stamping, filters, repair and other kernel-only options.
    KernelOption = 21, "pinned: an option that only the kernel can honour";
    /// An EXCLUSIVE epoll registration, or an inherited epoll set.
    Epoll = 22, "pinned: epoll registration that cannot be taken over";
    /// Passed to another process with SCM_RIGHTS.
    Passed = 23, "pinned: passed to another process or program";
    /// io_uring.
    IoUring = 24, "pinned: io_uring";
    /// The peer broke the protocol of the wire; the stream was reset.
    Broken = 26, "peer broke the protocol of the wire";
    /// Seen for the first time in mid-life, with no record from an ancestor.
    Adopted = 27, "adopted: nobody knows who else holds this end";
    /// The connection has ended, or is ending.
    Ended = 28, "the connection is at its end";
    /// A forced cut-back (tests).
    Forced = 29, "cut back on request";
    /// The process is confined by a seccomp filter of its own.
    Seccomp = 30, "pinned: seccomp filter";
    /// No socket of this network namespace is the other end.
    Remote = 31, "peer is on another host, or in another network namespace";
    /// The program that held it has become another one.
    Exec = 32, "left the wire for an exec";
    /// A code that this version does not know.
    Unknown = 255, "unknown";
}
