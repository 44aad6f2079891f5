//! The few things that we ask of an ELF file: may a library be preloaded into
//! it, and what number stands behind one of its symbols.
//!
//! Nothing in the file is trusted: every offset is checked by the read itself.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes that can be read at an offset.
pub trait Source {
    /// Fills `to` from `at` on; `None` beyond the end.
    fn read(&self, at: u64, to: &mut [u8]) -> Option<()>;
}

impl Source for File {
    fn read(&self, at: u64, to: &mut [u8]) -> Option<()> {
        self.read_exact_at(to, at).ok()
    }
}

impl Source for &[u8] {
    fn read(&self, at: u64, to: &mut [u8]) -> Option<()> {
        let at = usize::try_from(at).ok()?;
        to.copy_from_slice(self.get(at..at.checked_add(to.len())?)?);
        Some(())
    }
}

/// Longest interpreter path that we look at, in bytes.
const MAX_PATH: u64 = 4096;
/// Most program headers, section headers and symbols that we look at.
const MAX_HEADERS: u64 = 4096;
const MAX_SYMBOLS: u64 = 65536;

const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const SHT_DYNSYM: u32 = 11;

/// This machine's e_machine.
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// What kind of file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A 64-bit ELF file for this machine.
    Native,
    /// A 32-bit ELF file.
    Bits32,
    /// An ELF file for another machine.
    Foreign,
    /// `#!` and the interpreter's path.
    Script(Vec<u8>),
    /// Anything else.
    Other,
}

/// Looks at the file's first bytes.
pub fn kind(file: &impl Source) -> Kind {
    if let Some(interpreter) = script(file) {
        return Kind::Script(interpreter);
    }
    let mut head = [0; 20];
    if file.read(0, &mut head).is_none() || !head.starts_with(b"\x7fELF") {
        return Kind::Other;
    }
    let machine = u16::from_le_bytes([head[18], head[19]]);
    match (head[4], head[5]) {
        (1, _) => Kind::Bits32,
        (2, 1) if machine == MACHINE => Kind::Native,
        _ => Kind::Foreign,
    }
}

/// The interpreter of a `#!` line, as the kernel reads it: at most 255 bytes.
fn script(file: &impl Source) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    for at in 0..255 {
        let mut byte = [0];
        match file.read(at, &mut byte) {
            Some(()) if byte[0] != b'\n' => line.push(byte[0]),
            _ => break,
        }
        if at == 1 && line != b"#!" {
            return None;
        }
    }
    let rest = line.strip_prefix(b"#!")?;
    let blank = |b: &u8| *b == b' ' || *b == b'\t';
    let start = rest.iter().position(|b| !blank(b))?;
    let words = &rest[start..];
    let end = words.iter().position(blank).unwrap_or(words.len());
    Some(words[..end].to_vec())
}

/// A native ELF file ([`Kind::Native`]).
pub struct Elf<'a, S: Source> {
    file: &'a S,
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl<'a, S: Source> Elf<'a, S> {
    /// The file; `None` if it is not of [`Kind::Native`].
    pub fn new(file: &'a S) -> Option<Elf<'a, S>> {
        (kind(file) == Kind::Native).then_some(Elf { file })
    }

    fn u16(&self, at: u64) -> Option<u64> {
        let mut b = [0; 2];
        self.file.read(at, &mut b)?;
        Some(u64::from(u16::from_le_bytes(b)))
    }

    fn u32(&self, at: u64) -> Option<u32> {
        let mut b = [0; 4];
        self.file.read(at, &mut b)?;
        Some(u32::from_le_bytes(b))
    }

    fn u64(&self, at: u64) -> Option<u64> {
        let mut b = [0; 8];
        self.file.read(at, &mut b)?;
        Some(u64::from_le_bytes(b))
    }

    fn segments(&self) -> Option<Vec<Segment>> {
        let (table, size, count) = (self.u64(32)?, self.u16(54)?, self.u16(56)?);
        (0..count.min(MAX_HEADERS))
            .map(|i| {
                let at = table.checked_add(i * size)?;
                Some(Segment {
                    kind: self.u32(at)?,
                    offset: self.u64(at.checked_add(8)?)?,
                    address: self.u64(at.checked_add(16)?)?,
                    size: self.u64(at.checked_add(32)?)?,
                })
            })
            .collect()
    }

    /// The dynamic linker that the file asks for; `None` for a static one.
    pub fn interpreter(&self) -> Option<Vec<u8>> {
        let segments = self.segments()?;
        let s = segments.iter().find(|s| s.kind == PT_INTERP)?;
        let mut path = vec![0; s.size.min(MAX_PATH) as usize];
        self.file.read(s.offset, &mut path)?;
        let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
        path.truncate(end);
        Some(path)
    }

    /// The 32-bit number behind the exported data symbol `name`.
    pub fn number(&self, name: &str) -> Option<u32> {
        let address = self.symbol(name.as_bytes())?;
        let segments = self.segments()?;
        let s = segments
            .iter()
            .find(|s| s.kind == PT_LOAD && address >= s.address && address - s.address < s.size)?;
        self.u32(s.offset.checked_add(address - s.address)?)
    }

    /// Address of an exported symbol.
    fn symbol(&self, name: &[u8]) -> Option<u64> {
        let (table, size, count) = (self.u64(40)?, self.u16(58)?, self.u16(60)?);
        let section = |i: u64| table.checked_add(i.checked_mul(size)?);
        let symbols = (0..count.min(MAX_HEADERS))
            .filter_map(section)
            .find(|at| at.checked_add(4).and_then(|at| self.u32(at)) == Some(SHT_DYNSYM))?;
        let field = |at: u64, n: u64| self.u64(at.checked_add(n)?);
        let link = u64::from(self.u32(symbols.checked_add(40)?)?);
        let strings = field(section(link)?, 24)?;
        let (offset, bytes) = (field(symbols, 24)?, field(symbols, 32)?);
        // A symbol is 24 bytes: name (4), info, other, section (2), value, size.
        for i in 0..(bytes / 24).min(MAX_SYMBOLS) {
            let at = offset.checked_add(i * 24)?;
            let mut text = vec![0; name.len() + 1];
            let place = strings.checked_add(u64::from(self.u32(at)?))?;
            if self.file.read(place, &mut text).is_some()
                && text.strip_suffix(&[0]) == Some(name)
                && self.u16(at.checked_add(6)?)? != 0
            {
                return field(at, 8);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts() {
        let is = |text: &str, path: &str| {
            assert_eq!(kind(&text.as_bytes()), Kind::Script(path.into()), "{text}");
        };
        is("#!/bin/sh\necho", "/bin/sh");
        is("#! \t/usr/bin/env python3\n", "/usr/bin/env");
        is("#!/bin/sh", "/bin/sh");
        for text in ["", "#", "#!", "#! \n", "echo", "\x7fELF"] {
            assert_eq!(kind(&text.as_bytes()), Kind::Other, "{text}");
        }
    }

    #[test]
    fn our_own_executable() {
        let file = File::open("/proc/self/exe").unwrap();
        let elf = Elf::new(&file).unwrap();
        let interpreter = elf.interpreter().unwrap();
        assert!(interpreter.starts_with(b"/lib"));
        assert_eq!(elf.number("no_such_symbol"), None);
    }

    #[test]
    fn other_machines() {
        let mut head = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\xff\xff";
        assert_eq!(kind(&&head[..]), Kind::Foreign);
        head[4] = 1;
        assert_eq!(kind(&&head[..]), Kind::Bits32);
    }

    /// Damaged copies of a real file neither panic nor take for ever.
    #[test]
    fn damage() {
        let good = std::fs::read("/proc/self/exe").unwrap();
        let sections = u64::from_le_bytes(good[40..48].try_into().unwrap()) as usize;
        let mut x = 0x2545_f491_4f6c_dd1du64;
        let mut random = move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x as usize
        };
        let mut bad = good.clone();
        for _ in 0..300 {
            let at = match random() % 3 {
                0 => 16 + random() % 48,
                1 => 64 + random() % 512,
                _ => sections + random() % (good.len() - sections),
            };
            bad[at] = random() as u8;
            let cut = if random() % 4 == 0 {
                random() % good.len()
            } else {
                good.len()
            };
            let source = &bad[..cut];
            if let Some(elf) = Elf::new(&source) {
                let _ = (elf.interpreter(), elf.number("SIDEWIRE_ABI_VERSION"));
            }
            bad[at] = good[at];
        }
    }
}
