//! `sidewire run`: a program with the library before it.
//!
//! Without anything to report afterwards the launcher becomes the program (same
//! process, nothing in between). Otherwise it stays as the parent, with the
//! arena that the program and its descendants write to: see [`family`].

pub mod environment;
pub mod family;
pub mod fitness;
pub mod logs;
pub mod report;
pub mod signals;

use crate::cli::RunArgs;
use crate::{code, complain, library};
use fitness::Fitness;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Runs the program; returns the exit code (or never).
pub fn run(args: &RunArgs) -> i32 {
    let Some(name) = args.command.first() else {
        return code::USAGE;
    };
    let mut obstacles = Vec::new();
    // What is not there, or not executable, is execvp's to say.
    if let Some(path) = find_program(name) {
        match prepare(args, &path) {
            Ok(found) => obstacles = found,
            Err(message) => {
                complain(&message);
                return code::USAGE;
            }
        }
    }
    for obstacle in &obstacles {
        complain(obstacle);
    }
    let Some(argv) = Argv::new(&args.command) else {
        complain("an argument contains a zero byte");
        return code::USAGE;
    };
    if args.stats || args.stats_file.is_some() || args.require || args.log.is_some() {
        return family::run(args, &argv, &obstacles);
    }
    let errno = argv.exec();
    cannot_run(name, errno)
}

/// Sets the environment for the program at `path`. Returns what keeps it from
/// being accelerated, if anything does: one line each. `Err`: a rule file that
/// was named on the command line is wrong.
fn prepare(args: &RunArgs, path: &Path) -> Result<Vec<String>, String> {
    environment::check()?;
    let rules = match environment::policy(args.policy.as_deref()) {
        Ok(rules) => rules,
        Err(wrong) if wrong.named => return Err(wrong.message),
        // A broken file in /etc must not break programs, nor allow anything.
        Err(wrong) => {
            let name = path.display();
            environment::stay_plain();
            return Ok(vec![format!("{}; {name} runs on plain TCP", wrong.message)]);
        }
    };
    let library = match library::find() {
        Ok(library) => library,
        Err(why) => {
            environment::stay_plain();
            return Ok(vec![format!("{why}; the program runs unaccelerated")]);
        }
    };
    environment::set_options(args, rules);
    let (preload, obstacle) = match fitness::of(path) {
        Fitness::Fit => (true, None),
        Fitness::Itself(why) => (true, Some(why)),
        Fitness::Never(why) => (false, Some(why)),
    };
    if preload {
        environment::set_preload(&library);
    }
    Ok(obstacle.into_iter().collect())
}

/// Says why the program did not start; returns the exit code for it.
fn cannot_run(name: &OsStr, errno: i32) -> i32 {
    let why = std::io::Error::from_raw_os_error(errno);
    let text = why.to_string();
    let text = text.split(" (os error").next().unwrap_or("");
    let shown = Path::new(name).display();
    // The kernel has one error for both; without this a user would look for a
    // program that is there.
    let interpreter = find_program(name).and_then(|p| fitness::bad_interpreter(&p));
    complain(&match interpreter {
        Some(i) => format!("{shown}: bad interpreter: {}: {text}", visible(&i)),
        None => format!("{shown}: {text}"),
    });
    match errno {
        libc::ENOENT => code::NOT_FOUND,
        _ => code::NOT_EXECUTABLE,
    }
}

/// A path with its control characters as a shell shows them: a script with the line
/// ends of another system asks for `/bin/sh^M`.
fn visible(path: &Path) -> String {
    let mut text = String::new();
    for c in path.to_string_lossy().chars() {
        match u8::try_from(c) {
            Ok(b) if b.is_ascii_control() => text.extend(['^', char::from(b ^ 0x40)]),
            _ => text.push(c),
        }
    }
    text
}

/// The file that execvp(3) would take for `name`.
pub fn find_program(name: &OsStr) -> Option<PathBuf> {
    let executable = |p: &Path| is_executable(p).then(|| p.to_owned());
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).find_map(|dir| {
        let dir = if dir.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &dir
        };
        executable(&dir.join(name))
    })
}

/// Is this a file that we may execute?
fn is_executable(path: &Path) -> bool {
    let Ok(c) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: a C string that lives across the call.
    let allowed = unsafe { libc::access(c.as_ptr(), libc::X_OK) } == 0;
    allowed && path.is_file()
}

/// A program and its arguments, as execvp(3) wants them.
pub struct Argv {
    _words: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Argv {
    /// `None` if a word contains a zero byte, or there is none.
    fn new(words: &[OsString]) -> Option<Argv> {
        let words: Vec<CString> = words
            .iter()
            .map(|w| CString::new(w.as_bytes()).ok())
            .collect::<Option<_>>()?;
        let mut pointers: Vec<_> = words.iter().map(|w| w.as_ptr()).collect();
        pointers.push(std::ptr::null());
        (!words.is_empty()).then_some(Argv {
            _words: words,
            pointers,
        })
    }

    /// Becomes the program, with the environment as it is now; returns an errno
    /// if that fails. Allocates nothing, so that a forked child may call it.
    pub fn exec(&self) -> i32 {
        // SAFETY: a null-terminated array of C strings that `self` owns.
        unsafe {
            libc::execvp(self.pointers[0], self.pointers.as_ptr());
            *libc::__errno_location()
        }
    }
}
