//! What is left of a burst of writes when the disk fails, freezes or loses its power at any moment.
//!
//! A fixed burst (new files, edits, overwrites, deletions, renames of files and of whole directories)
//! runs through the real engine on a [`SimulatedDisk`], which strikes at its n-th write or sync. Then the
//! store is opened again on what survived, and must hold every acknowledged write exactly, and the one
//! that was on its way whole or not at all.
//!
//! The tests try each sync and some of the writes. `WARM_FAULT_POINTS=all` tries every write with many
//! tears each, which takes minutes.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::contract::{Command, CommandLimits, Get, Limits, List, Remember};
use crate::seat::store_path;
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
    fn run(&self, engine: &Engine, root: &str) -> Result<(), Error> {
        let path = |name: &str| format!("{root}/{name}");
        let command = match self {
            Self::Put(name, text) => {
                let (key, text) = (Some(path(name)), text.clone());
                return engine.remember(Remember { key, text, ..Remember::default() }).map(|_| ());
            }
            Self::Edit(name, old, new) => {
                // The first of several would be refused: what is replaced must be there once.
                let text = engine.get(&Get { key: path(name) })?.text;
                let edited = text.replacen(old, new, 1);
                Command::StrReplace { path: path(name), old_str: text, new_str: Some(edited) }
            }
            Self::Delete(name) => Command::Delete { path: path(name) },
            Self::Rename(from, to) => Command::Rename { old_path: path(from), new_path: path(to) },
        };
        engine.command(command, CommandLimits::default()).map(|_| ())
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

struct Home {
    _dir: tempfile::TempDir,
    vault: Vault,
    /// A store that holds one memory, closed cleanly.
    start: Vec<u8>,
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
        let start = fs::read(store_path(&vault.namespace_dir("n"))).unwrap();
        Self { _dir: dir, vault, start }
    }

    fn engine_on(&self, disk: &SimulatedDisk) -> Option<Engine> {
        Engine::open_on(&self.vault, "n", Limits::default(), Box::new(disk.clone())).ok()
    }

    /// Opens what survived as any start would.
    fn engine_after(&self, surviving: &[u8]) -> Engine {
        fs::write(store_path(&self.vault.namespace_dir("n")), surviving).unwrap();
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
fn strike(home: &Home, trees: &[Tree], writers: usize, at: At, fault: Fault, survivors: Survivors) {
    let disk = SimulatedDisk::holding(&home.start).with_fault(at, fault);
    let acknowledged: Vec<_> = (0..writers).map(|_| AtomicUsize::new(0)).collect();
    let ended = AtomicBool::new(false);
    let surviving = thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(engine) = home.engine_on(&disk) {
                thread::scope(|scope| {
                    for (writer, acknowledged) in acknowledged.iter().enumerate() {
                        let engine = &engine;
                        scope.spawn(move || {
                            for step in burst() {
                                if step.run(engine, &root(writer)).is_err() {
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
        let surviving = disk.surviving(survivors);
        disk.kill();
        surviving
    });
    let engine = home.engine_after(&surviving);
    let point = format!("{at:?}, {fault:?}, {survivors:?}");
    assert_eq!(engine.damaged(), [""; 0], "{point}");
    assert_eq!(engine.get(&Get { key: "old".into() }).unwrap().text, "kept", "{point}");
    for (writer, acknowledged) in acknowledged.iter().enumerate() {
        let done = acknowledged.load(Ordering::SeqCst);
        let found = tree(&engine, &root(writer));
        let whole = found == trees[done] || trees.get(done + 1) == Some(&found);
        assert!(whole, "{point}: writer {writer} was told of {done} writes and finds {:?}", found.keys());
    }
    let put = Step::Put("after", "works".into());
    put.run(&engine, "/memories").unwrap_or_else(|_| panic!("{point}: writes are taken again"));
}

fn all_points() -> bool {
    std::env::var_os("WARM_FAULT_POINTS").is_some_and(|points| points == "all")
}

/// How many writes and syncs the burst makes, the opening of the store included.
fn counts(home: &Home) -> (u64, u64) {
    let disk = SimulatedDisk::holding(&home.start);
    let engine = home.engine_on(&disk).unwrap();
    for step in burst() {
        step.run(&engine, &root(0)).unwrap();
    }
    assert_eq!(&tree(&engine, &root(0)), trees().last().unwrap(), "the model is the engine's");
    disk.counts()
}

#[test]
fn whatever_happens_at_any_sync_nothing_acknowledged_is_lost_and_nothing_is_half_done() {
    let (home, trees) = (Home::new(), trees());
    let (_, syncs) = counts(&home);
    let tears = if all_points() { 20 } else { 1 };
    for n in 1..=syncs {
        let at = At::Sync(n);
        strike(&home, &trees, 1, at, Fault::Freeze, Survivors::Nothing);
        strike(&home, &trees, 1, at, Fault::Freeze, Survivors::Everything);
        for tear in 0..tears {
            strike(&home, &trees, 1, at, Fault::Freeze, Survivors::Torn(n * 1_000 + tear));
            strike(&home, &trees, 1, at, Fault::Fail, Survivors::Torn(n * 1_000 + tear));
        }
    }
}

#[test]
fn whatever_happens_at_a_write_nothing_acknowledged_is_lost_and_nothing_is_half_done() {
    let (home, trees) = (Home::new(), trees());
    let (writes, _) = counts(&home);
    let (tears, every) = if all_points() { (5, 1) } else { (1, 5) };
    for n in (1..=writes).step_by(every) {
        for tear in 0..tears {
            strike(&home, &trees, 1, At::Write(n), Fault::Freeze, Survivors::Torn(n * 1_000 + tear));
        }
        strike(&home, &trees, 1, At::Write(n), Fault::Fail, Survivors::Torn(n));
    }
}

#[test]
fn each_write_of_a_group_is_whole_or_absent_wherever_the_power_goes() {
    let (home, trees) = (Home::new(), trees());
    let (_, syncs) = counts(&home);
    for n in (1..=syncs).step_by(if all_points() { 1 } else { 3 }) {
        strike(&home, &trees, 4, At::Sync(n), Fault::Freeze, Survivors::Torn(n));
        strike(&home, &trees, 4, At::Sync(n), Fault::Fail, Survivors::Torn(n));
    }
}

#[test]
fn after_a_failed_commit_the_store_is_opened_again_in_the_same_process() {
    let (home, trees) = (Home::new(), trees());
    let (writes, syncs) = counts(&home);
    let points = (20..=writes).step_by(20).map(At::Write).chain((9..=syncs).step_by(6).map(At::Sync));
    for at in points {
        let disk = SimulatedDisk::holding(&home.start).with_fault(at, Fault::Fail);
        let engine = home.engine_on(&disk).expect("the fault comes later");
        let failed = burst().iter().position(|step| step.run(&engine, &root(0)).is_err());
        let done = failed.expect("the fault strikes");
        assert!(engine.is_shut(), "{at:?}");
        let refused = Step::Put("more", "text".into()).run(&engine, &root(0)).unwrap_err();
        assert!(refused.to_string().contains("was shut after an earlier failure"), "{refused}");
        drop(engine);
        let engine = home.engine_on(&disk).unwrap_or_else(|| panic!("{at:?}: it opens again"));
        assert!(!engine.is_shut());
        let found = tree(&engine, &root(0));
        assert!(found == trees[done] || found == trees[done + 1], "{at:?}");
        Step::Put("more", "text".into()).run(&engine, &root(0)).unwrap();
    }
}

#[test]
fn sixteen_writers_at_once_share_one_sync_among_six_writes() {
    const WRITERS: usize = 16;
    const EACH: usize = 24;
    let home = Home::new();
    let disk = SimulatedDisk::slow(&home.start, Duration::from_millis(4));
    let engine = home.engine_on(&disk).unwrap();
    let put = |writer: usize, n: usize| {
        let (key, text) = (Some(format!("{writer}-{n}")), "text".to_owned());
        engine.remember(Remember { key, text, ..Remember::default() }).unwrap();
    };
    let (_, before) = disk.counts();
    put(WRITERS, 0);
    let (_, alone) = disk.counts();
    assert_eq!(alone - before, 2, "a commit is two syncs");
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let put = &put;
            scope.spawn(move || (0..EACH).for_each(|n| put(writer, n)));
        }
    });
    let syncs = disk.counts().1 - alone;
    assert!(syncs as usize * 6 <= WRITERS * EACH, "{syncs} syncs for {} writes", WRITERS * EACH);
}
