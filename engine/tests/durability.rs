//! What is on disk: sealed, durable, and named when it is damaged.

mod common;
#[path = "common/seeded.rs"]
mod seeded;

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Home, Shorthand};
use seeded::Seeded;
use warm_engine::contract::{Command, Get, Limits, Remember};
use warm_engine::{Engine, OpenError, Vault, VaultOptions};

#[test]
fn no_text_name_title_tag_or_metadata_is_on_disk_in_the_clear() {
    let home = Home::new();
    let engine = home.open();
    let words = ["plaintextmarker", "namemarker", "titlemarker", "tagmarker", "metamarker", "filemarker"];
    engine
        .remember(Remember {
            text: words[0].into(),
            key: Some(words[1].into()),
            title: Some(words[2].into()),
            tags: vec![words[3].into()],
            metadata: serde_json::json!({ words[4]: words[4] }).as_object().cloned(),
            ..Remember::default()
        })
        .unwrap();
    engine.create("/memories/filemarker.md", &words[0].repeat(100)).unwrap();
    engine.recalled(words[0]);
    let check = || {
        for (path, bytes) in home.files() {
            for word in words {
                let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
                assert!(!found, "{word} is in {}", path.display());
            }
        }
    };
    check();
    drop(engine);
    check();
    let namespace_in_a_name = home.files().iter().any(|(path, _)| path.to_string_lossy().contains("default"));
    assert!(!namespace_in_a_name, "directory names do not tell the namespace");
}

#[cfg(unix)]
#[test]
fn every_file_and_directory_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    home.open().create("/memories/f", "x").unwrap();
    for (path, _) in home.files() {
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        assert_eq!(mode(path.parent().unwrap()), 0o700, "{}", path.display());
    }
}

#[test]
fn a_second_engine_on_the_same_store_is_told_so_and_gets_it_once_it_is_free() {
    let home = Home::new();
    let (vault, first) = (home.vault(), home.open());
    assert!(matches!(Engine::open(&vault, "default", Limits::default()), Err(OpenError::InUse(_))));
    let waiting = std::thread::spawn(move || Engine::open(&vault, "default", Limits::default()).map(|_| ()));
    std::thread::sleep(std::time::Duration::from_millis(200));
    drop(first);
    assert!(waiting.join().unwrap().is_ok(), "it waits for one that is just ending");
}

#[test]
fn a_store_that_a_dying_process_lets_go_of_a_moment_after_its_lock_is_waited_for() {
    let home = Home::new();
    home.open().remember_text("k", "text");
    // Holds the store itself and not the lock beside it, as a process does that is being killed.
    let dying = redb::Database::open(home.store_file()).unwrap();
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| home.open().stats().memories);
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(dying);
        assert_eq!(opening.join().unwrap(), 1);
    });
    let _alive = redb::Database::open(home.store_file()).unwrap();
    let error = Engine::open(&home.vault(), "default", Limits::default()).unwrap_err();
    assert!(matches!(error, OpenError::InUse(_)), "{error}");
}

#[test]
fn namespaces_see_nothing_of_each_other() {
    let home = Home::new();
    let vault = home.vault();
    let open = |name: &str| Engine::open(&vault, name, Limits::default()).unwrap();
    let (a, b) = (open("alice"), open("bob"));
    a.create("/memories/diary.md", "secret of alice").unwrap();
    let missing = "The path /memories/diary.md does not exist. Please provide a valid path.";
    assert_eq!(b.view("/memories/diary.md").unwrap_err(), missing);
    assert!(b.run(Command::Delete { path: "/memories/diary.md".into() }).is_err());
    let rename = Command::Rename { old_path: "/memories/diary.md".into(), new_path: "/memories/x".into() };
    assert!(b.run(rename).is_err());
    assert!(b.recalled("secret").is_empty());
    assert!(a.view("/memories/diary.md").is_ok());
    for name in ["", "a\nb", &"n".repeat(129)] {
        assert!(matches!(Engine::open(&vault, name, Limits::default()), Err(OpenError::InvalidNamespace)));
    }
}

#[test]
fn concurrent_writers_lose_nothing_and_share_commits() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/log", "").unwrap();
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (engine, done) = (&engine, &done);
            scope.spawn(move || {
                for n in 0..25 {
                    let text = format!("line {writer}-{n}");
                    let insert = Command::Insert {
                        path: "/memories/log".into(),
                        insert_line: 0,
                        insert_text: text.clone(),
                    };
                    engine.run(insert).unwrap();
                    assert!(
                        engine.view("/memories/log").unwrap().contains(&text),
                        "an own write is seen at once"
                    );
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.load(Ordering::Relaxed), 200);
    drop(engine);
    let text = home.open().get(&Get { key: "/memories/log".into() }).unwrap().text;
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 200);
}

#[test]
fn one_record_that_does_not_open_is_named_and_the_others_are_served() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..100 {
        engine.remember_text(&format!("k{n}"), &format!("memory number {n} of many"));
    }
    drop(engine);
    // Found in the file by its seal: a flipped bit breaks exactly one record.
    flip_one_record(&home.store_file());
    let engine = home.open();
    assert_eq!(engine.damaged().len(), 1, "{:?}", engine.damaged());
    assert!(engine.damaged()[0].starts_with("record "));
    assert_eq!(engine.stats().memories, 99);
    assert_eq!(engine.stats().damaged_records, 1);
    let found = engine
        .recall(&warm_engine::contract::Recall { query: "memory of many".into(), ..Default::default() })
        .unwrap();
    assert_eq!(found.total, 99);
}

fn flip_one_record(path: &std::path::Path) {
    use redb::{ReadableTable, TableDefinition};
    let records: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("records");
    let database = redb::Database::open(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut table = transaction.open_table(records).unwrap();
        let (id, mut blob) = {
            let row = table.iter().unwrap().nth(1).unwrap().unwrap();
            (*row.0.value(), row.1.value().to_vec())
        };
        let middle = blob.len() / 2;
        blob[middle] ^= 1;
        table.insert(&id, blob.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

/// Opens the store, which must be refused, and holds it to having left the file as it was.
fn refusal(home: &Home) -> OpenError {
    let before = fs::read(home.store_file()).unwrap();
    let error = Engine::open(&home.vault(), "default", Limits::default()).unwrap_err();
    assert!(
        fs::read(home.store_file()).unwrap() == before,
        "a file that is refused is left as it was: {error}"
    );
    error
}

#[test]
fn a_store_of_another_data_directory_is_named_foreign_and_left_as_it_was() {
    let (home, other) = (Home::new(), Home::new());
    home.open().remember_text("k", "ours");
    other.open().remember_text("k", "theirs");
    fs::copy(other.store_file(), home.store_file()).unwrap();
    let error = refusal(&home);
    assert!(matches!(error, OpenError::ForeignStore(_)), "{error}");
    fs::copy(home.store_file(), other.store_file()).unwrap();
    assert_eq!(other.open().stats().memories, 1, "back in its place it opens");
}

#[test]
fn a_store_of_another_format_version_is_named_and_left_as_it_was() {
    let home = Home::new();
    home.open().remember_text("k", "text");
    let meta: redb::TableDefinition<'_, &str, &[u8]> = redb::TableDefinition::new("meta");
    let database = redb::Database::open(home.store_file()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(meta).unwrap().insert("format", 7u64.to_le_bytes().as_slice()).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refusal(&home);
    assert!(matches!(error, OpenError::OtherFormat { .. }), "{error}");
    assert!(error.to_string().contains("use the warm-mcp that wrote it"), "{error}");
}

#[test]
fn a_store_that_is_cut_or_overwritten_is_a_named_error_or_complete() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..50 {
        engine.remember_text(&format!("k{n}"), "text");
    }
    drop(engine);
    let path = home.store_file();
    let good = fs::read(&path).unwrap();
    for cut in [1, 100, 4_096, good.len() / 2, good.len()] {
        let bad = &good[..good.len() - cut];
        fs::write(&path, bad).unwrap();
        match Engine::open(&home.vault(), "default", Limits::default()) {
            Ok(engine) => assert_eq!(engine.stats().memories, 50, "cut by {cut}"),
            Err(error) => {
                assert!(matches!(error, OpenError::StoreDamaged { .. }), "cut by {cut}: {error}");
                assert!(fs::read(&path).unwrap() == bad, "cut by {cut}: it is left as it was");
            }
        }
    }
}

#[test]
fn a_store_that_vanished_is_never_replaced_by_an_empty_one() {
    let home = Home::new();
    home.open().remember_text("k", "text");
    let path = home.store_file();
    let kept = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let error = Engine::open(&home.vault(), "default", Limits::default()).unwrap_err();
    assert!(matches!(error, OpenError::StoreMissing(_)), "{error}");
    fs::write(&path, &kept).unwrap();
    assert_eq!(home.open().stats().memories, 1);
}

#[test]
fn a_start_that_was_cut_short_is_finished_by_the_next_and_by_no_look() {
    let home = Home::new();
    home.open().remember_text("k", "text");
    let path = home.store_file();
    let unfinished = path.with_extension("new");
    fs::rename(&path, &unfinished).unwrap();
    let before = fs::read(&unfinished).unwrap();
    let looked = Engine::open_existing(&home.vault(), "default", Limits::default()).unwrap_err();
    assert!(matches!(looked, OpenError::Unfinished(_)), "{looked}");
    assert!(!path.exists() && fs::read(&unfinished).unwrap() == before);
    assert_eq!(home.open().stats().memories, 1);
    assert!(path.exists() && !unfinished.exists());
}

#[test]
fn an_unfinished_store_that_is_damaged_keeps_its_name_and_its_bytes() {
    let home = Home::new();
    home.open().remember_text("k", "text");
    let path = home.store_file();
    let unfinished = path.with_extension("new");
    let mut bad = fs::read(&path).unwrap();
    bad.truncate(5_000);
    fs::write(&unfinished, &bad).unwrap();
    fs::remove_file(&path).unwrap();
    let error = Engine::open(&home.vault(), "default", Limits::default()).unwrap_err();
    assert!(matches!(error, OpenError::StoreDamaged { .. }), "{error}");
    assert!(!path.exists() && fs::read(&unfinished).unwrap() == bad);
}

#[test]
fn what_stands_in_a_lock_file_holds_nobody_up() {
    for garbage in [&b""[..], b"4194305\n", b"a store was made", &[0xff; 70_000]] {
        let home = Home::new();
        let lock = {
            home.open().remember_text("k", "text");
            home.store_file().with_file_name("lock")
        };
        fs::write(&lock, garbage).unwrap();
        assert_eq!(home.open().stats().memories, 1, "beside a store");
        fs::rename(home.store_file(), home.dir().join("elsewhere")).unwrap();
        let error = Engine::open(&home.vault(), "default", Limits::default()).unwrap_err();
        assert!(
            matches!(error, OpenError::StoreMissing(_)),
            "opening put the memory of a store back: {error}"
        );
        fs::write(&lock, garbage).unwrap();
        let error = Engine::open(&home.vault(), "default", Limits::default()).unwrap_err();
        assert!(matches!(error, OpenError::StoreMissing(_)), "the ledger knows of it too: {error}");
        fs::remove_dir_all(home.options().data_dir.join("namespaces")).unwrap();
        let engine = home.open();
        assert!(engine.created(), "and where no store was made, one is");
    }
}

#[test]
fn looking_at_a_store_changes_no_byte_and_every_write_is_refused() {
    let home = Home::new();
    home.open().remember_text("k", "text");
    let before = home.files();
    let engine = Engine::open_existing(&home.vault(), "default", Limits::default()).unwrap();
    assert_eq!(engine.get(&Get { key: "k".into() }).unwrap().text, "text");
    assert_eq!(engine.recalled("text"), ["k"]);
    let refused = engine.create("/memories/new", "x").unwrap_err();
    assert!(refused.contains("only being looked at"), "{refused}");
    assert!(engine.get(&Get { key: "k".into() }).is_ok());
    drop(engine);
    assert!(home.files() == before);
}

#[test]
fn any_flipped_byte_of_the_store_is_noticed_or_harmless_and_a_refused_file_is_left_as_it_was() {
    const FLIPS: u64 = 300;
    let home = Home::new();
    let engine = home.open();
    let text = |n: u64| format!("memory number {n}");
    for n in 0..40 {
        engine.remember_text(&format!("k{n}"), &text(n));
    }
    drop(engine);
    let (vault, path) = (home.vault(), home.store_file());
    let good = fs::read(&path).unwrap();
    // Half of the flips are spread over the file, half hit its first pages, where redb keeps its own.
    let mut randoms = Seeded(0);
    for flip in 0..FLIPS {
        let random = randoms.next();
        let within = if flip % 2 == 0 { good.len() } else { 16_384.min(good.len()) };
        let (at, bit) = (random as usize % within, random >> 61);
        let mut bad = good.clone();
        bad[at] ^= 1 << bit;
        fs::write(&path, &bad).unwrap();
        let looked = Engine::open_existing(&vault, "default", Limits::default());
        assert_eq!(looked.err().map(|error| error.to_string()), {
            assert!(fs::read(&path).unwrap() == bad, "byte {at}: to look changes nothing");
            let opened = Engine::open(&vault, "default", Limits::default());
            if let Ok(engine) = &opened {
                let there = engine.stats().memories + engine.stats().damaged_records;
                assert_eq!(there, 40, "byte {at} lost a memory without a word");
                let readable =
                    (0..40).filter_map(|n| Some((n, engine.get(&Get { key: format!("k{n}") }).ok()?)));
                for (n, memory) in readable {
                    assert_eq!(memory.text, text(n), "byte {at}");
                }
            }
            opened.err().map(|error| {
                assert!(fs::read(&path).unwrap() == bad, "byte {at}: {error}, and it was changed");
                assert!(
                    matches!(
                        error,
                        OpenError::StoreDamaged { .. }
                            | OpenError::ForeignStore(_)
                            | OpenError::OtherFormat { .. }
                    ),
                    "byte {at}: {error}"
                );
                error.to_string()
            })
        });
    }
}

#[test]
fn debug_of_everything_public_shows_no_content() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/sesame", "the secretword").unwrap();
    let replace =
        Command::StrReplace { path: "/memories/sesame".into(), old_str: "secretword2".into(), new_str: None };
    let error = engine.command(replace, Default::default()).unwrap_err();
    let vault = home.vault();
    let options = VaultOptions {
        passphrase: Some(warm_engine::Passphrase::new("secretword".into())),
        ..home.options()
    };
    for shown in [format!("{engine:?}"), format!("{error:?}"), format!("{vault:?}"), format!("{options:?}")] {
        assert!(!shown.contains("secretword") && !shown.contains("sesame"), "{shown}");
    }
    assert!(matches!(Vault::open(&options), Err(OpenError::NoPassphraseSet(_))));
}
