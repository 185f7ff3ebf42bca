//! What changed lately, for those who want to hear of it.
//!
//! Owns a bounded log of the names that commits changed, in their order, and a way to wait for the next. It lives
//! apart from the store, so that one who waits does not keep the store open. Who falls too far behind, or was listening
//! to the log of an earlier opening, is told that something may have been missed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};

use crate::contract::{ChangeMark, Changed, Changes, ChangesSince};
use crate::sealed::RecordId;

/// How many changed names are kept. One commit that changes more is told as something that was missed.
const KEPT: usize = 4_096;

/// A changed name, and whether its memory came or went and was not only changed.
pub(crate) type ChangedName = (Arc<str>, bool);

/// A handle to the log of an open store. Keeps nothing but itself alive.
#[derive(Clone)]
pub struct ChangeLog(Arc<Shared>);

struct Shared {
    log: Mutex<Log>,
    changed: Condvar,
}

struct Log {
    /// Tells this log from those of other openings.
    id: u64,
    /// The number that the next change gets.
    next: u64,
    /// When the last change was made of which nothing is kept.
    forgotten_until: u64,
    recent: VecDeque<Noted>,
    closed: bool,
}

struct Noted {
    at: u64,
    name: ChangedName,
}

impl ChangeLog {
    pub(crate) fn new() -> Self {
        let id = RecordId::random().as_bytes()[..8].try_into().map_or(0, u64::from_le_bytes);
        let log = Log { id, next: 0, forgotten_until: 0, recent: VecDeque::new(), closed: false };
        Self(Arc::new(Shared { log: Mutex::new(log), changed: Condvar::new() }))
    }

    /// Notes the names that a commit changed.
    pub(crate) fn note(&self, names: Vec<ChangedName>) {
        let mut log = self.0.log.lock();
        let now = now();
        log.next += names.len() as u64;
        log.recent.extend(names.into_iter().map(|name| Noted { at: now, name }));
        let surplus = log.recent.len().saturating_sub(KEPT);
        let last = log.recent.drain(..surplus).next_back().map(|noted| noted.at);
        log.forgotten_until = last.unwrap_or(log.forgotten_until);
        drop(log);
        self.0.changed.notify_all();
    }

    /// Lets nobody wait any longer.
    pub(crate) fn close(&self) {
        self.0.log.lock().closed = true;
        self.0.changed.notify_all();
    }

    /// Waits, for so long at most, until something changed since then, and says what. `None` once the store closes.
    pub fn next(&self, since: ChangesSince, wait: Duration) -> Option<Changes> {
        let until = Instant::now() + wait;
        let mut log = self.0.log.lock();
        loop {
            if log.closed {
                return None;
            }
            let changes = log.since(since);
            let timed_out = !changes.changed.is_empty() || changes.missed || Instant::now() >= until;
            if timed_out {
                return Some(changes);
            }
            self.0.changed.wait_until(&mut log, until);
        }
    }
}

/// Nanoseconds since 1970, UTC: fine enough to tell a change before a moment from one after it.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

impl ChangesSince {
    /// From this moment on.
    pub fn now() -> Self {
        Self::Time(now())
    }
}

impl Log {
    fn since(&self, since: ChangesSince) -> Changes {
        let first = self.next - self.recent.len() as u64;
        let (skipped, missed) = match since {
            ChangesSince::Time(at) => {
                let skipped = self.recent.iter().take_while(|noted| noted.at < at).count();
                (skipped, skipped == 0 && first > 0 && self.forgotten_until >= at)
            }
            ChangesSince::Mark(mark) if mark.log == self.id && mark.next <= self.next => {
                let skipped = mark.next.saturating_sub(first);
                (usize::try_from(skipped).unwrap_or(usize::MAX), mark.next < first)
            }
            ChangesSince::Mark(_) => (self.recent.len(), true),
        };
        let changed = self.recent.iter().skip(skipped);
        let changed =
            changed.map(|noted| Changed { key: noted.name.0.to_string(), listed: noted.name.1 }).collect();
        Changes { mark: ChangeMark { log: self.id, next: self.next }, changed, missed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn names(log: &ChangeLog, since: ChangesSince) -> (Vec<String>, bool, ChangesSince) {
        let changes = log.next(since, NOW).unwrap();
        let names = changes.changed.into_iter().map(|changed| changed.key).collect();
        (names, changes.missed, ChangesSince::Mark(changes.mark))
    }

    #[test]
    fn each_change_is_told_once_and_in_order() {
        let log = ChangeLog::new();
        let start = ChangesSince::now();
        log.note(vec![("a".into(), true), ("b".into(), false)]);
        let (first, missed, mark) = names(&log, start);
        assert_eq!((first, missed), (vec!["a".to_owned(), "b".to_owned()], false));
        assert_eq!(names(&log, mark).0, Vec::<String>::new());
        log.note(vec![("a".into(), false)]);
        assert_eq!(names(&log, mark).0, ["a"]);
    }

    #[test]
    fn who_fell_behind_or_listened_to_another_opening_is_told_so() {
        let log = ChangeLog::new();
        let (_, _, mark) = names(&log, ChangesSince::now());
        log.note((0..=KEPT).map(|n| (n.to_string().into(), false)).collect());
        let (told, missed, after) = names(&log, mark);
        assert_eq!((told.len(), missed), (KEPT, true));
        assert!(names(&log, ChangesSince::Time(0)).1);
        assert!(!names(&log, after).1);
        assert!(names(&ChangeLog::new(), after).1);
    }

    #[test]
    fn one_that_waits_is_woken_by_a_change_and_by_the_end() {
        let log = ChangeLog::new();
        let (_, _, mark) = names(&log, ChangesSince::now());
        let waiting = log.clone();
        let waiter = std::thread::spawn(move || waiting.next(mark, Duration::from_secs(60)));
        log.note(vec![("a".into(), true)]);
        assert_eq!(waiter.join().unwrap().unwrap().changed.len(), 1);
        let (_, _, mark) = names(&log, ChangesSince::Time(u64::MAX));
        let waiting = log.clone();
        let waiter = std::thread::spawn(move || waiting.next(mark, Duration::from_secs(60)));
        log.close();
        assert!(waiter.join().unwrap().is_none());
    }
}
