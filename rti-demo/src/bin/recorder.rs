//! `recorder`: the message passing game, one role of it or the whole.

use clap::{Args, Parser, Subcommand, ValueEnum};
use rti_demo::game::{self, Format, LaunchOptions, Plan, Role};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "recorder",
    version,
    about = "The message passing game: R1 updates an attribute, the RTI reflects it to R2, R2 answers in kind",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Cli {
    /// Which of the two to be; R1 measures and prints
    #[arg(long, required = true)]
    role: Option<RoleName>,
    /// Where rtig listens
    #[arg(long, default_value = "127.0.0.1:60400", value_name = "ADDR:PORT")]
    connect: String,
    #[command(flatten)]
    game: GameArgs,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Start rtig and both recorders, and play
    Game {
        /// A command to put before each of the three, such as "taskset 1"
        #[arg(
            long,
            default_value = "",
            value_name = "COMMAND",
            hide_default_value = true
        )]
        prefix: String,
        #[command(flatten)]
        game: GameArgs,
    },
}

#[derive(Args)]
struct GameArgs {
    /// Rounds in a run
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Runs for each size; of three and more the highest and the lowest are dropped
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Sizes of the payload in bytes, with commas between
    #[arg(long, value_delimiter = ',', default_values_t = game::SIZES,
        value_parser = clap::value_parser!(u32).range(i64::from(game::LEAST_SIZE)..=i64::from(game::MOST_SIZE)))]
    sizes: Vec<u32>,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    R1,
    R2,
}

impl GameArgs {
    fn plan(&self) -> Plan {
        Plan {
            rounds: self.rounds,
            runs: self.runs,
            sizes: self.sizes.clone(),
        }
    }

    fn format(&self) -> Format {
        if self.csv {
            Format::Csv
        } else {
            Format::Table
        }
    }
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            tell(&e.to_string());
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<(), Box<dyn Error>> {
    if let Some(Command::Game { prefix, game }) = &cli.command {
        let here = std::env::current_exe()?;
        let programs = here.parent().ok_or("a program without a directory")?.into();
        return Ok(game::launch(&LaunchOptions {
            plan: game.plan(),
            prefix: prefix.clone(),
            format: game.format(),
            programs,
        })?);
    }
    let format = cli.game.format();
    let role = match cli.role.ok_or("which role?")? {
        RoleName::R1 => Role::R1,
        RoleName::R2 => Role::R2,
    };
    let mut out = std::io::stdout();
    if role == Role::R1 {
        writeln!(out, "{}", format.head())?;
    }
    let mut printed = Ok(());
    let rounds = game::play(role, &cli.connect, &cli.game.plan(), |row| {
        printed = std::mem::replace(&mut printed, Ok(()))
            .and_then(|()| writeln!(out, "{}", format.row(row)));
    })?;
    printed?;
    let (who, did) = match role {
        Role::R1 => ("R1", "played"),
        Role::R2 => ("R2", "answered"),
    };
    tell(&format!("{who} {did} {rounds} rounds"));
    Ok(())
}

/// A line on standard error, in one piece: both recorders of a game write there.
fn tell(what: &str) {
    let line = format!("recorder: {what}\n");
    // Nobody is left to tell if that fails.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
