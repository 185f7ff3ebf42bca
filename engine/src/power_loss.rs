//! What is left of a burst of writes when the disk fails, freezes or loses its power at any moment.
//!
//! A fixed burst (new files, edits, overwrites, deletions, renames of files and of whole directories)
//! runs through the real engine on a [`SimulatedDisk`], which strikes at its n-th write or sync. Then the
//! store is opened again on what survived, and must hold every acknowledged write exactly, and the one
//! that was on its way whole or not at all. Every write has a name. Sent again under it, as by a process
//! whose way to the store was cut, each was made exactly once and is answered as it was or would have been.
//!
//! The tests try each sync and some of the writes. `WARM_FAULT_POINTS=all` tries every write with many
//! tears each, which takes minutes.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::contract::{Command, CommandLimits, Get, Limits, List, OperationId, Remember, Write, Written};
use crate::seat::{slot_path, store_path};
use crate::store::simulated_disk::{At, Fault, SimulatedDisk, Survivors};
use crate::vault::{Vault, VaultOptions};
use crate::{Engine, Error};

/// One write of the burst, below a directory that one writer has for itself.
enum Step {
    Put(&'static str, String),
    Edit(&'static str, &'static str, &'static str),
    Delete(&'static str),
    Rename(&'static str, &'static str),
}

fn burst() -> Vec<Step> {
    use Step::{Delete, Edit, Put, Rename};
    let long = |word: &str| word.repeat(3_000 / word.len());
    vec![
        Put("a/one", "first one".into()),
        Put("a/two", long("second ")),
        Edit("a/one", "first", "third"),
        Put("a/deep/three", "nested".into()),
        Rename("a", "b"),
        Put("a/one", "a new one".into()),
        Put("b/two", long("overwritten ")),
        Delete("b/one"),
        Put("big", "x".repeat(20_000)),
        Rename("b/deep/three", "c/three"),
        Edit("b/two", "overwritten overwritten ", "edited "),
        Delete("big"),
        Rename("c", "a/c"),
        Put("last", "the last".into()),
        Delete("a"),
    ]
}

type Tree = BTreeMap<String, String>;

impl Step {
    /// The write that makes this step from the tree before it.
    fn write(&self, before: &Tree, root: &str) -> Write {
        let path = |name: &str| format!("{root}/{name}");
        let command = match self {
            Self::Put(name, text) => {
                let (key, text) = (Some(path(name)), text.clone());
                return Write::Remember(Remember { key, text, ..Remember::default() });
            }
            Self::Edit(name, old, new) => {
                // The first of several would be refused: what is replaced must be there once.
                let text = before[*name].clone();
                let edited = text.replacen(old, new, 1);
                Command::StrReplace { path: path(name), old_str: text, new_str: Some(edited) }
            }
            Self::Delete(name) => Command::Delete { path: path(name) },
            Self::Rename(from, to) => Command::Rename { old_path: path(from), new_path: path(to) },
        };
        Write::Command(command, CommandLimits::default())
    }

    fn model(&self, tree: &mut Tree) {
        let below = |key: &str, name: &str| key == name || key.starts_with(&format!("{name}/"));
        match self {
            Self::Put(name, text) => drop(tree.insert((*name).into(), text.clone())),
            Self::Edit(name, old, new) => {
                let text = tree[*name].replacen(old, new, 1);
                tree.insert((*name).into(), text);
            }
            Self::Delete(name) => tree.retain(|key, _| !below(key, name)),
            Self::Rename(from, to) => {
                *tree = std::mem::take(tree)
                    .into_iter()
                    .map(
                        |(key, text)| {
                            if below(&key, from) { (key.replacen(from, to, 1), text) } else { (key, text) }
                        },
                    )
                    .collect();
            }
        }
    }
}

/// The tree before the burst and after each step of it.
fn trees() -> Vec<Tree> {
    let mut trees = vec![Tree::new()];
    for step in burst() {
        let mut next = trees.last().cloned().unwrap_or_default();
        step.model(&mut next);
        trees.push(next);
    }
    trees
}

/// Sends a step of a writer's burst under its name; returns the answer as it is for every writer.
fn send(engine: &Engine, trees: &[Tree], writer: usize, step: usize) -> Result<String, Error> {
    let root = root(writer);
    let write = burst()[step].write(&trees[step], &root);
    let name = OperationId { client: [writer as u8; 16], counter: step as u64 };
    let answer = match engine.write(write, Some(name))? {
        Written::Command(told) => {
            let gone = told.receipt.map_or(0, |receipt| receipt.count);
            format!("{} ({gone} forgotten)", told.result)
        }
        Written::Remember(stored) => format!("{} {} {}", stored.key, stored.created, stored.bytes),
        Written::Forget(_) | Written::Restore(_) => unreachable!("the burst has no such write"),
    };
    Ok(answer.replace(&root, "root"))
}

fn put(engine: &Engine, key: &str) -> Result<(), Error> {
    let (key, text) = (Some(key.to_owned()), "works".to_owned());
    engine.remember(Remember { key, text, ..Remember::default() }).map(|_| ())
}

/// What the burst comes to where nothing happens to it.
struct Expected {
    trees: Vec<Tree>,
    answers: Vec<String>,
    /// How many writes and syncs it makes, the opening of the store included.
    writes: u64,
    syncs: u64,
}

impl Expected {
    fn on(home: &Home) -> Self {
        let (disks, trees) = (home.disks(), trees());
        let engine = home.engine_on(&disks).unwrap();
        let answers = (0..burst().len()).map(|step| send(&engine, &trees, 0, step).unwrap()).collect();
        assert_eq!(&tree(&engine, &root(0)), trees.last().unwrap(), "the model is the engine's");
        let (writes, syncs) = disks.store.counts();
        Self { trees, answers, writes, syncs }
    }

    /// Holds a writer that was told of so many writes to the promise, on a store that was opened again.
    fn check(&self, engine: &Engine, writer: usize, done: usize, point: &str) {
        let found = tree(engine, &root(writer));
        let whole = found == self.trees[done] || self.trees.get(done + 1) == Some(&found);
        assert!(whole, "{point}: writer {writer} was told of {done} writes and finds {:?}", found.keys());
        // The last that was answered, and the one that was on its way.
        for step in done.saturating_sub(1)..(done + 1).min(burst().len()) {
            let answer = send(engine, &self.trees, writer, step);
            let answer = answer.unwrap_or_else(|error| panic!("{point}: {step} sent again: {error}"));
            assert_eq!(answer, self.answers[step], "{point}: {step} is answered alike");
        }
        let settled = &self.trees[(done + 1).min(burst().len())];
        assert!(&tree(engine, &root(writer)) == settled, "{point}: writer {writer}: each is made once");
    }
}

struct Home {
    _dir: tempfile::TempDir,
    vault: Vault,
    /// A store that holds one memory, closed cleanly, and its slot.
    start: (Vec<u8>, Vec<u8>),
}

/// The files of a store on one disk.
struct Disks {
    store: SimulatedDisk,
    slot: SimulatedDisk,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None };
        let vault = Vault::open(&options).unwrap();
        let engine = Engine::open(&vault, "n", Limits::default()).unwrap();
        engine
            .remember(Remember { key: Some("old".into()), text: "kept".into(), ..Remember::default() })
            .unwrap();
        drop(engine);
        let at = vault.namespace_dir("n");
        let start = (fs::read(store_path(&at)).unwrap(), fs::read(slot_path(&at)).unwrap());
        Self { _dir: dir, vault, start }
    }

    fn disks(&self) -> Disks {
        self.gated(|| {})
    }

    fn gated(&self, gate: impl Fn() + Send + Sync + 'static) -> Disks {
        let store = SimulatedDisk::gated(&self.start.0, gate);
        Disks { slot: store.beside(&self.start.1), store }
    }

    fn engine_on(&self, disks: &Disks) -> Option<Engine> {
        let (store, slot) = (Box::new(disks.store.clone()), Box::new(disks.slot.clone()));
        Engine::open_on(&self.vault, "n", Limits::default(), store, slot).ok()
    }

    /// Opens what survived as any start would.
    fn engine_after(&self, surviving: &(Vec<u8>, Vec<u8>)) -> Engine {
        let at = self.vault.namespace_dir("n");
        fs::write(store_path(&at), &surviving.0).unwrap();
        fs::write(slot_path(&at), &surviving.1).unwrap();
        Engine::open(&self.vault, "n", Limits::default()).expect("what survived opens")
    }
}

/// The files below a directory.
fn tree(engine: &Engine, root: &str) -> Tree {
    let prefix = format!("{root}/");
    let list = List { prefix: Some(prefix.clone()), limit: Some(100), ..List::default() };
    let listed = engine.list(&list).unwrap().memories;
    listed
        .into_iter()
        .map(|memory| {
            let text = engine.get(&Get { key: memory.key.clone() }).expect("what is listed opens").text;
            (memory.key[prefix.len()..].to_owned(), text)
        })
        .collect()
}

fn root(writer: usize) -> String {
    format!("/memories/w{writer}")
}

/// Runs the burst with so many writers at once until it ends or the fault strikes; kills the process,
/// and holds what survived to the promise.
fn strike(home: &Home, expected: &Expected, writers: usize, at: At, fault: Fault, survivors: Survivors) {
    let disks = home.disks();
    let disk = disks.store.clone().with_fault(at, fault);
    let acknowledged: Vec<_> = (0..writers).map(|_| AtomicUsize::new(0)).collect();
    let ended = AtomicBool::new(false);
    let surviving = thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(engine) = home.engine_on(&disks) {
                thread::scope(|scope| {
                    for (writer, acknowledged) in acknowledged.iter().enumerate() {
                        let engine = &engine;
                        scope.spawn(move || {
                            for step in 0..burst().len() {
                                if send(engine, &expected.trees, writer, step).is_err() {
                                    break;
                                }
                                acknowledged.fetch_add(1, Ordering::SeqCst);
                            }
                        });
                    }
                });
            }
            ended.store(true, Ordering::SeqCst);
        });
        disk.wait_frozen(|| ended.load(Ordering::SeqCst));
        let surviving = (disk.surviving(survivors), disks.slot.surviving(survivors));
        disk.kill();
        surviving
    });
    let engine = home.engine_after(&surviving);
    let point = format!("{at:?}, {fault:?}, {survivors:?}");
    assert_eq!(engine.damaged(), [""; 0], "{point}");
    assert_eq!(engine.get(&Get { key: "old".into() }).unwrap().text, "kept", "{point}");
    for (writer, acknowledged) in acknowledged.iter().enumerate() {
        expected.check(&engine, writer, acknowledged.load(Ordering::SeqCst), &point);
    }
    put(&engine, "after").unwrap_or_else(|_| panic!("{point}: writes are taken again"));
}

fn all_points() -> bool {
    std::env::var_os("WARM_FAULT_POINTS").is_some_and(|points| points == "all")
}

#[test]
fn whatever_happens_at_any_sync_nothing_acknowledged_is_lost_and_nothing_is_half_done() {
    let home = Home::new();
    let expected = Expected::on(&home);
    let tears = if all_points() { 20 } else { 1 };
    for n in 1..=expected.syncs {
        let at = At::Sync(n);
        strike(&home, &expected, 1, at, Fault::Freeze, Survivors::Nothing);
        strike(&home, &expected, 1, at, Fault::Freeze, Survivors::Everything);
        for tear in 0..tears {
            strike(&home, &expected, 1, at, Fault::Freeze, Survivors::Torn(n * 1_000 + tear));
            strike(&home, &expected, 1, at, Fault::Fail, Survivors::Torn(n * 1_000 + tear));
        }
    }
}

#[test]
fn whatever_happens_at_a_write_nothing_acknowledged_is_lost_and_nothing_is_half_done() {
    let home = Home::new();
    let expected = Expected::on(&home);
    let (tears, every) = if all_points() { (5, 1) } else { (1, 5) };
    for n in (1..=expected.writes).step_by(every) {
        for tear in 0..tears {
            strike(&home, &expected, 1, At::Write(n), Fault::Freeze, Survivors::Torn(n * 1_000 + tear));
        }
        strike(&home, &expected, 1, At::Write(n), Fault::Fail, Survivors::Torn(n));
    }
}

#[test]
fn each_write_of_a_group_is_whole_or_absent_wherever_the_power_goes() {
    let home = Home::new();
    let expected = Expected::on(&home);
    for n in (1..=expected.syncs).step_by(if all_points() { 1 } else { 3 }) {
        strike(&home, &expected, 4, At::Sync(n), Fault::Freeze, Survivors::Torn(n));
        strike(&home, &expected, 4, At::Sync(n), Fault::Fail, Survivors::Torn(n));
    }
}

#[test]
fn after_a_failed_commit_the_store_is_opened_again_in_the_same_process() {
    let home = Home::new();
    let expected = Expected::on(&home);
    let writes = (20..=expected.writes).step_by(20).map(At::Write);
    let points: Vec<_> = writes.chain((9..=expected.syncs).step_by(6).map(At::Sync)).collect();
    let mut struck = 0;
    for &at in &points {
        let disks = home.disks();
        disks.store.clone().with_fault(at, Fault::Fail);
        let engine = home.engine_on(&disks).expect("the fault comes later");
        let failed = (0..burst().len()).find(|step| send(&engine, &expected.trees, 0, *step).is_err());
        // Runs differ by a few writes, so that the last points may come too late.
        let Some(done) = failed else { continue };
        struck += 1;
        assert!(engine.is_shut(), "{at:?}");
        let refused = put(&engine, "more").unwrap_err();
        assert!(refused.to_string().contains("was shut after an earlier failure"), "{refused}");
        drop(engine);
        let engine = home.engine_on(&disks).unwrap_or_else(|| panic!("{at:?}: it opens again"));
        assert!(!engine.is_shut());
        expected.check(&engine, 0, done, &format!("{at:?}"));
        put(&engine, "more").unwrap();
    }
    assert!(struck * 2 > points.len(), "{struck} of {} faults struck", points.len());
}

/// A sync lasts until every writer has a write on its way, however busy the machine is. So of two turns at most
/// one serves few. How the next turn waits for those that the last one released is tested in `turns`.
#[test]
fn sixteen_writers_at_once_share_one_sync_among_three_writes() {
    const WRITERS: usize = 16;
    const EACH: usize = 24;
    let home = Home::new();
    let (alive, on_their_way) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = {
        let (alive, on_their_way) = (Arc::clone(&alive), Arc::clone(&on_their_way));
        move || {
            while on_their_way.load(Ordering::SeqCst) < alive.load(Ordering::SeqCst) {
                thread::sleep(Duration::from_micros(50));
            }
            // From being on its way to standing in the queue is a few microseconds.
            thread::sleep(Duration::from_millis(4));
        }
    };
    let disks = home.gated(gate);
    let (engine, disk) = (home.engine_on(&disks).unwrap(), &disks.store);
    let (_, before) = disk.counts();
    put(&engine, "alone").unwrap();
    let (_, alone) = disk.counts();
    assert_eq!(alone - before, 3, "a commit is two syncs of the store and one of the slot");
    alive.store(WRITERS, Ordering::SeqCst);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (engine, alive, on_their_way) = (&engine, &alive, &on_their_way);
            scope.spawn(move || {
                let made = (0..EACH).all(|n| {
                    on_their_way.fetch_add(1, Ordering::SeqCst);
                    let made = put(engine, &format!("{writer}-{n}"));
                    on_their_way.fetch_sub(1, Ordering::SeqCst);
                    made.is_ok()
                });
                alive.fetch_sub(1, Ordering::SeqCst);
                assert!(made);
            });
        }
    });
    let syncs = disk.counts().1 - alone;
    assert!(syncs as usize * 3 <= WRITERS * EACH, "{syncs} syncs for {} writes", WRITERS * EACH);
}
