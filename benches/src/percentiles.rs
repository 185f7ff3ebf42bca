//! Percentiles of measured times.

use std::time::Duration;

/// In microseconds.
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl Percentiles {
    /// Of all times; zero for none.
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: f64| {
            let index = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
            times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        Self { p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99), max: at(1.0) }
    }
}
