//! Finding the arenas of this host, through /proc.
//!
//! Every process that has the library loaded holds its family's arena open. We
//! may look into those of our own user (root: of all), and take each arena once.
//! Processes vanish while we look; whatever cannot be read any more is left out.

use super::{Found, Row};
use crate::view::View;
use rdma_engine::abi::arena::NAME;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// tmpfs and hugetlbfs magic numbers differ; only the first is a memfd of ours.
const TMPFS_MAGIC: libc::c_long = 0x0102_1994;

/// A process that holds an arena.
struct Member {
    pid: u32,
    /// Its id in its own pid namespace: what it writes into slots.
    own: u32,
    program: String,
}

struct Family {
    view: View,
    members: Vec<Member>,
}

/// Looks at every process.
pub fn scan() -> Found {
    let mut found = Found::default();
    let mut families: HashMap<u64, Option<Family>> = HashMap::new();
    for pid in processes() {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        let Ok(links) = fs::read_dir(dir.join("fd")) else {
            found.unreadable += u64::from(is_foreign(&dir));
            continue;
        };
        let mut member = None;
        for link in links.flatten() {
            let path = link.path();
            let Some(arena) = arena_at(&path) else {
                continue;
            };
            let family = families.entry(arena).or_insert_with(|| {
                open(&path, arena).map(|view| Family {
                    view,
                    members: Vec::new(),
                })
            });
            let Some(family) = family else { continue };
            let known = family.members.last().is_some_and(|m| m.pid == pid);
            if !known {
                let m = member.get_or_insert_with(|| (own_pid(&dir), name(&dir)));
                family.members.push(Member {
                    pid,
                    own: m.0.unwrap_or(pid),
                    program: m.1.clone(),
                });
            }
        }
    }
    for (arena, family) in families {
        match family {
            Some(family) => found.rows.extend(rows(arena, &family)),
            None => found.strange += 1,
        }
    }
    found
}

/// One row for each stream: for the first of its holders that lives.
fn rows(arena: u64, family: &Family) -> Vec<Row> {
    let holder = |own: &u32| family.members.iter().find(|m| m.own == *own);
    family
        .view
        .streams()
        .map(|stream| {
            let member = stream.holders.iter().find_map(holder);
            Row {
                pid: member.map_or(0, |m| m.pid),
                program: member.map_or_else(String::new, |m| m.program.clone()),
                arena,
                stream,
            }
        })
        .collect()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// The inode, if the descriptor `path` is a memfd with the arena's name.
fn arena_at(path: &Path) -> Option<u64> {
    let target = fs::read_link(path).ok()?;
    let name = target.to_str()?.strip_prefix("/memfd:")?;
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    (name == NAME)
        .then(|| fs::metadata(path).ok())?
        .map(|m| m.st_ino())
}

/// Opens the arena with inode `inode`. Any file may bear its name, so nothing
/// is opened but plain memory.
fn open(path: &Path, inode: u64) -> Option<View> {
    let meta = fs::metadata(path).ok()?;
    if !meta.is_file() || meta.st_ino() != inode {
        return None;
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .ok()?;
    (is_memory(&file) && file.metadata().ok()?.st_ino() == inode).then_some(())?;
    View::new(file)
}

fn is_memory(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: a zeroed plain C struct on our stack, which the call fills.
    unsafe {
        let mut fs: libc::statfs = std::mem::zeroed();
        libc::fstatfs(file.as_raw_fd(), &mut fs) == 0 && fs.f_type == TMPFS_MAGIC
    }
}

/// The process's id in its innermost pid namespace.
fn own_pid(dir: &Path) -> Option<u32> {
    let status = fs::read_to_string(dir.join("status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("NSpid:"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// The process's name, safe to print: it is the process's own to choose.
fn name(dir: &Path) -> String {
    let bytes = fs::read(dir.join("comm")).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.trim_end_matches('\n')
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Is this a living program (no kernel thread) that we may not look into?
fn is_foreign(dir: &Path) -> bool {
    let Ok(stat) = fs::read_to_string(dir.join("stat")) else {
        return false;
    };
    // Behind the name's closing bracket: state, ppid, pgrp, session, tty, tpgid, flags.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let flags = fields.split(' ').nth(6).and_then(|f| f.parse::<u32>().ok());
    const PF_KTHREAD: u32 = 0x0020_0000;
    flags.is_some_and(|f| f & PF_KTHREAD == 0) && !fields.starts_with('Z')
}
