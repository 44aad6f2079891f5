//! `sidewire-bench apps`: the scripts for real programs, each in its own time limit, and one table at the end.
//!
//! A script prints `ok NAME ...`, `FAIL NAME ...` or `skip NAME: reason` lines and exits non-zero on a FAIL.

use crate::child::Child;
use crate::experiment::Failure;
use crate::scratch::Scratch;
use crate::{registry, report, side::Accelerator};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Args {
    /// Scripts to run, such as `redis` [default: all]
    names: Vec<String>,
    /// Small sizes
    #[arg(long)]
    quick: bool,
    /// Where the scripts are [default: where this program was built or installed]
    #[arg(long, value_name = "DIR")]
    scripts: Option<PathBuf>,
    /// Time limit for each script, in seconds
    #[arg(long, value_name = "S", default_value_t = 600)]
    limit: u64,
    /// Print each script's output
    #[arg(long, short)]
    verbose: bool,
}

/// What one script said.
#[derive(Default)]
struct Tally {
    ok: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
    /// Checks that ran without Sidewire, for want of a launcher.
    plain_only: usize,
}

impl Tally {
    fn of(output: &str) -> Tally {
        let mut tally = Tally::default();
        for line in output.lines() {
            match line.split_once(' ') {
                Some(("ok", what)) => {
                    tally.ok += 1;
                    tally.plain_only += usize::from(what.contains("(plain only"));
                }
                Some(("FAIL", what)) => tally.failed.push(what.to_owned()),
                Some(("skip", what)) => tally.skipped.push(what.to_owned()),
                _ => {}
            }
        }
        tally
    }

    fn verdict(&self) -> &'static str {
        match (self.failed.is_empty(), self.ok, self.skipped.is_empty()) {
            (false, ..) => "FAIL",
            (true, 0, _) => "skip",
            _ if self.plain_only > 0 => "ok, PLAIN ONLY",
            (true, _, true) => "ok",
            (true, _, false) => "ok, some skipped",
        }
    }
}

pub fn run(args: &Args) -> ExitCode {
    registry::catch_interrupts();
    let Some(dir) = args.scripts.clone().or_else(script_dir) else {
        eprintln!("sidewire-bench: the scripts are not found; name their directory with --scripts");
        return ExitCode::from(2);
    };
    let scripts = match select(&dir, &args.names) {
        Ok(scripts) => scripts,
        Err(why) => {
            eprintln!("sidewire-bench: {why}");
            return ExitCode::from(2);
        }
    };
    println!("Sidewire: {}", Accelerator::find().line());
    let columns = ["program", "result", "checks", "time", "remarks"];
    let mut table = report::empty(&columns, 2..=3, 80);
    let mut all_well = true;
    for script in scripts {
        if registry::interrupted() {
            break;
        }
        let start = Instant::now();
        let tally = run_script(&script, args);
        all_well &= tally.failed.is_empty();
        let remarks = tally
            .failed
            .iter()
            .chain(&tally.skipped)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n");
        let seconds = format!("{:.0} s", start.elapsed().as_secs_f64());
        table.add_row([
            &name_of(&script),
            tally.verdict(),
            &tally.ok.to_string(),
            &seconds,
            &remarks,
        ]);
    }
    println!("{table}");
    if all_well && !registry::interrupted() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Run one script; one that dies, hangs or fails without saying why counts as failed.
fn run_script(script: &Path, args: &Args) -> Tally {
    let name = name_of(script);
    eprintln!("... {name}");
    match start_script(script, args) {
        Ok((output, well)) => {
            let mut tally = Tally::of(&output);
            if !well && tally.failed.is_empty() {
                let last = output.lines().last().unwrap_or("no output");
                tally.failed.push(format!(
                    "{name}: the script failed or ran out of time: {last}"
                ));
            }
            if args.verbose {
                print!("{output}");
            }
            tally
        }
        Err(Failure::Failed(why)) => Tally {
            failed: vec![format!("{name}: {why}")],
            ..Tally::default()
        },
        Err(Failure::NotInstalled { program, .. }) => Tally {
            skipped: vec![program.into()],
            ..Tally::default()
        },
    }
}

/// The script's output, and whether it ended well.
fn start_script(script: &Path, args: &Args) -> Result<(String, bool), Failure> {
    let scratch = Scratch::new()?;
    let mut command = Command::new("bash");
    command.arg(script).env("TMPDIR", scratch.path());
    if args.quick {
        command.env("QUICK", "1");
    }
    if let Accelerator::Launcher(path) = Accelerator::find() {
        command.env("SIDEWIRE", path);
    }
    let child = Child::start(
        command,
        "script",
        scratch.path(),
        None,
        Duration::from_secs(args.limit),
    )?;
    let well = child.wait().is_ok();
    let output = std::fs::read_to_string(scratch.path().join("script.out"))?;
    let errors = std::fs::read_to_string(scratch.path().join("script.err"))?;
    Ok((output + &errors, well))
}

fn name_of(script: &Path) -> String {
    script
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// All scripts but the library, or the named ones.
fn select(dir: &Path, names: &[String]) -> Result<Vec<PathBuf>, String> {
    if !names.is_empty() {
        let scripts = names
            .iter()
            .map(|name| dir.join(format!("{}.sh", name.trim_end_matches(".sh"))));
        return scripts
            .map(|path| {
                if path.is_file() {
                    Ok(path)
                } else {
                    Err(format!("no {}", path.display()))
                }
            })
            .collect();
    }
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut scripts: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension().is_some_and(|extension| extension == "sh") && name_of(path) != "lib"
        })
        .collect();
    scripts.sort();
    Ok(scripts)
}

/// In the build tree the scripts are with the sources, in an installed tree below `share`.
fn script_dir() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let candidates = exe
        .ancestors()
        .skip(1)
        .flat_map(|dir| [dir.join("bench/apps"), dir.join("share/sidewire/apps")]);
    let built = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/apps"));
    candidates
        .chain([built])
        .find(|dir| dir.join("lib.sh").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_lines_of_a_script() {
        let tally = Tally::of(
            "ok redis GET\nnoise\nskip redis: no tls\nFAIL redis SET: differs\nok redis PING\n",
        );
        assert_eq!(
            (tally.ok, tally.failed.len(), tally.skipped.len()),
            (2, 1, 1)
        );
        assert_eq!(tally.verdict(), "FAIL");
        assert_eq!(Tally::of("skip x: not installed").verdict(), "skip");
        assert_eq!(Tally::of("ok x").verdict(), "ok");
        let plain_only = Tally::of("ok x (plain only: no launcher)");
        assert_eq!(plain_only.verdict(), "ok, PLAIN ONLY");
    }
}
