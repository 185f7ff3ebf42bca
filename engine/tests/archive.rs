//! Archives, and memories put back: what comes out goes in again unchanged, or not at all.

mod common;

use std::fs;
use std::io::{Read, Write};

use age::x25519;
use common::{Home, Shorthand};
use serde_json::{Value, json};
use warm_engine::archive::{ArchiveError, ArchiveReader, ArchiveWriter};
use warm_engine::contract::{CopyKind, Copying, ErrorCode, Get, Limits, Memory, Remember, Restore, Restored};
use warm_engine::{ArchiveKey, Engine, Error, OpenError, Passphrase, RecordError, VaultOptions};

fn copying() -> Copying {
    Copying { kind: CopyKind::Backup, place: "somewhere".into() }
}

fn key(home: &Home) -> ArchiveKey {
    ArchiveKey::of(&home.options()).unwrap()
}

fn archive(engine: &Engine, key: &ArchiveKey) -> Vec<u8> {
    let mut writer = ArchiveWriter::begin(key, Vec::new(), "default").unwrap();
    engine
        .dump(&copying(), |memory| {
            writer.add(&memory).unwrap();
            Ok::<_, Error>(())
        })
        .unwrap();
    writer.finish().unwrap()
}

fn read(key: &ArchiveKey, sealed: &[u8]) -> Result<Vec<Memory>, ArchiveError> {
    let mut reader = ArchiveReader::open(key, sealed, Limits::default())?;
    let mut memories = Vec::new();
    while let Some(memory) = reader.next()? {
        memories.push(memory);
    }
    Ok(memories)
}

fn all(engine: &Engine) -> Vec<Memory> {
    let mut memories = Vec::new();
    let count = engine.dump(&copying(), |memory| {
        memories.push(memory);
        Ok::<_, Error>(())
    });
    assert_eq!(count.unwrap(), memories.len() as u64);
    memories
}

/// Without what changes with every write.
fn lasting(memories: Vec<Memory>) -> Vec<Value> {
    memories
        .into_iter()
        .map(|memory| serde_json::to_value(Memory { version: String::new(), ..memory }).unwrap())
        .collect()
}

fn filled(home: &Home) -> Engine {
    let engine = home.open();
    for (path, text) in [
        ("/memories/a.md", "one\r\ntwo\r\n"),
        ("/memories/dir/cafe\u{301}.md", "cafe\u{301} and café\n\n"),
        ("/memories/empty.md", ""),
        ("/memories/last.md", "no end"),
    ] {
        engine.create(path, text).unwrap();
    }
    let Value::Object(metadata) = json!({
        "float": 0.1 + 0.2, "tiny": 2.2250738585072014e-308, "odd": 5e-324, "large": u64::MAX, "small": i64::MIN,
        "nested": {"list": [1, null, true, "\u{0}\u{1f680}"]},
    }) else {
        unreachable!()
    };
    engine
        .remember(Remember {
            key: Some("deploy".into()),
            text: "rocket 🚀 \u{0}".into(),
            title: Some("A title".into()),
            tags: vec!["x".into(), "memory-file".into()],
            metadata: Some(metadata),
            ..Remember::default()
        })
        .unwrap();
    engine.remember(Remember { text: "its name is made up".into(), ..Remember::default() }).unwrap();
    engine
}

fn restore(engine: &Engine, memories: Vec<Memory>, replace: bool) -> Result<Restored, Error> {
    engine.restore(Restore { memories, replace, forgotten_too: false })
}

#[test]
fn what_was_archived_is_restored_in_every_field_and_again_changes_nothing() {
    let (home, other) = (Home::new(), Home::new());
    let engine = filled(&home);
    let memories = read(&key(&home), &archive(&engine, &key(&home))).unwrap();
    assert_eq!(lasting(memories.clone()), lasting(all(&engine)));
    let restored = other.open();
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert_eq!(restore(&restored, memories.clone(), false).unwrap().restored, 6);
    assert_eq!(lasting(all(&restored)), lasting(all(&engine)));
    let before: Vec<_> = all(&restored).into_iter().map(|memory| memory.version).collect();
    for replace in [false, true] {
        let again = restore(&restored, memories.clone(), replace).unwrap();
        assert_eq!(again, Restored { unchanged: 6, ..Restored::default() });
    }
    drop(restored);
    let after: Vec<_> = all(&other.open()).into_iter().map(|memory| memory.version).collect();
    assert_eq!(before, after, "nothing was written again");
    assert_eq!(lasting(all(&other.open())), lasting(all(&engine)), "and it is on disk");
}

#[test]
fn other_contents_are_kept_until_told_otherwise() {
    let home = Home::new();
    let engine = filled(&home);
    let memories = all(&engine);
    engine.remember_text("deploy", "turtle");
    let kept = restore(&engine, memories.clone(), false).unwrap();
    assert_eq!(kept, Restored { unchanged: 5, kept: vec!["deploy".into()], ..Restored::default() });
    assert_eq!(engine.get(&Get { key: "deploy".into() }).unwrap().text, "turtle");
    let replaced = restore(&engine, memories.clone(), true).unwrap();
    assert_eq!((replaced.restored, replaced.unchanged), (1, 5));
    assert_eq!(lasting(all(&engine)), lasting(memories));
    assert_eq!(engine.recalled("rocket"), ["deploy"]);
}

#[test]
fn a_memory_that_breaks_a_rule_is_named_and_nothing_of_its_batch_is_written() {
    let home = Home::new();
    let engine = filled(&home);
    let before = lasting(all(&engine));
    let good = Memory { key: "good".into(), ..all(&engine).remove(0) };
    let bad = [
        Memory { key: "/memories/../x".into(), ..good.clone() },
        Memory { key: "/memories/a.md/below.md".into(), ..good.clone() },
        Memory { key: "/memories/dir".into(), ..good.clone() },
        Memory { text: "x".repeat(40_000), ..good.clone() },
        Memory { text: String::new(), ..good.clone() },
        Memory { created_at: "yesterday".into(), ..good.clone() },
        Memory { updated_at: "1969-12-31T23:59:59Z".into(), ..good.clone() },
        Memory { tags: vec!["t".repeat(65)], ..good.clone() },
        Memory { title: Some("t".repeat(257)), ..good.clone() },
    ];
    for bad in bad {
        let error = restore(&engine, vec![good.clone(), bad.clone()], true).unwrap_err();
        assert!(matches!(error.code(), ErrorCode::InvalidArgument | ErrorCode::TooLarge), "{error}");
        assert!(error.to_string().contains(&bad.key), "{error}");
        assert_eq!(lasting(all(&engine)), before);
    }
}

#[test]
fn a_dump_is_of_one_moment_and_may_be_stopped() {
    let home = Home::new();
    let engine = filled(&home);
    let mut keys = Vec::new();
    engine
        .dump(&copying(), |memory| {
            engine.remember_text(&format!("zz later {}", keys.len()), "new");
            engine.remember_text("deploy", "changed");
            assert_ne!(memory.text, "changed");
            keys.push(memory.key);
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(keys.len(), 6);
    assert_eq!(keys[..2], ["/memories/a.md", "/memories/dir/cafe\u{301}.md"], "in the order of names");
    let mut seen = 0;
    let stopped = engine.dump(&copying(), |_| {
        seen += 1;
        Err::<(), _>(Error::from(RecordError::Argument("stop".into())))
    });
    assert!(stopped.is_err() && seen == 1);
}

/// The identity in the home's own file.
fn identity(home: &Home) -> x25519::Identity {
    let text = fs::read_to_string(home.options().identity_path()).unwrap();
    text.lines().find(|line| !line.starts_with('#')).unwrap().parse().unwrap()
}

fn opened(home: &Home, sealed: &[u8]) -> String {
    let mut plain = String::new();
    let decryptor = age::Decryptor::new(sealed).unwrap();
    let identity = identity(home);
    decryptor.decrypt(std::iter::once(&identity as _)).unwrap().read_to_string(&mut plain).unwrap();
    plain
}

fn sealed(home: &Home, plain: &str) -> Vec<u8> {
    let recipient = identity(home).to_public();
    let encryptor = age::Encryptor::with_recipients(std::iter::once(&recipient as _)).unwrap();
    let mut sealed = Vec::new();
    let mut writer = encryptor.wrap_output(&mut sealed).unwrap();
    writer.write_all(plain.as_bytes()).unwrap();
    writer.finish().unwrap();
    sealed
}

#[test]
fn an_archive_is_an_age_file_of_json_lines_that_ends_in_a_digest() {
    let home = Home::new();
    let engine = filled(&home);
    let archive = archive(&engine, &key(&home));
    assert!(!archive.windows(6).any(|bytes| bytes == b"rocket"));
    let plain = opened(&home, &archive);
    let lines: Vec<Value> = plain.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["warm_backup"], 1);
    assert_eq!(lines[0]["namespace"], "default");
    assert_eq!(lines[2]["key"], "/memories/dir/cafe\u{301}.md");
    assert_eq!(lines[7]["end"], true);
    assert_eq!(lines[7]["memories"], 6);
    assert_eq!(lines[7]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(lasting(read(&key(&home), &sealed(&home, &plain)).unwrap()), lasting(all(&engine)));
}

#[test]
fn a_line_that_is_lost_added_or_changed_is_found_even_under_a_whole_seal() {
    let home = Home::new();
    let plain = opened(&home, &archive(&filled(&home), &key(&home)));
    let lines: Vec<&str> = plain.split_inclusive('\n').collect();
    let last = lines.len() - 1;
    let without =
        |at: usize| lines.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, l)| *l).collect::<String>();
    let twice = [&lines[..2], &lines[1..]].concat().concat();
    let swapped = plain.replacen("rocket", "turtle", 1);
    let beyond = format!("{plain}{}", lines[last]);
    let cut = plain.trim_end().to_owned();
    for damaged in
        [without(1), without(last), twice, swapped, beyond, cut, String::new(), lines[0].to_owned()]
    {
        let error = read(&key(&home), &sealed(&home, &damaged)).err().expect("it is refused");
        assert!(matches!(error, ArchiveError::Damaged(_)), "{error}");
        assert!(!error.to_string().contains("rocket"));
    }
    let error = read(&key(&home), &sealed(&home, &without(0))).err().unwrap();
    assert!(matches!(error, ArchiveError::NotAnArchive), "{error}");
    let newer = plain.replacen("{\"warm_backup\":1", "{\"warm_backup\":2,\"new\":0", 1);
    let error = read(&key(&home), &sealed(&home, &newer)).err().unwrap();
    assert!(matches!(error, ArchiveError::OtherVersion(2)), "{error}");
}

#[test]
fn any_flipped_or_missing_byte_is_a_named_error() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/a.md", "text").unwrap();
    let good = archive(&engine, &key(&home));
    let key = key(&home);
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(read(&key, &bad).is_err(), "byte {at}");
        assert!(read(&key, &good[..at]).is_err(), "cut at {at}");
    }
    assert!(read(&key, &[&good[..], b"x"].concat()).is_err(), "something follows");
    assert_eq!(read(&key, &good).unwrap().len(), 1);
}

#[test]
fn another_key_is_named_and_so_is_the_kind_that_is_needed() {
    let (home, other) = (Home::new(), Home::new());
    let by_identity = archive(&filled(&home), &key(&home));
    other.open();
    let error = read(&key(&other), &by_identity).err().unwrap();
    assert!(matches!(error, ArchiveError::WrongIdentity(_)), "{error}");

    let with = |text: &str| {
        let passphrase = Some(Passphrase::new(text.into()));
        ArchiveKey::of(&VaultOptions { passphrase, ..other.options() }).unwrap()
    };
    let by_passphrase =
        ArchiveWriter::begin(&with("correct horse"), Vec::new(), "n").unwrap().finish().unwrap();
    assert!(read(&with("correct horse"), &by_passphrase).unwrap().is_empty());
    assert!(matches!(read(&with("wrong"), &by_passphrase), Err(ArchiveError::WrongPassphrase)));
    assert!(matches!(read(&key(&home), &by_passphrase), Err(ArchiveError::NeedsPassphrase)));
    assert!(matches!(read(&with("correct horse"), &by_identity), Err(ArchiveError::NeedsIdentity)));
    assert!(matches!(read(&key(&home), b"no archive\n"), Err(ArchiveError::NotAnArchive)));

    let nowhere = VaultOptions { identity: Some(home.dir().join("none.txt")), ..home.options() };
    assert!(matches!(ArchiveKey::of(&nowhere), Err(OpenError::NoIdentity(_))));
    assert_eq!(format!("{:?}", key(&home)), "ArchiveKey(..)");
}
