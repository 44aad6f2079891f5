//! `rtig`: the central process of the RTI.

use clap::Parser;
use rti_demo::rtig::{Options, Rtig};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Parser)]
#[command(
    name = "rtig",
    version,
    about = "The central process of a minimal HLA RTI: holds the federations and routes between federates"
)]
struct Cli {
    /// Where to listen; port 0 takes a free one, which is printed
    #[arg(long, default_value = "127.0.0.1:60400", value_name = "ADDR:PORT")]
    listen: String,
    /// End when the last federation has been destroyed and the last federate has gone
    #[arg(long)]
    once: bool,
    /// Give a federate up that has taken nothing for so many seconds
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    stall_limit: u64,
}

fn main() -> ExitCode {
    match serve(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("rtig: {e}");
            ExitCode::FAILURE
        }
    }
}

fn serve(cli: &Cli) -> io::Result<()> {
    let options = Options {
        once: cli.once,
        stall_limit: Duration::from_secs(cli.stall_limit),
        log: true,
    };
    let mut rtig = Rtig::bind(&cli.listen, options)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", cli.listen)))?;
    let mut out = io::stdout();
    writeln!(out, "rtig: listening on {}", rtig.local_addr()?)?;
    out.flush()?;
    rtig.run()
}
