//! A whole game on this machine: `rtig` and both recorders as child processes.

use super::{Format, Plan};
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How to launch.
#[derive(Clone, Debug)]
pub struct LaunchOptions {
    /// The game.
    pub plan: Plan,
    /// A command and its arguments before each of the three, split at blanks.
    pub prefix: String,
    /// How R1 prints.
    pub format: Format,
    /// The directory with the programs.
    pub programs: PathBuf,
}

/// How often to look whether a child has ended. Rarely, as looking costs the game time.
const LOOK: Duration = Duration::from_millis(50);

/// For how long `rtig` may stay when the game is over.
const GRACE: Duration = Duration::from_secs(5);

/// Starts the three, and waits for the game to end. R1 prints to our standard output. When one fails the others are
/// ended too.
pub fn launch(options: &LaunchOptions) -> io::Result<()> {
    let mut children = Children(Vec::new());
    let mut rtig = options.command("rtig");
    rtig.args(["--listen", "127.0.0.1:0", "--once"]);
    rtig.stdout(Stdio::piped());
    let rtig = children.start("rtig", rtig)?;
    let address = announced(rtig)?;
    for role in ["r2", "r1"] {
        let mut recorder = options.command("recorder");
        let sizes: Vec<_> = options.plan.sizes.iter().map(u32::to_string).collect();
        recorder
            .args(["--role", role, "--connect", &address])
            .args(["--rounds", &options.plan.rounds.to_string()])
            .args(["--runs", &options.plan.runs.to_string()])
            .args(["--sizes", &sizes.join(",")]);
        if options.format == Format::Csv {
            recorder.arg("--csv");
        }
        children.start(role, recorder)?;
    }
    while children.running(&["r1", "r2"])? {
        std::thread::sleep(LOOK);
    }
    let deadline = Instant::now() + GRACE;
    while children.running(&["rtig"])? {
        if Instant::now() > deadline {
            return Err(io::Error::other("rtig does not end"));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

impl LaunchOptions {
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut words = self.prefix.split_whitespace();
        match words.next() {
            None => Command::new(program),
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(program);
                command
            }
        }
    }
}

/// The address in the line that `rtig` prints when it listens.
fn announced(rtig: &mut Child) -> io::Result<String> {
    let out = rtig.stdout.take().expect("is piped");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    match line.trim_end().rsplit_once(' ') {
        Some((_, address)) => Ok(address.into()),
        None => Err(io::Error::other("rtig doesn't say where it listens")),
    }
}

/// The processes; what still runs when this is dropped is killed.
struct Children(Vec<(&'static str, Child)>);

impl Children {
    fn start(&mut self, name: &'static str, mut command: Command) -> io::Result<&mut Child> {
        command.stdin(Stdio::null());
        let child = command.spawn().map_err(|e| {
            let program = command.get_program().to_string_lossy();
            io::Error::new(e.kind(), format!("{program}: {e}"))
        })?;
        self.0.push((name, child));
        Ok(&mut self.0.last_mut().expect("was pushed").1)
    }

    /// Whether any of those runs; an error if one of all has failed.
    fn running(&mut self, names: &[&str]) -> io::Result<bool> {
        let mut any = false;
        for (name, child) in &mut self.0 {
            match child.try_wait()? {
                Some(status) if !status.success() => {
                    return Err(io::Error::other(format!("{name}: {status}")));
                }
                Some(_) => {}
                None => any |= names.contains(name),
            }
        }
        Ok(any)
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            // One that has ended already is no matter.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
