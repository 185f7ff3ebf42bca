//! Whose turn it is to commit, and for whom.
//!
//! Writers queue. One of them takes a turn for all that are queued; the others wait until theirs is done.
//! Syncs are what a turn costs, so it is worth its while to be taken by many: whoever is next waits a
//! moment for the writers that the last turn has just released, as many as were seen then, and no longer
//! than half of what that turn took. A writer that is alone, or comes later than that, never waits.
//!
//! Knows nothing of what is queued.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// See the module.
pub(crate) struct Turns<J> {
    line: Mutex<Line<J>>,
    arrived: Condvar,
    done: Condvar,
}

struct Line<J> {
    queue: Vec<J>,
    /// Whether a turn is being taken.
    taken: bool,
    /// How many were ever queued, and how many of them are done: they are done in their order.
    queued: u64,
    done: u64,
    last: Option<Last>,
}

/// The turn before this one.
#[derive(Clone, Copy)]
struct Last {
    ended: Instant,
    took: Duration,
    /// How many it served or left waiting.
    writers: usize,
}

impl<J> Turns<J> {
    pub(crate) fn new() -> Self {
        let line = Line { queue: Vec::new(), taken: false, queued: 0, done: 0, last: None };
        Self { line: Mutex::new(line), arrived: Condvar::new(), done: Condvar::new() }
    }

    /// Returns once a turn that held this job is over: somebody's, or one taken here with `turn`.
    pub(crate) fn run(&self, job: J, turn: impl FnOnce(Vec<J>)) {
        let mut line = self.line.lock();
        let ticket = line.queued;
        line.queued += 1;
        line.queue.push(job);
        self.arrived.notify_one();
        while line.taken && line.done <= ticket {
            self.done.wait(&mut line);
        }
        if line.done > ticket {
            return;
        }
        line.taken = true;
        if let Some(last) = line.last {
            let until = last.ended + last.took / 2;
            while line.queue.len() < last.writers && !self.arrived.wait_until(&mut line, until).timed_out() {}
        }
        let jobs = std::mem::take(&mut line.queue);
        let _over = Turn { turns: self, up_to: line.queued, served: jobs.len(), started: Instant::now() };
        drop(line);
        turn(jobs);
    }

    /// How many are queued, if a turn is being taken meanwhile.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> Option<usize> {
        let line = self.line.lock();
        line.taken.then_some(line.queue.len())
    }
}

/// Ends a turn, also one that panics, so that nobody waits for ever.
struct Turn<'a, J> {
    turns: &'a Turns<J>,
    up_to: u64,
    served: usize,
    started: Instant,
}

impl<J> Drop for Turn<'_, J> {
    fn drop(&mut self) {
        let ended = Instant::now();
        let mut line = self.turns.line.lock();
        line.taken = false;
        line.done = self.up_to;
        let writers = self.served + line.queue.len();
        line.last = Some(Last { ended, took: ended - self.started, writers });
        drop(line);
        self.turns.done.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn every_job_is_in_exactly_one_turn_and_done_before_its_writer_returns() {
        let turns = Turns::new();
        let done: Vec<_> = (0..400).map(|_| AtomicUsize::new(0)).collect();
        thread::scope(|scope| {
            for writer in 0..8 {
                let (turns, done) = (&turns, &done);
                scope.spawn(move || {
                    for n in 0..50 {
                        let job = writer * 50 + n;
                        turns.run(job, |jobs| {
                            for job in jobs {
                                done[job].fetch_add(1, Ordering::SeqCst);
                            }
                        });
                        assert_eq!(done[job].load(Ordering::SeqCst), 1);
                    }
                });
            }
        });
    }

    #[test]
    fn the_next_turn_waits_for_as_many_as_were_seen_by_the_last_and_a_writer_alone_for_nobody() {
        const WRITERS: usize = 16;
        let turns = Turns::new();
        // A last turn so long that no machine is too busy for the writers to come in time.
        let last = |writers| Last { ended: Instant::now(), took: Duration::from_secs(600), writers };
        turns.line.lock().last = Some(last(WRITERS));
        let served = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (turns, served) = (&turns, &served);
                scope.spawn(move || turns.run(writer, |jobs| served.lock().push(jobs.len())));
            }
        });
        assert_eq!(*served.lock(), [WRITERS]);
        turns.line.lock().last = Some(last(1));
        let started = Instant::now();
        turns.run(0, drop);
        assert!(started.elapsed() < Duration::from_secs(300));
    }

    #[test]
    fn a_turn_that_panics_holds_nobody_up() {
        let turns = Turns::new();
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    turns.run(1, |_| {
                        while turns.waiting() != Some(1) {
                            thread::yield_now();
                        }
                        panic!("a fault on purpose")
                    })
                }))
            });
            while turns.waiting() != Some(0) {
                thread::yield_now();
            }
            let mut served = Vec::new();
            turns.run(2, |jobs| served = jobs);
            assert_eq!(served, [2]);
            assert!(first.join().unwrap().is_err());
        });
    }
}
