//! What the built library defines for other programs, and what it needs of them.
//!
//! Every symbol here stands in for libc's in each program that loads the library: one too few is a call that goes by
//! unseen, one too many takes a name away from somebody.

use object::read::elf::{Dyn, ElfFile64, FileHeader};
use object::{elf, LittleEndian, Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Names by which real programs (some thousand ELF files of a Debian system) reach sockets and descriptors.
const IMPORTED: &[&str] = &[
    // lifecycle
    "socket socketpair bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt",
    "close close_range closefrom dup dup2 dup3 fcntl fcntl64 ioctl sockatmark",
    // data
    "read readv recv recvfrom recvmsg recvmmsg write writev send sendto sendmsg sendmmsg",
    "sendfile sendfile64 splice vmsplice tee copy_file_range",
    "pread pread64 pwrite pwrite64 preadv preadv64 pwritev pwritev64 preadv2 preadv64v2 pwritev2 pwritev64v2",
    "__read_chk __recv_chk __recvfrom_chk __poll_chk __ppoll_chk __pread_chk __pread64_chk",
    // readiness
    "poll ppoll select pselect epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2",
    // processes
    "syscall fork vfork _Fork posix_spawn posix_spawnp execve execv execvp execvpe fexecve execveat",
    "execl execlp execle daemon system popen forkpty",
    // stdio
    "fdopen fclose freopen freopen64 dprintf vdprintf",
    // aliases
    "__read __write __close __connect __send __poll __select __fcntl __dup2 __fork",
    // makers of descriptors
    "open open64 openat openat64 creat creat64 pipe pipe2 eventfd signalfd timerfd_create memfd_create",
    "inotify_init inotify_init1",
];

/// Imported names that need no hook, each with the reason.
const NOT_HOOKED: &[(&str, &str)] = &[
    ("vmsplice pread pread64 pwrite pwrite64 preadv preadv64 pwritev pwritev64 __pread_chk __pread64_chk",
     "fail on a socket (EBADF, ESPIPE), whatever wire it is on"),
    ("tee", "works between pipes only (EINVAL)"),
    ("copy_file_range", "works between files only (EINVAL)"),
    ("vfork", "returns twice from one frame, which a wrapper would have left; the child is known by its process id, \
      and its calls of dup2 and exec are hooked"),
];

/// Names that are hooked beyond that list, each with the reason.
const OTHERS: &[(&str, &str)] = &[
    (
        "sigaction signal bsd_signal ssignal sysv_signal __sysv_signal siginterrupt",
        "EINTR or restart: which handlers ran while we waited",
    ),
    (
        "pthread_cancel",
        "calls that are served in memory have to be cancellation points from then on",
    ),
    ("prctl", "a seccomp filter confines the process"),
    (
        "posix_spawn_file_actions_adddup2",
        "names a stream that the child is to have",
    ),
    ("__dprintf_chk __vdprintf_chk", "fortified dprintf"),
    (
        "__open_2 __open64_2 __openat_2 __openat64_2",
        "fortified open",
    ),
    (
        "mkstemp mkstemp64 mkostemp mkostemp64 posix_openpt shm_open pidfd_open",
        "make descriptors, too: a number that a close nobody saw has left behind is stale",
    ),
    ("SIDEWIRE_ABI_VERSION", "what the launcher reads"),
];

/// Libraries that every process on glibc has, or can get.
const NEEDED: &[&str] = &[
    "libc.so.6",
    // glibc's own loader, for thread-local storage.
    "ld-linux-x86-64.so.2",
    // The unwinder: a cancelled thread is unwound through our frames. libc6 depends on its package, and glibc itself
    // loads it for pthread_cancel(3).
    "libgcc_s.so.1",
];

fn words<'a>(lists: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    lists.into_iter().flat_map(str::split_whitespace).collect()
}

fn library() -> Vec<u8> {
    let test = std::env::current_exe().expect("the test knows where it is");
    let profile = test.parent().and_then(|deps| deps.parent());
    let path: PathBuf = profile
        .expect("target/PROFILE/deps/TEST")
        .join("libsidewire.so");
    std::fs::read(&path)
        .unwrap_or_else(|why| panic!("{}: {why}: build the workspace first", path.display()))
}

#[test]
fn exports_are_the_hooks_and_nothing_else() {
    let data = library();
    let file = ElfFile64::<LittleEndian>::parse(&*data).expect("an ELF file");
    let exported: BTreeSet<&str> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.is_global())
        .map(|symbol| symbol.name().expect("a name"))
        .collect();
    let imported = words(IMPORTED.iter().copied());
    let not_hooked = words(NOT_HOOKED.iter().map(|entry| entry.0));
    let others = words(OTHERS.iter().map(|entry| entry.0));
    let wanted: BTreeSet<_> = imported
        .difference(&not_hooked)
        .chain(&others)
        .copied()
        .collect();
    let missing: Vec<_> = wanted.difference(&exported).collect();
    let surplus: Vec<_> = exported.difference(&wanted).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "not exported: {missing:?}; exported without a line here: {surplus:?}"
    );
    let unknown: Vec<_> = not_hooked.difference(&imported).collect();
    assert!(unknown.is_empty(), "exceptions from nothing: {unknown:?}");
}

#[test]
fn needs_nothing_but_libc_and_its_unwinder() {
    let data = library();
    let header = elf::FileHeader64::<LittleEndian>::parse(&*data).expect("an ELF file");
    let endian = header.endian().expect("an order of bytes");
    let sections = header.sections(endian, &*data).expect("sections");
    let (entries, link) = sections
        .dynamic(endian, &*data)
        .expect("a readable dynamic section")
        .expect("a dynamic section");
    let strings = sections.strings(endian, &*data, link).expect("its strings");
    let needed: Vec<String> = entries
        .iter()
        .filter(|entry| entry.tag(endian) == elf::DT_NEEDED)
        .map(|entry| entry.string(endian, strings).expect("a name"))
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    assert!(needed.iter().any(|name| name == "libc.so.6"), "{needed:?}");
    let surplus: Vec<_> = needed
        .iter()
        .filter(|name| !NEEDED.contains(&name.as_str()))
        .collect();
    assert!(
        surplus.is_empty(),
        "a program without these would not start: {surplus:?}"
    );
}
