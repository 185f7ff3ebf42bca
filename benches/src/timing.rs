//! How things are timed.
//!
//! Owns the clock: the best of several rounds, after one that warms up and faults memory in.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;
use warm_kernels::{Isa, Kernels};

/// Seconds of each job's best round. The jobs take turns, so that a slow spell of the machine
/// meets all of them.
pub fn best_in_turns<const N: usize>(rounds: usize, mut jobs: [&mut dyn FnMut(); N]) -> [f64; N] {
    let mut best = [f64::INFINITY; N];
    for round in 0..=rounds {
        for (job, best) in jobs.iter_mut().zip(&mut best) {
            let start = Instant::now();
            job();
            if round > 0 {
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
    }
    best
}

/// Seconds of each of `count` jobs' best round. All are done once in a round, in order, so that each finds the
/// caches as the others leave them; and each is timed alone, so that what else runs on the machine meets
/// few of them in every round.
pub fn best_of_each(rounds: usize, count: usize, mut job: impl FnMut(usize)) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; count];
    for round in 0..=rounds {
        for (at, best) in best.iter_mut().enumerate() {
            let start = Instant::now();
            job(at);
            if round > 0 {
                *best = best.min(start.elapsed().as_secs_f64());
            }
        }
    }
    best
}

/// Seconds of the best round of one job.
pub fn best(rounds: usize, mut job: impl FnMut()) -> f64 {
    let [best] = best_in_turns(rounds, [&mut job]);
    best
}

/// A plain read of `words` by as many threads as the pool that the caller is in has.
pub fn read(kernels: Kernels, words: &[u64]) {
    let threads = rayon::current_num_threads();
    if threads == 1 {
        black_box(kernels.read(black_box(words)));
    } else {
        let part = words.len().div_ceil(4 * threads).max(1);
        black_box(words.par_chunks(part).map(|part| kernels.read(part)).sum::<u64>());
    }
}

/// The kernels asked for, or those that are active.
pub fn kernels(isa: Option<&str>) -> Result<Kernels, warm_kernels::Error> {
    match isa {
        Some(name) => Kernels::new(name.parse::<Isa>()?),
        None => Kernels::active(),
    }
}

/// What a measurement can fail with, on whichever thread it runs.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Runs a whole measurement in a pool of `threads` threads, so that no job pays for entering it.
pub fn on_threads(
    threads: usize,
    measure: impl FnOnce() -> Result<(), Failure> + Send,
) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build()?.install(measure)
}
