//! NetPIPE's TCP module. Both ends need the same options, or they read each other's messages wrongly.

use crate::experiment::{find_program, End, Experiment, Failure, Run, Values};

/// Half round trip of one message size.
pub struct Nptcp {
    pub bytes: u32,
}

impl Experiment for Nptcp {
    fn run(&self, run: &Run) -> Result<Values, Failure> {
        let program = find_program("NPtcp", "netpipe-tcp")?;
        let port = crate::port::free()?.to_string();
        let size = self.bytes.to_string();
        // NetPIPE chooses its repetitions from plain TCP's first messages, which is a blink for a faster wire.
        let repeats = (20_000 * run.seconds).to_string();
        let options = [
            "-P", &port, "-l", &size, "-u", &size, "-p", "0", "-n", &repeats,
        ];
        let mut receiver = run.command(&program);
        receiver.args(options);
        let receiver = run.serve(receiver, "receiver", port.parse().unwrap_or(0))?;
        let mut sender = run.command(&program);
        sender
            .args(["-h", "127.0.0.1", "-o", "np.out"])
            .args(options);
        run.start(sender, "sender", End::Client)?.wait()?;
        receiver.wait()?;
        let table = std::fs::read_to_string(run.dir.join("np.out"))?;
        Ok(Values::from([(
            "half_us",
            half_round_trip(&table, self.bytes)?,
        )]))
    }
}

/// Lines of `np.out` are: message size, Mb/s, seconds of half a round trip (in steps of 10 ns).
fn half_round_trip(table: &str, bytes: u32) -> Result<f64, String> {
    for line in table.lines() {
        let columns: Vec<f64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        if let [size, _, seconds] = columns[..] {
            if size as u32 == bytes {
                return Ok(seconds * 1e6);
            }
        }
    }
    Err(format!("NPtcp measured nothing at {bytes} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_np_out() {
        let table = "       6 4.245725   0.00001078\n       8 5.646728   0.00001081\n";
        assert!((half_round_trip(table, 8).unwrap() - 10.81).abs() < 1e-9);
        assert!(half_round_trip(table, 12).is_err());
        assert!(half_round_trip("", 8).is_err());
    }
}
