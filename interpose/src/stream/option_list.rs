//! What becomes of each socket option on a Fast stream: socket(7), tcp(7), ip(7), ipv6(7).
//!
//! This list decides ([`super::options`]), and `docs/options.md` is written from it.

use core::ffi::c_int;
use rdma_engine::abi::reason::Reason;

/// What becomes of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The kernel's, with all of its effect on the TCP connection; the wire needs none.
    Kernel,
    /// The wire does the same.
    Emulated,
    /// Whoever uses it pins the stream. It cannot be asked for, or not as a number.
    Always(Reason),
    /// The stream is pinned if the value is none of these.
    Unless(&'static [c_int], Reason),
}

/// One option.
#[derive(Debug)]
pub struct Entry {
    pub level: c_int,
    pub number: c_int,
    /// As in the manual page, or in the kernel's headers.
    #[cfg_attr(not(test), allow(dead_code))]
    pub name: &'static str,
    pub fate: Fate,
    /// How it is emulated, why it pins, what it concerns; empty if it only tells something.
    #[cfg_attr(not(test), allow(dead_code))]
    pub note: &'static str,
}

macro_rules! options {
    ($list:ident, $level:expr; $($number:literal $name:ident: $fate:expr, $note:literal;)*) => {
        /// The options of one level, by number.
        pub static $list: &[Entry] = &[$(Entry {
            level: $level,
            number: $number,
            name: stringify!($name),
            fate: $fate,
            note: $note,
        }),*];
    };
}

use Fate::{Always, Emulated, Kernel, Unless};

options! { SOCKET, libc::SOL_SOCKET;
    1 SO_DEBUG: Kernel, "";
    2 SO_REUSEADDR: Kernel, "concerns bind(2)";
    3 SO_TYPE: Kernel, "";
    4 SO_ERROR: Emulated, "the kernel's, and once the reset that stands for a close with unread bytes";
    5 SO_DONTROUTE: Kernel, "concerns packets";
    6 SO_BROADCAST: Kernel, "means nothing to TCP";
    7 SO_SNDBUF: Emulated, "bounds the bytes in flight";
    8 SO_RCVBUF: Emulated, "bounds the bytes in flight";
    9 SO_KEEPALIVE: Kernel, "the idle connection is kept alive and watched";
    10 SO_OOBINLINE: Unless(&[0], KERNEL), "urgent bytes would stand among those of the ring";
    11 SO_NO_CHECK: Kernel, "means nothing to TCP";
    12 SO_PRIORITY: Kernel, "concerns packets";
    13 SO_LINGER: Emulated, "the kernel's; with unread bytes in the ring a close resets";
    14 SO_BSDCOMPAT: Kernel, "means nothing";
    15 SO_REUSEPORT: Kernel, "concerns bind(2)";
    16 SO_PASSCRED: Kernel, "means nothing to TCP";
    17 SO_PEERCRED: Kernel, "";
    18 SO_RCVLOWAT: Unless(&[0, 1], KERNEL), "the kernel alone counts what it holds back";
    19 SO_SNDLOWAT: Kernel, "cannot be changed";
    20 SO_RCVTIMEO: Emulated, "asked of the kernel before a wait";
    21 SO_SNDTIMEO: Emulated, "asked of the kernel before a wait";
    22 SO_SECURITY_AUTHENTICATION: Kernel, "unknown to the kernel";
    23 SO_SECURITY_ENCRYPTION_TRANSPORT: Kernel, "unknown to the kernel";
    24 SO_SECURITY_ENCRYPTION_NETWORK: Kernel, "unknown to the kernel";
    25 SO_BINDTODEVICE: Kernel, "concerns routes";
    26 SO_ATTACH_FILTER: Always(KERNEL), "a filter looks at packets";
    27 SO_DETACH_FILTER: Kernel, "the stream stays pinned";
    28 SO_PEERNAME: Kernel, "";
    29 SO_TIMESTAMP: Unless(&[0], KERNEL), "times of arrival, as control data";
    30 SO_ACCEPTCONN: Kernel, "";
    31 SO_PEERSEC: Kernel, "";
    32 SO_SNDBUFFORCE: Emulated, "as SO_SNDBUF";
    33 SO_RCVBUFFORCE: Emulated, "as SO_RCVBUF";
    34 SO_PASSSEC: Kernel, "means nothing to TCP";
    35 SO_TIMESTAMPNS: Unless(&[0], KERNEL), "times of arrival, as control data";
    36 SO_MARK: Kernel, "concerns packets";
    37 SO_TIMESTAMPING: Unless(&[0], KERNEL), "times of packets, on the error queue";
    38 SO_PROTOCOL: Kernel, "";
    39 SO_DOMAIN: Kernel, "";
    40 SO_RXQ_OVFL: Kernel, "means nothing to TCP";
    41 SO_WIFI_STATUS: Kernel, "means nothing to TCP";
    42 SO_PEEK_OFF: Unless(&[-1], KERNEL), "each look moves a place that the kernel keeps; what the ring still holds is looked at from its beginning";
    43 SO_NOFCS: Kernel, "concerns packets";
    44 SO_LOCK_FILTER: Kernel, "a filter pins by itself";
    45 SO_SELECT_ERR_QUEUE: Kernel, "the error queue is TCP's";
    46 SO_BUSY_POLL: Kernel, "concerns devices";
    47 SO_MAX_PACING_RATE: Unless(&[-1], KERNEL), "the wire would pass the rate by";
    48 SO_BPF_EXTENSIONS: Kernel, "";
    49 SO_INCOMING_CPU: Kernel, "concerns packets";
    50 SO_ATTACH_BPF: Always(KERNEL), "a filter looks at packets";
    51 SO_ATTACH_REUSEPORT_CBPF: Always(KERNEL), "a program looks at packets";
    52 SO_ATTACH_REUSEPORT_EBPF: Always(KERNEL), "a program looks at packets";
    53 SO_CNX_ADVICE: Kernel, "concerns routes";
    54 SCM_TIMESTAMPING_OPT_STATS: Kernel, "no option: names control data";
    55 SO_MEMINFO: Kernel, "TCP's own memory";
    56 SO_INCOMING_NAPI_ID: Kernel, "concerns packets";
    57 SO_COOKIE: Kernel, "";
    58 SCM_TIMESTAMPING_PKTINFO: Kernel, "no option: names control data";
    59 SO_PEERGROUPS: Kernel, "";
    60 SO_ZEROCOPY: Unless(&[0], Reason::ZeroCopy), "completions come on the error queue";
    61 SO_TXTIME: Always(KERNEL), "times of sending, as control data";
    62 SO_BINDTOIFINDEX: Kernel, "concerns routes";
    63 SO_TIMESTAMP_NEW: Unless(&[0], KERNEL), "times of arrival, as control data";
    64 SO_TIMESTAMPNS_NEW: Unless(&[0], KERNEL), "times of arrival, as control data";
    65 SO_TIMESTAMPING_NEW: Unless(&[0], KERNEL), "times of packets, on the error queue";
    66 SO_RCVTIMEO_NEW: Emulated, "as SO_RCVTIMEO";
    67 SO_SNDTIMEO_NEW: Emulated, "as SO_SNDTIMEO";
    68 SO_DETACH_REUSEPORT_BPF: Kernel, "the stream stays pinned";
    69 SO_PREFER_BUSY_POLL: Kernel, "concerns devices";
    70 SO_BUSY_POLL_BUDGET: Kernel, "concerns devices";
    71 SO_NETNS_COOKIE: Kernel, "";
    72 SO_BUF_LOCK: Kernel, "concerns the sizes that SO_SNDBUF and SO_RCVBUF show";
    73 SO_RESERVE_MEM: Kernel, "TCP's own memory";
    74 SO_TXREHASH: Kernel, "concerns routes";
    75 SO_RCVMARK: Kernel, "means nothing to TCP";
    76 SO_PASSPIDFD: Kernel, "means nothing to TCP";
    77 SO_PEERPIDFD: Kernel, "";
    78 SO_DEVMEM_LINEAR: Kernel, "no option: names control data";
    79 SO_DEVMEM_DMABUF: Kernel, "no option: names control data";
    80 SO_DEVMEM_DONTNEED: Kernel, "concerns devices";
    82 SO_RCVPRIORITY: Kernel, "means nothing to TCP";
    83 SO_PASSRIGHTS: Kernel, "means nothing to TCP";
}

options! { TCP, libc::IPPROTO_TCP;
    1 TCP_NODELAY: Emulated, "the wire holds nothing back";
    2 TCP_MAXSEG: Kernel, "concerns packets";
    3 TCP_CORK: Emulated, "the wire holds nothing back";
    4 TCP_KEEPIDLE: Kernel, "as SO_KEEPALIVE";
    5 TCP_KEEPINTVL: Kernel, "as SO_KEEPALIVE";
    6 TCP_KEEPCNT: Kernel, "as SO_KEEPALIVE";
    7 TCP_SYNCNT: Kernel, "concerns connect(2)";
    8 TCP_LINGER2: Kernel, "concerns what follows close(2)";
    9 TCP_DEFER_ACCEPT: Kernel, "concerns accept(2)";
    10 TCP_WINDOW_CLAMP: Kernel, "bounds TCP's own window; the wire's bound is SO_RCVBUF";
    11 TCP_INFO: Kernel, "counts what went by TCP";
    12 TCP_QUICKACK: Kernel, "concerns packets";
    13 TCP_CONGESTION: Kernel, "concerns packets";
    14 TCP_MD5SIG: Always(KERNEL), "signs packets";
    16 TCP_THIN_LINEAR_TIMEOUTS: Kernel, "concerns packets";
    17 TCP_THIN_DUPACK: Kernel, "concerns packets";
    18 TCP_USER_TIMEOUT: Kernel, "watches what went by TCP; who doesn't read from the wire is not taken for dead";
    19 TCP_REPAIR: Unless(&[0], KERNEL), "sets the connection's state";
    20 TCP_REPAIR_QUEUE: Kernel, "only with TCP_REPAIR";
    21 TCP_QUEUE_SEQ: Kernel, "only with TCP_REPAIR";
    22 TCP_REPAIR_OPTIONS: Kernel, "only with TCP_REPAIR";
    23 TCP_FASTOPEN: Kernel, "concerns accept(2)";
    24 TCP_TIMESTAMP: Kernel, "concerns packets";
    25 TCP_NOTSENT_LOWAT: Kernel, "on the wire all is sent; its bound is SO_SNDBUF";
    26 TCP_CC_INFO: Kernel, "counts what went by TCP";
    27 TCP_SAVE_SYN: Kernel, "concerns accept(2)";
    28 TCP_SAVED_SYN: Kernel, "";
    29 TCP_REPAIR_WINDOW: Kernel, "only with TCP_REPAIR";
    30 TCP_FASTOPEN_CONNECT: Unless(&[0], KERNEL), "data in the SYN shifts the kernel's counts";
    31 TCP_ULP: Unless(&[0], Reason::Ulp), "the kernel wants to see every byte";
    32 TCP_MD5SIG_EXT: Always(KERNEL), "signs packets";
    33 TCP_FASTOPEN_KEY: Kernel, "concerns accept(2)";
    34 TCP_FASTOPEN_NO_COOKIE: Kernel, "concerns accept(2)";
    35 TCP_ZEROCOPY_RECEIVE: Always(KERNEL), "asked for with getsockopt(2), it reads; what the ring holds is left to recv(2)";
    36 TCP_INQ: Unless(&[0], KERNEL), "what is in the queue, as control data";
    37 TCP_TX_DELAY: Unless(&[0], KERNEL), "the wire would not wait";
    38 TCP_AO_ADD_KEY: Always(KERNEL), "signs packets";
    39 TCP_AO_DEL_KEY: Kernel, "the stream stays pinned";
    40 TCP_AO_INFO: Always(KERNEL), "signs packets";
    41 TCP_AO_GET_KEYS: Kernel, "";
    42 TCP_AO_REPAIR: Kernel, "only with TCP_REPAIR";
    43 TCP_IS_MPTCP: Kernel, "an MPTCP stream is not offered";
    44 TCP_RTO_MAX_MS: Kernel, "concerns packets";
    45 TCP_RTO_MIN_US: Kernel, "concerns packets";
    46 TCP_DELACK_MAX_US: Kernel, "concerns packets";
}

const KERNEL: Reason = Reason::KernelOption;

/// What becomes of an option; `None` for one that nobody here has heard of.
pub fn fate(level: c_int, number: c_int) -> Option<Fate> {
    let list = match level {
        libc::SOL_SOCKET => SOCKET,
        libc::IPPROTO_TCP => TCP,
        // Addresses, routes, packets, and control data of datagrams.
        libc::IPPROTO_IP | libc::IPPROTO_IPV6 => return Some(Kernel),
        _ => return None,
    };
    let at = list.binary_search_by_key(&number, |entry| entry.number);
    at.ok().map(|at| list[at].fate)
}
