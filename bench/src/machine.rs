//! What a reader has to know about the machine before believing a number.

use serde::Serialize;
use std::fs;

#[derive(Serialize)]
pub struct Machine {
    pub cpu: String,
    pub cores: usize,
    pub kernel: String,
    pub load: f64,
    pub congestion_control: String,
}

impl Machine {
    pub fn describe() -> Machine {
        let read = |path: &str| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let first = |text: String| {
            text.split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        Machine {
            cpu: cpu_model(&read("/proc/cpuinfo")),
            cores: cpus().len(),
            kernel: read("/proc/sys/kernel/osrelease"),
            load: first(read("/proc/loadavg")).parse().unwrap_or(0.0),
            congestion_control: read("/proc/sys/net/ipv4/tcp_congestion_control"),
        }
    }

    /// Is somebody else using the processors? Then the numbers are worth less, and the header says so.
    pub fn busy(&self) -> bool {
        self.load > 0.5 * self.cores as f64
    }

    pub fn line(&self) -> String {
        let busy = if self.busy() {
            " (BUSY: expect noise)"
        } else {
            ""
        };
        format!(
            "{} cores, {}, Linux {}; load {:.2}{busy}; congestion control {}",
            self.cores, self.cpu, self.kernel, self.load, self.congestion_control
        )
    }
}

fn cpu_model(cpuinfo: &str) -> String {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    let model = line
        .and_then(|line| line.split_once(':'))
        .map(|(_, model)| model.trim());
    model.unwrap_or("unknown processor").to_owned()
}

/// The processors that we may use, in order.
pub fn cpus() -> Vec<usize> {
    // SAFETY: cpu_set_t is plain data and the kernel fills it; CPU_ISSET checks its index.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        (0..libc::CPU_SETSIZE as usize)
            .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
            .collect()
    }
}

/// Does the kernel offer this congestion control?
pub fn has_congestion_control(name: &str) -> bool {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    list.split_whitespace().any(|entry| entry == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_model() {
        assert_eq!(
            cpu_model("processor: 0\nmodel name\t: Some CPU @ 2 GHz\n"),
            "Some CPU @ 2 GHz"
        );
        assert_eq!(cpu_model(""), "unknown processor");
    }
}
