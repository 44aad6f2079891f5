//! The two roles.

use super::player::{Player, READY};
use super::stats::{Row, Summary};
use super::Plan;
use crate::RtiException;
use std::time::{Duration, Instant};

/// Who a recorder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Begins each round, and measures.
    R1,
    /// Answers and counts.
    R2,
}

/// Plays a role in one game. R1 tells each row as it is measured. The outcome is the number of rounds, on which both ends
/// agree.
pub fn play(
    role: Role,
    address: &str,
    plan: &Plan,
    mut tell: impl FnMut(&Row),
) -> Result<u64, RtiException> {
    match role {
        Role::R1 => {
            let mut player = Player::join(address, "R1")?;
            player
                .rti
                .register_federation_synchronization_point(READY, b"")?;
            player.start()?;
            let mut played = 0;
            for &size in &plan.sizes {
                let runs = (0..plan.runs).map(|_| run(&mut player, size, plan.rounds));
                let runs = runs.collect::<Result<Vec<_>, _>>()?;
                played += u64::from(plan.rounds) * u64::from(plan.runs);
                if let Some(latency) = Summary::of(&runs, plan.rounds) {
                    tell(&Row { size, latency });
                }
            }
            let values = [(player.rounds, &played.to_le_bytes()[..])];
            player
                .rti
                .send_interaction(player.game_over, &values, b"")?;
            player.leave()?;
            Ok(played)
        }
        Role::R2 => {
            let mut player = Player::join(address, "R2")?;
            player.start()?;
            let answered = answer(&mut player)?;
            player.leave()?;
            Ok(answered)
        }
    }
}

/// One run of R1: update, and wait for the other's, so many times.
fn run(player: &mut Player, size: u32, rounds: u32) -> Result<Duration, RtiException> {
    let mut payload = vec![0x5a; size as usize];
    let start = Instant::now();
    for _ in 0..rounds {
        let round = player.heard.reflected;
        payload[..8].copy_from_slice(&round.to_le_bytes());
        player.update(&payload)?;
        player.next(|h| h.reflected > round)?;
        if player.heard.payload != payload {
            let reason = format!("round {round}: the answer is to something else");
            return Err(RtiException::internal(reason));
        }
    }
    Ok(start.elapsed())
}

/// R2: answers each update with one of its own, which holds as much, until the game is over.
fn answer(player: &mut Player) -> Result<u64, RtiException> {
    let mut answered = 0;
    loop {
        player.next(|h| h.reflected > answered || h.game_over.is_some())?;
        if player.heard.reflected > answered {
            let payload = std::mem::take(&mut player.heard.payload);
            player.update(&payload)?;
            player.heard.payload = payload;
            answered += 1;
            continue;
        }
        return match player.heard.game_over {
            Some(played) if played == answered => Ok(answered),
            played => {
                let reason = format!("R1 played {played:?} rounds, R2 answered {answered}");
                Err(RtiException::internal(reason))
            }
        };
    }
}
