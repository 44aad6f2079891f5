//! What this process has used so far.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// User and system time, in microseconds.
    pub cpu_us: f64,
    /// Voluntary context switches: how often a thread went to sleep.
    pub sleeps: f64,
}

impl Usage {
    pub fn now() -> Usage {
        // SAFETY: rusage is plain data that the kernel fills.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &mut usage);
            usage
        };
        let micros = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
        Usage {
            cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
            sleeps: usage.ru_nvcsw as f64,
        }
    }

    pub fn since(&self, start: Usage) -> Usage {
        Usage {
            cpu_us: self.cpu_us - start.cpu_us,
            sleeps: self.sleeps - start.sleeps,
        }
    }
}
