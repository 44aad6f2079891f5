//! The message passing game of IB-CERTI (Xing and Li, 2016).
//!
//! ```text
//!   R1 ──update──▶ rtig ──reflect──▶ R2        one round; latency = time / (2 × rounds)
//!   R1 ◀─reflect── rtig ◀──update─── R2
//! ```
//!
//! For each size of payload there are twelve runs of so many rounds; the highest and the lowest are dropped, and the
//! result is the mean of the others.

mod launch;
mod player;
mod recorder;
mod stats;

pub use launch::{launch, LaunchOptions};
pub use recorder::{play, Role};
pub use stats::{Format, Row, Summary};

/// The game's object model.
pub const FED: &str = include_str!("game.fed");

/// The name of its federation.
pub const FEDERATION: &str = "MessagePassingGame";

/// How a game is played.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Rounds in a run.
    pub rounds: u32,
    /// Runs for each size.
    pub runs: u32,
    /// Sizes of the payload, in bytes.
    pub sizes: Vec<u32>,
}

/// The smallest payload: it holds the number of the round.
pub const LEAST_SIZE: u32 = 8;

/// The largest payload; with its envelope it has to fit a frame.
pub const MOST_SIZE: u32 = 1_000_000;

/// The sizes of the paper's table.
pub const SIZES: [u32; 8] = [32, 64, 128, 256, 512, 1024, 2048, 4096];
