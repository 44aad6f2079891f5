//! The policy rules that apply to this process: which streams may leave TCP.
//!
//! The launcher reads the rule files and compiles them into SIDEWIRE_POLICY, one
//! ASCII string: `1` (the format's version), then for each rule a `;` and its
//! fields, separated by `,`. A field is a letter and its value:
//!
//! | field | means | without it |
//! |---|---|---|
//! | `p` | pattern of the program: `*` is any text, `%XX` a byte; with a `/` it is held against the whole path, else against the name | every program |
//! | `u` | user id | every user |
//! | `l`, `r` | local, remote address: `*` or `HEX/BITS` (8 or 32 digits), then perhaps `:LOW-HIGH` (ports) | every address |
//! | `d` | `o` connections made here, `i` accepted here | both |
//! | `v` | verdict: `a`uto, `t`cp, `s`hm, `r`dma | auto |
//! | `n` | messages before an offer | the process's setting |
//!
//! A rule that cannot be read, or has no room, stands for «everything on TCP»:
//! an unreadable policy must never allow what it may have forbidden.
//!
//! No allocation and no panic: [`load`] runs inside the first hook.

use core::cell::UnsafeCell;
use core::net::{IpAddr, SocketAddr};
use core::sync::atomic::{AtomicU32, Ordering};

/// Rules that may apply to one process; the launcher accepts no more in all.
pub const MAX_RULES: usize = 128;
/// Longest pattern of a program, in bytes.
pub const MAX_PATTERN: usize = 256;

/// Which wire a stream may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The fastest that is there.
    Auto,
    /// None: it stays on TCP.
    Tcp,
    /// Shared memory only.
    Shm,
    /// RDMA only.
    Rdma,
}

/// What the policy says about one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Messages before an offer, if the rule says so.
    pub upgrade_after: Option<u64>,
    /// Number of the rule, from 1 on; 0 if none matches.
    pub rule: u16,
}

/// No rule matches.
const DEFAULT: Decision = Decision {
    verdict: Verdict::Auto,
    upgrade_after: None,
    rule: 0,
};

/// Addresses and ports that a rule is about.
#[derive(Clone, Copy)]
struct Place {
    /// 0 (every address), 4 or 6.
    family: u8,
    /// The address, shifted right by `shift`; IPv4 in the low 32 bits.
    prefix: u128,
    shift: u8,
    low: u16,
    high: u16,
}

#[derive(Clone, Copy)]
struct Rule {
    decision: Decision,
    outgoing: Option<bool>,
    local: Place,
    remote: Place,
}

const ANYWHERE: Place = Place {
    family: 0,
    prefix: 0,
    shift: 0,
    low: 0,
    high: u16::MAX,
};
const EVERYTHING: Rule = Rule {
    decision: DEFAULT,
    outgoing: None,
    local: ANYWHERE,
    remote: ANYWHERE,
};

struct Table {
    /// 0 new, 1 being filled, 2 + the number of rules.
    state: AtomicU32,
    rules: UnsafeCell<[Rule; MAX_RULES]>,
}

// SAFETY: `rules` is written by the one thread that moved `state` from 0 to 1,
// and read only behind an acquire load of a `state` above 1.
unsafe impl Sync for Table {}

static TABLE: Table = Table::new();

/// Takes over the rules of SIDEWIRE_POLICY (`env`) that apply to this process:
/// `program` is its executable's path, `uid` its effective user. Later calls
/// change nothing.
pub fn load(env: Option<&[u8]>, program: &[u8], uid: u32) {
    TABLE.load(env, program, uid);
}

/// What holds for a stream between `local` and `remote`; `outgoing` if it was
/// connected here, not accepted. Costs a few comparisons; before [`load`], and
/// without rules, everything is [`Verdict::Auto`].
pub fn decide(local: &SocketAddr, remote: &SocketAddr, outgoing: bool) -> Decision {
    TABLE.decide(local, remote, outgoing)
}

impl Table {
    const fn new() -> Table {
        Table {
            state: AtomicU32::new(0),
            rules: UnsafeCell::new([EVERYTHING; MAX_RULES]),
        }
    }

    fn load(&self, env: Option<&[u8]>, program: &[u8], uid: u32) {
        let fresh = self
            .state
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        if fresh.is_err() {
            return;
        }
        // SAFETY: this thread alone has moved `state` from 0 to 1.
        let rules = unsafe { &mut *self.rules.get() };
        let count = env.map_or(0, |env| fill(rules, env, program, uid));
        self.state.store(2 + count, Ordering::Release);
    }

    fn decide(&self, local: &SocketAddr, remote: &SocketAddr, outgoing: bool) -> Decision {
        let count = self.state.load(Ordering::Acquire).saturating_sub(2) as usize;
        if count == 0 {
            return DEFAULT;
        }
        // SAFETY: a `state` above 1 is stored after the last write to `rules`.
        let rules = unsafe { &*self.rules.get() };
        let (local, remote) = (Spot::of(local), Spot::of(remote));
        rules
            .iter()
            .take(count)
            .find(|r| {
                r.outgoing != Some(!outgoing) && r.local.holds(&local) && r.remote.holds(&remote)
            })
            .map_or(DEFAULT, |r| r.decision)
    }
}

/// Fills `rules` with those of `env` that apply; returns how many.
fn fill(rules: &mut [Rule; MAX_RULES], env: &[u8], program: &[u8], uid: u32) -> u32 {
    let mut count = 0usize;
    if env.is_empty() {
        return 0;
    }
    let mut parts = env.split(|b| *b == b';');
    let known = parts.next() == Some(b"1");
    // Of a strange version nothing can be read: one rule that cannot be.
    let texts = parts.by_ref().filter(|_| known);
    let strange = (!known).then_some(&b"?"[..]);
    for (i, text) in texts.chain(strange).enumerate() {
        let number = u16::try_from(i + 1).unwrap_or(u16::MAX);
        let Some(place) = rules.get_mut(count) else {
            break;
        };
        // The last place is kept for «there were more».
        let parsed = if count == MAX_RULES - 1 {
            None
        } else {
            parse(text, program, uid)
        };
        let rule = match parsed {
            Some(Applies::No) => continue,
            Some(Applies::Yes(rule)) => rule,
            None => Rule {
                decision: Decision {
                    verdict: Verdict::Tcp,
                    ..DEFAULT
                },
                ..EVERYTHING
            },
        };
        *place = rule;
        place.decision.rule = number;
        count += 1;
        if parsed.is_none() {
            break;
        }
    }
    count as u32
}

#[derive(Clone, Copy)]
enum Applies {
    /// To another program or user.
    No,
    Yes(Rule),
}

/// Reads one rule; `None` if it cannot be read.
fn parse(text: &[u8], program: &[u8], uid: u32) -> Option<Applies> {
    let mut rule = EVERYTHING;
    let mut applies = true;
    for field in text.split(|b| *b == b',') {
        let (letter, value) = field.split_first()?;
        match letter {
            b'p' => applies &= Pattern::parse(value)?.matches(program),
            b'u' => applies &= number(value, u64::from(u32::MAX))? == u64::from(uid),
            b'l' => rule.local = Place::parse(value)?,
            b'r' => rule.remote = Place::parse(value)?,
            b'd' => {
                rule.outgoing = Some(match value {
                    b"o" => true,
                    b"i" => false,
                    _ => return None,
                })
            }
            b'v' => {
                rule.decision.verdict = match value {
                    b"a" => Verdict::Auto,
                    b"t" => Verdict::Tcp,
                    b"s" => Verdict::Shm,
                    b"r" => Verdict::Rdma,
                    _ => return None,
                }
            }
            b'n' => rule.decision.upgrade_after = Some(number(value, u64::MAX)?),
            _ => return None,
        }
    }
    let not = Applies::No;
    Some(if applies { Applies::Yes(rule) } else { not })
}

/// A decimal number from 0 to `max`.
fn number(text: &[u8], max: u64) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter()
        .try_fold(0u64, |n, b| {
            let digit = u64::from(*b).checked_sub(u64::from(b'0'))?;
            (digit < 10).then_some(())?;
            n.checked_mul(10)?.checked_add(digit)
        })
        .filter(|n| *n <= max)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|d| d as u8)
}

/// An address as rules compare it: v4-mapped ones are IPv4.
struct Spot {
    family: u8,
    bits: u128,
    port: u16,
}

impl Spot {
    fn of(address: &SocketAddr) -> Spot {
        let (family, bits) = match address.ip().to_canonical() {
            IpAddr::V4(ip) => (4, u128::from(u32::from(ip))),
            IpAddr::V6(ip) => (6, u128::from(ip)),
        };
        Spot {
            family,
            bits,
            port: address.port(),
        }
    }
}

impl Place {
    fn holds(&self, spot: &Spot) -> bool {
        let shifted = |bits: u128| bits.checked_shr(u32::from(self.shift)).unwrap_or(0);
        (self.low..=self.high).contains(&spot.port)
            && (self.family == 0 || self.family == spot.family && shifted(spot.bits) == self.prefix)
    }

    fn parse(text: &[u8]) -> Option<Place> {
        let mut place = ANYWHERE;
        let mut halves = text.splitn(2, |b| *b == b':');
        let address = halves.next()?;
        if let Some(ports) = halves.next() {
            let mut ends = ports.splitn(2, |b| *b == b'-');
            place.low = number(ends.next()?, 0xffff)? as u16;
            place.high = number(ends.next()?, 0xffff)? as u16;
        }
        if address == b"*" {
            return Some(place);
        }
        let mut halves = address.splitn(2, |b| *b == b'/');
        let digits = halves.next()?;
        let bits = number(halves.next()?, 128)? as u8;
        let (family, width) = match digits.len() {
            8 => (4, 32u8),
            32 => (6, 128u8),
            _ => return None,
        };
        let value = digits
            .iter()
            .try_fold(0u128, |n, d| Some(n << 4 | u128::from(hex(*d)?)))?;
        place.family = family;
        place.shift = width.checked_sub(bits)?;
        place.prefix = value.checked_shr(u32::from(place.shift)).unwrap_or(0);
        Some(place)
    }
}

/// A pattern of program names, decoded; `*` is any text, even none.
struct Pattern {
    bytes: [u8; MAX_PATTERN],
    len: usize,
}

impl Pattern {
    fn parse(text: &[u8]) -> Option<Pattern> {
        let mut pattern = Pattern {
            bytes: [0; MAX_PATTERN],
            len: 0,
        };
        let mut rest = text.iter();
        while let Some(b) = rest.next() {
            let byte = match b {
                b'%' => hex(*rest.next()?)? << 4 | hex(*rest.next()?)?,
                other => *other,
            };
            *pattern.bytes.get_mut(pattern.len)? = byte;
            pattern.len += 1;
        }
        (pattern.len > 0).then_some(pattern)
    }

    fn matches(&self, program: &[u8]) -> bool {
        let pattern = self.bytes.get(..self.len).unwrap_or(&[]);
        if pattern.contains(&b'/') {
            return glob(pattern, program);
        }
        let name = program.rsplit(|b| *b == b'/').next().unwrap_or(program);
        glob(pattern, name)
    }
}

/// Does `text` as a whole match `pattern`? Time at most their product.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // The last star, and how much of the text it has swallowed.
    let mut star: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                star = Some((p, t));
                p += 1;
            }
            (Some(a), Some(b)) if a == b => {
                p += 1;
                t += 1;
            }
            (_, here) => {
                // At the text's end no longer star can help.
                let (Some((at, from)), Some(_)) = (star, here) else {
                    return false;
                };
                star = Some((at, from + 1));
                p = at + 1;
                t = from + 1;
            }
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
