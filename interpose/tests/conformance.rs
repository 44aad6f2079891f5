//! Plain socket programs, one behaviour each, run natively and in every mixture of accelerated ends. What a program
//! prints and how it ends natively is what it must print and how it must end in each of them.
//!
//! One case: `cargo test -p sidewire-interpose --test conformance flag_peek`. Settings, by environment:
//!
//! - `SIDEWIRE_TEST_MIXTURES=native,both,client,server`: only these;
//! - `SIDEWIRE_TEST_REPEAT=N`: each mixture so often (`native` counts as one only here);
//! - `SIDEWIRE_TEST_CHAOS=N`: state changes are forced about every N calls;
//! - `SIDEWIRE_TEST_BYTES=N`: how much the bulk cases move.
//!
//! `programs/program.h` says how a program is written. A new one needs a line here: `pair` for a server and a client
//! process, `one` for a process that is both, and what else is to be known about it.

mod support;

use support::Case;

macro_rules! cases {
    ($($name:ident: $shape:ident $(. $option:ident ($($argument:expr),*))*;)*) => {
        $(
            #[test]
            fn $name() {
                support::check(&Case::$shape(stringify!($name))$(.$option($($argument),*))*);
            }
        )*

        /// Nothing in `programs/` is left out.
        #[test]
        fn every_program_is_listed() {
            support::check_list(&[$(stringify!($name)),*]);
        }
    };
}

cases! {
    // Loading
    early_allocator: pair;
    thread_destructors: pair;
    first_call_race: pair;
    fortified: pair.flags(&["-D_FORTIFY_SOURCE=3"]);
    libc_aliases: pair;
    raw_syscalls: pair;
    stdio_stream: pair.either();
    stdio_reuse: pair;
    clean_environment: pair.stays_plain();
    limit_descriptors: pair.either();
    limit_memory: pair.either();
    seccomp_memfd: pair.either();
    no_proc: pair.either();

    // Descriptors
    dup_stream: pair;
    dup2_onto_stream: pair;
    close_all: pair;
    reuse_number: pair;
    short_connections: pair;
    late_accept: pair;

    // Readiness
    epoll_before_connect: pair;
    epoll_cutover: pair;
    epoll_level: pair;
    epoll_edge: pair;
    epoll_edge_back: pair;
    epoll_edge_partial: pair;
    epoll_edge_reused: pair;
    epoll_oneshot: pair;
    epoll_rdhup: pair;
    epoll_exclusive: pair.either();
    epoll_nested: pair;
    epoll_mod_del: pair;
    epoll_dup: pair;
    epoll_fairness: pair;
    epoll_other_reader: pair;
    epoll_threads: pair;
    epoll_given_back: pair;
    epoll_busy_handler: pair;
    epoll_mixed_waits: pair;
    slow_reader: pair;
    wait_forms: pair;

    // Signals and threads
    signal_recv: pair;
    signal_send: pair;
    signal_wait: pair.limit(60);
    signal_accept: pair;
    signal_mask: pair;
    signal_busy: pair;
    signal_jump: pair;
    signal_jump_busy: pair;
    signal_term: pair.silent_client();
    shutdown_wakes: pair;
    close_wakes_nobody: pair;
    close_reuse_blocked: pair;
    duplex: pair;
    many_writers: pair;
    killed_thread: pair;

    // Stream semantics
    half_close: pair;
    shut_rd: pair;
    shut_rdwr: pair;
    close_unread: pair;
    linger_zero: pair;
    close_full_window: pair;
    peer_ends: pair.silent_client().limit(60);
    killed_peer: pair;
    peer_stopped: pair;
    exit_while_closing: pair.silent_client().limit(60);
    both_send_first: pair;
    buffering_server: pair;
    one_process: one;
    bystanders: one;
    one_process_epoll: one;
    self_connect: one.stays_plain();
    nonblocking_connect: pair;
    connect_refused: pair;

    // Calls, flags and options
    flag_peek: pair;
    flag_waitall: pair;
    flag_dontwait: pair;
    flag_trunc: pair;
    flag_nosignal: pair.silent();
    flag_more: pair;
    iovecs: pair;
    zero_length: pair;
    bad_pointers: pair;
    sendfile: pair;
    splice: pair;
    mmsg: pair;
    positions: pair;
    time_limits: pair;
    rcvlowat: pair;
    fionread: pair;
    outq: pair;
    so_error: pair;
    small_sndbuf: pair;
    sigio: pair.either();

    // Sharing streams between processes, and what only the kernel can do
    dup2_while_blocked: pair;
    fork_shared: pair;
    killed_sharer: pair;
    prefork_server: pair;
    daemonise: pair.silent_server();
    exec_inherited: pair;
    fork_early: pair;
    pid_namespace: pair;
    exec_inetd: pair;
    seccomp_filter: pair;
    spawn_children: pair;
    spawn_given: pair;
    pass_stream: pair;
    given_unread: pair;
    background_save: pair;
    exit_in_thread: pair.silent_client().limit(60);
    reuseport_workers: pair.silent_server();
    urgent: pair.either();
    kernel_options: pair.either();
    control_data: pair.either();
    flags_all: pair.either().limit(60);
    options_kept: pair.limit(60);
    options_pinned: pair.either().limit(60);
    zerocopy: pair.either();

    // 1 GiB in random sizes, with state changes all along the way
    bulk_threads: pair.mib(24, 342).chaos(200).limit(180);
    bulk_epoll: pair.mib(24, 341).chaos(200).limit(180);
    bulk_poll: pair.mib(24, 341).chaos(200).limit(180);
}
