//! A disk for tests whose cache is lost with its power. It may hold several files.
//!
//! What is written is read back at once and is on the medium only after a sync, as with a real one. At a
//! chosen write or sync the disk [fails or freezes](Fault); [`SimulatedDisk::surviving`] is then what
//! could be found on the medium after the power is gone: any of the sectors that waited, in any order.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use redb::StorageBackend;

use crate::vault::SlotMedium;

#[path = "../../tests/common/seeded.rs"]
mod seeded;
use seeded::Seeded;

/// The unit that reaches a medium whole or not at all.
const SECTOR: usize = 512;

/// Where a fault strikes, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Write(u64),
    Sync(u64),
}

/// What then happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This one call is an error: a full disk, a sync that fails.
    Fail,
    /// Nothing returns any more until the process is [killed](SimulatedDisk::kill).
    Freeze,
}

/// What of the unsynced sectors reached the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survivors {
    Nothing,
    Everything,
    /// Some, by this seed.
    Torn(u64),
}

/// One file of a disk; see the module. Clones are of the same file.
#[derive(Clone)]
pub(crate) struct SimulatedDisk(Arc<Disk>, usize);

struct Disk {
    state: Mutex<State>,
    changed: Condvar,
    gate: Box<dyn Fn() + Send + Sync>,
}

struct Contents {
    /// As it is read.
    now: Vec<u8>,
    /// As it is on the medium.
    medium: Vec<u8>,
    pending: Vec<Pending>,
}

impl Contents {
    fn of(bytes: &[u8]) -> Self {
        Self { now: bytes.to_vec(), medium: bytes.to_vec(), pending: Vec::new() }
    }
}

struct State {
    files: Vec<Contents>,
    /// Of all files together.
    writes: u64,
    syncs: u64,
    fault: Option<(At, Fault)>,
    frozen: bool,
    killed: bool,
}

enum Pending {
    Sector(usize, Vec<u8>),
    Length(usize),
}

impl SimulatedDisk {
    pub(crate) fn holding(bytes: &[u8]) -> Self {
        Self::gated(bytes, || {})
    }

    /// A disk of which every sync lasts as long as `gate`.
    pub(crate) fn gated(bytes: &[u8], gate: impl Fn() + Send + Sync + 'static) -> Self {
        let state = State {
            files: vec![Contents::of(bytes)],
            writes: 0,
            syncs: 0,
            fault: None,
            frozen: false,
            killed: false,
        };
        Self(Arc::new(Disk { state: Mutex::new(state), changed: Condvar::new(), gate: Box::new(gate) }), 0)
    }

    /// Another file on the same disk.
    pub(crate) fn beside(&self, bytes: &[u8]) -> Self {
        let mut state = self.0.state.lock();
        state.files.push(Contents::of(bytes));
        Self(Arc::clone(&self.0), state.files.len() - 1)
    }

    pub(crate) fn with_fault(self, at: At, fault: Fault) -> Self {
        self.0.state.lock().fault = Some((at, fault));
        self
    }

    /// Writes and syncs so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let state = self.0.state.lock();
        (state.writes, state.syncs)
    }

    /// Waits until the disk is frozen, or until `ended` says that nothing will freeze it.
    pub(crate) fn wait_frozen(&self, ended: impl Fn() -> bool) {
        let mut state = self.0.state.lock();
        while !state.frozen && !ended() {
            self.0.changed.wait_for(&mut state, Duration::from_millis(1));
        }
    }

    /// Ends the process that uses the disk: every call returns with an error and changes nothing.
    pub(crate) fn kill(&self) {
        self.0.state.lock().killed = true;
        self.0.changed.notify_all();
    }

    /// What is found on the medium once the power is gone.
    pub(crate) fn surviving(&self, survivors: Survivors) -> Vec<u8> {
        let state = self.0.state.lock();
        let state = &state.files[self.1];
        let mut random = match survivors {
            Survivors::Nothing => return state.medium.clone(),
            Survivors::Everything => return state.now.clone(),
            Survivors::Torn(seed) => Seeded(seed ^ (self.1 as u64) << 32),
        };
        let mut medium = state.medium.clone();
        let lengths = state.pending.iter().filter_map(|pending| match pending {
            Pending::Length(length) => Some(*length),
            Pending::Sector(..) => None,
        });
        let lengths: Vec<_> = std::iter::once(medium.len()).chain(lengths).collect();
        let reached = random.below(lengths.len() as u64) as usize;
        let shortest = lengths[..=reached].iter().copied().min().unwrap_or_default();
        medium.truncate(shortest);
        medium.resize(lengths[reached], 0);
        let mut versions = BTreeMap::<usize, Vec<&[u8]>>::new();
        for pending in &state.pending {
            if let Pending::Sector(sector, bytes) = pending {
                versions.entry(*sector).or_default().push(bytes);
            }
        }
        for (sector, versions) in versions {
            // The one on the medium counts as one of them.
            if let Some(bytes) =
                random.below(versions.len() as u64 + 1).checked_sub(1).map(|n| versions[n as usize])
            {
                let from = (sector * SECTOR).min(medium.len());
                let to = (from + bytes.len()).min(medium.len());
                medium[from..to].copy_from_slice(&bytes[..to - from]);
            }
        }
        medium
    }
}

impl Disk {
    /// Lets the fault strike where it is its turn.
    fn strike(&self, mut state: parking_lot::MutexGuard<'_, State>, at: At) -> io::Result<()> {
        match state.fault {
            Some((there, Fault::Fail)) if there == at => Err(io::Error::other("made to fail")),
            Some((there, Fault::Freeze)) if there == at => {
                state.frozen = true;
                self.changed.notify_all();
                while !state.killed {
                    self.changed.wait(&mut state);
                }
                Err(dead())
            }
            _ => Ok(()),
        }
    }

    /// The state, unless the process is dead; waits for its death where the disk is frozen.
    fn alive(&self) -> io::Result<parking_lot::MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        while state.frozen && !state.killed {
            self.changed.wait(&mut state);
        }
        if state.killed { Err(dead()) } else { Ok(state) }
    }
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl StorageBackend for SimulatedDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.alive()?.files[self.1].now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.alive()?;
        let state = &state.files[self.1];
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = from.checked_add(out.len()).and_then(|to| state.now.get(from..to));
        out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.0.alive()?;
        let state = &mut state.files[self.1];
        let length = usize::try_from(len).map_err(io::Error::other)?;
        state.now.resize(length, 0);
        state.pending.push(Pending::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.alive()?;
        state.syncs += 1;
        let at = At::Sync(state.syncs);
        self.0.strike(state, at)?;
        (self.0.gate)();
        let mut state = self.0.alive()?;
        let state = &mut state.files[self.1];
        state.medium = state.now.clone();
        state.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut guard = self.0.alive()?;
        let state = &mut *guard;
        state.writes += 1;
        let at = At::Write(state.writes);
        if state.fault == Some((at, Fault::Fail)) {
            return self.0.strike(guard, at);
        }
        let state = &mut state.files[self.1];
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let to = from + data.len();
        if to > state.now.len() {
            state.now.resize(to, 0);
            state.pending.push(Pending::Length(to));
        }
        state.now[from..to].copy_from_slice(data);
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            let bytes = &state.now[sector * SECTOR..((sector + 1) * SECTOR).min(state.now.len())];
            state.pending.push(Pending::Sector(sector, bytes.to_vec()));
        }
        self.0.strike(guard, at)
    }
}

impl SlotMedium for SimulatedDisk {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        StorageBackend::read(self, offset, bytes)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        StorageBackend::write(self, offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDisk").finish_non_exhaustive()
    }
}

#[test]
fn what_is_not_synced_may_be_lost_or_kept_sector_by_sector_and_what_is_synced_stays() {
    let disk = SimulatedDisk::holding(&[0; 4 * SECTOR]);
    let beside = disk.beside(&[0; SECTOR]);
    let write = |file: &SimulatedDisk, at, bytes: &[u8]| StorageBackend::write(file, at, bytes).unwrap();
    write(&disk, 0, &[1; SECTOR]);
    write(&beside, 0, &[1; SECTOR]);
    disk.sync_data().unwrap();
    assert_eq!(beside.surviving(Survivors::Nothing), [0; SECTOR], "a sync is of one file");
    write(&disk, 0, &[2; 4 * SECTOR]);
    write(&disk, SECTOR as u64, &[3; SECTOR]);
    assert_eq!(disk.surviving(Survivors::Nothing)[..2 * SECTOR], [[1; SECTOR], [0; SECTOR]].concat());
    assert_eq!(disk.surviving(Survivors::Everything)[SECTOR], 3);
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let torn = disk.surviving(Survivors::Torn(seed));
        assert!(torn.chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        seen.insert(torn.chunks(SECTOR).map(|sector| sector[0]).collect::<Vec<_>>());
    }
    assert_eq!(seen.len(), 2 * 3 * 2 * 2, "every mixture comes up");
}
