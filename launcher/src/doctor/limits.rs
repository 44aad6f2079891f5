//! Limits and settings that decide how many streams can be accelerated, and
//! what plain TCP would do.

use super::Finding;
use std::fs;

/// Below this many descriptors the library leaves streams on TCP soon: each one
/// takes two.
const FEW_DESCRIPTORS: u64 = 1024;
/// Each stream is one mapping; the kernel's default is 65530.
const FEW_MAPPINGS: u64 = 65530;

/// Looks at all of them.
pub fn findings() -> Vec<Finding> {
    let mut list = vec![descriptors()];
    list.extend(mappings());
    list.extend(address_space());
    list.extend(congestion());
    list
}

/// The soft limit; `None` is unlimited.
fn limit(which: libc::__rlimit_resource_t) -> Option<u64> {
    // SAFETY: getrlimit(2) fills a plain C struct.
    let limit = unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(which, &mut limit);
        limit.rlim_cur
    };
    (limit != libc::RLIM_INFINITY).then_some(limit)
}

fn descriptors() -> Finding {
    match limit(libc::RLIMIT_NOFILE) {
        Some(n) if n < FEW_DESCRIPTORS => Finding::note(format!(
            "{n} open files allowed (ulimit -n): few streams can be accelerated at once"
        )),
        Some(n) => Finding::good(format!("{n} open files allowed")),
        None => Finding::good("any number of open files allowed"),
    }
}

fn setting(path: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/sys/{path}")).ok()?;
    Some(text.trim().to_owned())
}

fn mappings() -> Option<Finding> {
    let n: u64 = setting("vm/max_map_count")?.parse().ok()?;
    let text = format!("vm.max_map_count {n}");
    Some(if n < FEW_MAPPINGS {
        Finding::note(format!("{text}: few streams can be accelerated at once"))
    } else {
        Finding::good(text)
    })
}

fn address_space() -> Option<Finding> {
    let mib = limit(libc::RLIMIT_AS)? >> 20;
    Some(Finding::note(format!(
        "{mib} MiB of address space allowed (ulimit -v): each accelerated stream takes 64 MiB of it, though hardly any memory"
    )))
}

fn congestion() -> Option<Finding> {
    let name = setting("net/ipv4/tcp_congestion_control")?;
    Some(match name.as_str() {
        "bbr" => Finding::note(
            "TCP uses bbr, with which plain loopback streams are much slower than with cubic: \
             compare with both",
        ),
        name => Finding::good(format!("TCP uses {name} congestion control")),
    })
}
