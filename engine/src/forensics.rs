//! Someone keeps a copy of every file of a store after every single operation, as a disk does that copies on
//! write, and has the owner's identity. With the slot as it is now, nothing that was forgotten opens; with the
//! slots of then, it does, so that the search is known to find what there is to find.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use redb::{ReadableDatabase, ReadableTable, TableDefinition};

use crate::Engine;
use crate::contract::{Command, CommandLimits, CopyKind, Copying, Forget, Limits, Remember};
use crate::sealed::{Chain, NodeId, RecordId};
use crate::seat::{slot_path, store_path};
use crate::vault::Vault;
use crate::vault::VaultOptions;
use crate::vault::forensic::{Blob, everything_that_opens};

type Step = Box<dyn Fn(&Engine)>;
type MakeBlob = fn(u64, Vec<u8>) -> Blob;

/// Everything that was ever seen on the disk.
struct Copies {
    dir: PathBuf,
    salt: [u8; 16],
    slots: Vec<Vec<u8>>,
    blobs: HashSet<Blob>,
}

impl Copies {
    fn new(vault: &Vault) -> Self {
        Self { dir: vault.namespace_dir("n"), salt: [0; 16], slots: Vec::new(), blobs: HashSet::new() }
    }

    /// Takes a copy of the files as they are.
    fn take(&mut self) {
        self.slots.push(fs::read(slot_path(&self.dir)).unwrap());
        let copy = tempfile::tempdir().unwrap();
        let path = copy.path().join("copy.redb");
        fs::copy(store_path(&self.dir), &path).unwrap();
        self.look(&path);
    }

    fn look(&mut self, path: &Path) {
        let store = redb::Database::open(path).unwrap();
        let read = store.begin_read().unwrap();
        let meta: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
        let meta = read.open_table(meta).unwrap();
        let meta = |name: &str| meta.get(name).unwrap().map(|value| value.value().to_vec());
        self.salt = meta("salt").unwrap().try_into().unwrap();
        let epoch = u64::from_le_bytes(meta("epoch").unwrap().try_into().unwrap());
        self.blobs.extend(meta("head").map(|head| Blob::Head(epoch, head)));
        let records: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("records");
        for row in read.open_table(records).unwrap().iter().unwrap() {
            let (id, sealed) = row.unwrap();
            self.blobs.insert(Blob::Record(RecordId::from_bytes(*id.value()), sealed.value().to_vec()));
        }
        let blob: [(&str, MakeBlob); 5] = [
            ("nodes", |id, sealed| Blob::Node(NodeId::new((id >> 56) as u8, id << 8 >> 8).unwrap(), sealed)),
            ("pieces", Blob::Piece),
            ("operations", Blob::Note),
            ("erasures", |number, sealed| Blob::Log(Chain::Erasures, number, sealed)),
            ("copies", |number, sealed| Blob::Log(Chain::Copies, number, sealed)),
        ];
        for (name, blob) in blob {
            let table: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(name);
            for row in read.open_table(table).unwrap().iter().unwrap() {
                let (key, sealed) = row.unwrap();
                self.blobs.insert(blob(key.value(), sealed.value().to_vec()));
            }
        }
    }

    /// All that opens for someone who has the identity and these slots.
    fn opened(&self, vault: &Vault, slots: &[Vec<u8>]) -> Vec<(Blob, Vec<u8>)> {
        everything_that_opens(vault, &self.dir, &self.salt, slots, &self.blobs)
    }
}

fn holds(opened: &[(Blob, Vec<u8>)], word: &str) -> bool {
    opened.iter().any(|(_, plain)| plain.windows(word.len()).any(|window| window == word.as_bytes()))
}

fn command(engine: &Engine, command: Command) {
    engine.command(command, CommandLimits::default()).unwrap();
}

fn remember(engine: &Engine, key: &str, text: &str) {
    let (key, text) = (Some(key.to_owned()), text.to_owned());
    engine.remember(Remember { key, text, ..Remember::default() }).unwrap();
}

#[test]
fn with_every_copy_ever_made_and_the_identity_nothing_that_was_forgotten_opens() {
    let dir = tempfile::tempdir().unwrap();
    let options = VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None };
    let vault = Vault::open(&options).unwrap();
    let mut copies = Copies::new(&vault);
    let engine = Engine::open(&vault, "n", Limits::default()).unwrap();
    let steps: Vec<Step> = vec![
        Box::new(|e| remember(e, "kept", "evergreen")),
        Box::new(|e| remember(e, "replaced", "firstling")),
        Box::new(|e| remember(e, "replaced", "secondling")),
        Box::new(|e| {
            let (path, file_text) = ("/memories/oldname.md".into(), "alpha bravo\n".into());
            command(e, Command::Create { path, file_text });
        }),
        Box::new(|e| {
            let (path, new_str) = ("/memories/oldname.md".into(), Some("charlie".into()));
            command(e, Command::StrReplace { path, old_str: "alpha".into(), new_str });
        }),
        Box::new(|e| {
            let (path, insert_text) = ("/memories/oldname.md".into(), "delta".into());
            command(e, Command::Insert { path, insert_line: 1, insert_text });
        }),
        Box::new(|e| {
            let (old_path, new_path) = ("/memories/oldname.md".into(), "/memories/newname.md".into());
            command(e, Command::Rename { old_path, new_path });
        }),
        Box::new(|e| {
            let (path, file_text) = ("/memories/folder/one.md".into(), "foxtrot".into());
            command(e, Command::Create { path, file_text });
        }),
        Box::new(|e| command(e, Command::Delete { path: "/memories/folder".into() })),
        // Several writers in one commit.
        Box::new(|e| {
            thread::scope(|scope| {
                for n in 0..40 {
                    scope.spawn(move || remember(e, &format!("many-{n}"), &format!("golfball{n}")));
                }
            });
        }),
        Box::new(|e| {
            let (prefix, confirm) = (Some("many-".into()), true);
            e.forget(Forget { prefix, confirm, ..Forget::default() }).unwrap();
        }),
        Box::new(|e| e.note_copy(&Copying { kind: CopyKind::Export, place: "elsewhere".into() }).unwrap()),
        Box::new(|e| remember(e, "titled", "hotelroom")),
        Box::new(|e| drop(e.forget(Forget { key: Some("titled".into()), ..Forget::default() }).unwrap())),
    ];
    for step in &steps {
        step(&engine);
        copies.take();
    }
    drop(engine);
    // Another start, which writes the slot too.
    let engine = Engine::open(&vault, "n", Limits::default()).unwrap();
    remember(&engine, "last", "indigo");
    copies.take();
    let forgotten =
        ["firstling", "alpha", "oldname", "one.md", "foxtrot", "golfball", "many-", "hotelroom", "titled"];
    let current = ["evergreen", "secondling", "charlie", "delta", "newname", "indigo"];
    let now = copies.opened(&vault, copies.slots.last().map(std::slice::from_ref).unwrap());
    for word in current {
        assert!(holds(&now, word), "{word} is there");
    }
    for word in forgotten {
        assert!(!holds(&now, word), "{word} was forgotten");
    }
    // Whoever kept the slots of then opens all of it.
    let then = copies.opened(&vault, &copies.slots);
    for word in current.iter().chain(&forgotten) {
        assert!(holds(&then, word), "{word} was there");
    }
    let records = |opened: &[(Blob, Vec<u8>)]| {
        opened.iter().filter(|(blob, _)| matches!(blob, Blob::Record(..))).count() as u64
    };
    assert_eq!(records(&now), engine.stats().memories, "each memory once, and no older version");
    assert!(records(&then) > 45);
}
