//! What is forgotten is gone from every file, and the store says so, signed.

mod common;

use common::Home;
use warm_engine::contract::{
    Command, CommandLimits, CopyKind, Copying, Forget, Memory, OperationId, Receipt, ReceiptFile, Remember,
    Restore, Write, Written,
};
use warm_engine::receipt::{ReceiptError, verify};
use warm_engine::{Engine, Error, Passphrase, Vault, VaultOptions};

fn remember(engine: &Engine, key: &str, text: &str) {
    let (key, text) = (Some(key.to_owned()), text.to_owned());
    engine.remember(Remember { key, text, ..Remember::default() }).unwrap();
}

fn forget(engine: &Engine, key: &str) -> Receipt {
    let forgotten = engine.forget(Forget { key: Some(key.into()), ..Forget::default() }).unwrap();
    forgotten.receipt.expect("a receipt")
}

fn copying(kind: CopyKind, place: &str) -> Copying {
    Copying { kind, place: place.into() }
}

fn delete(path: &str) -> Write {
    Write::Command(Command::Delete { path: path.into() }, CommandLimits::default())
}

fn file(engine: &Engine, receipt: &Receipt) -> ReceiptFile {
    let file = engine.receipt(&receipt.id).unwrap();
    assert_eq!(&file.receipt, receipt);
    file
}

#[test]
fn a_receipt_is_checked_with_the_public_key_alone() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..100 {
        remember(&engine, &format!("k{n}"), "text");
    }
    let receipt = forget(&engine, "k40");
    assert_eq!((receipt.count, receipt.log_index), (1, 0));
    assert_ne!(receipt.tree_before, receipt.tree_after);
    let file = file(&engine, &receipt);
    assert_eq!(file.proof.versions.len(), 1);
    verify(&file, None).unwrap();
    verify(&file, Some(&engine.public_key())).unwrap();
    let other = Home::new().open().public_key();
    assert_eq!(verify(&file, Some(&other)), Err(ReceiptError::AnotherStore(engine.public_key())));
    // Written to a file and read again, it is the same.
    let json = serde_json::to_string_pretty(&file).unwrap();
    verify(&serde_json::from_str(&json).unwrap(), Some(&engine.public_key())).unwrap();
}

#[test]
fn a_receipt_of_which_anything_was_changed_is_refused() {
    let home = Home::new();
    let engine = home.open();
    remember(&engine, "a", "text");
    remember(&engine, "b", "text");
    engine.note_copy(&copying(CopyKind::Backup, "/usb/memories.age")).unwrap();
    let good = file(&engine, &forget(&engine, "a"));
    let change = |change: &dyn Fn(&mut ReceiptFile)| {
        let mut bad = good.clone();
        change(&mut bad);
        verify(&bad, None).expect_err("it was changed")
    };
    let flip = |text: &mut String| {
        let first = if text.starts_with('a') { "b" } else { "a" };
        text.replace_range(..1, first);
    };
    assert_eq!(change(&|file| file.receipt.count = 2), ReceiptError::Changed);
    assert_eq!(change(&|file| file.receipt.log_index = 1), ReceiptError::Changed);
    assert_eq!(change(&|file| file.receipt.copies.clear()), ReceiptError::Changed);
    assert_eq!(change(&|file| file.receipt.copies[0].place.push('x')), ReceiptError::Changed);
    assert_eq!(change(&|file| file.receipt.erased_at = "2001-01-01T00:00:00Z".into()), ReceiptError::Changed);
    assert_eq!(change(&|file| flip(&mut file.receipt.id)), ReceiptError::Changed);
    assert_eq!(change(&|file| flip(&mut file.receipt.tree_after)), ReceiptError::Changed);
    assert_eq!(change(&|file| flip(&mut file.log_before)), ReceiptError::Changed);
    assert_eq!(change(&|file| flip(&mut file.log_after)), ReceiptError::NotLogged);
    assert_eq!(change(&|file| flip(&mut file.proof.versions[0].salt)), ReceiptError::Changed);
    assert_eq!(change(&|file| drop(file.proof.versions.remove(0))), ReceiptError::Changed);
    assert!(matches!(change(&|file| flip(&mut file.receipt.signature)), ReceiptError::NotSigned(_)));
    assert!(matches!(change(&|file| file.receipt.signature.clear()), ReceiptError::NotSigned(_)));
    assert_eq!(change(&|file| file.warm_receipt = 2), ReceiptError::OtherForm(2));
    let malformed: [&dyn Fn(&mut ReceiptFile); 5] = [
        &|file| file.receipt.id.truncate(63),
        &|file| file.public_key.push('g'),
        &|file| file.receipt.signature = "§".into(),
        &|file| file.receipt.erased_at = "yesterday".into(),
        &|file| file.proof.before.beside.push("zz".into()),
    ];
    for malformed in malformed {
        assert!(matches!(change(malformed), ReceiptError::Malformed(_)));
    }
    // Signed anew by another store, it is that store's word and not this one's.
    let mut other = good.clone();
    other.public_key = Home::new().open().public_key();
    assert_eq!(verify(&other, None), Err(ReceiptError::Changed));
}

#[test]
fn every_way_to_forget_gives_a_receipt_for_all_that_it_forgot() {
    let home = Home::new();
    let engine = home.open();
    for key in ["/memories/d/one", "/memories/d/two", "/memories/e", "x1", "x2", "x3", "y"] {
        remember(&engine, key, "text");
    }
    let Written::Command(told) = engine.write(delete("/memories/d"), None).unwrap() else {
        panic!("a command")
    };
    let by_command = told.receipt.unwrap();
    assert_eq!((told.result.as_str(), by_command.count), ("Successfully deleted /memories/d", 2));
    let keys = Some(["x1", "nope", "x2", "x1"].map(Into::into).to_vec());
    let some = engine.forget(Forget { keys, ..Forget::default() }).unwrap();
    assert_eq!((some.forgotten, some.missing.len()), (2, 2));
    let (prefix, confirm) = (Some("x".into()), true);
    let by_prefix = engine.forget(Forget { prefix, confirm, ..Forget::default() }).unwrap();
    let receipts = [by_command, some.receipt.unwrap(), by_prefix.receipt.unwrap()];
    for (number, receipt) in receipts.iter().enumerate() {
        let file = file(&engine, receipt);
        assert_eq!(file.proof.versions.len() as u64, receipt.count);
        assert_eq!(receipt.log_index, number as u64);
        verify(&file, Some(&engine.public_key())).unwrap();
        assert_eq!(engine.receipt(&number.to_string()).unwrap(), file);
        assert_eq!(engine.receipt(&receipt.id[..12]).unwrap(), file);
    }
    // One begins where the other ended, unless something else was written between.
    assert_eq!(receipts[0].tree_after, receipts[1].tree_before);
    let listed = engine.receipts(None, 2).unwrap();
    assert_eq!((listed.total, listed.receipts), (3, vec![receipts[2].clone(), receipts[1].clone()]));
    assert_eq!(engine.receipts(Some(1), 9).unwrap().receipts, [receipts[0].clone()]);
    assert_eq!(engine.check_receipts().unwrap(), 3);
    for unknown in ["3", "77777777", "no"] {
        assert!(engine.receipt(unknown).is_err_and(|error| error.to_string().contains("receipt list")));
    }
    let nothing = engine.forget(Forget { keys: Some(vec!["nope".into()]), ..Forget::default() }).unwrap();
    assert!(nothing.receipt.is_none(), "nothing was forgotten");
    drop(engine);
    let engine = home.open();
    assert_eq!(engine.receipts(None, 9).unwrap().receipts.len(), 3, "they outlive the process");
    assert_eq!(engine.check_receipts().unwrap(), 3);
}

#[test]
fn a_deletion_that_is_sent_again_has_the_same_receipt_also_after_another_start() {
    let home = Home::new();
    let engine = home.open();
    remember(&engine, "/memories/f", "text");
    let name = Some(OperationId { client: [3; 16], counter: 1 });
    let send = |engine: &Engine| match engine.write(delete("/memories/f"), name).unwrap() {
        Written::Command(told) => told.receipt.expect("a receipt"),
        _ => panic!("a command"),
    };
    let first = send(&engine);
    assert_eq!(send(&engine), first);
    drop(engine);
    assert_eq!(send(&home.open()), first);
}

#[test]
fn a_receipt_names_the_copies_that_may_still_hold_what_was_forgotten() {
    let home = Home::new();
    let engine = home.open();
    engine.note_copy(&copying(CopyKind::Backup, "/before")).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(5));
    remember(&engine, "a", "text");
    engine.note_copy(&copying(CopyKind::Backup, "/usb/one.age")).unwrap();
    drop(engine);
    let engine = home.open();
    engine.note_copy(&copying(CopyKind::Export, "/home/two.jsonl")).unwrap();
    let copies = forget(&engine, "a").copies;
    let named: Vec<_> = copies.iter().map(|copy| (copy.kind, copy.place.as_str())).collect();
    assert_eq!(named, [(CopyKind::Export, "/home/two.jsonl"), (CopyKind::Backup, "/usb/one.age")]);
}

fn dumped(engine: &Engine) -> Vec<Memory> {
    let mut all = Vec::new();
    engine
        .dump(&copying(CopyKind::Export, "-"), |memory| -> Result<(), Error> {
            all.push(memory);
            Ok(())
        })
        .unwrap();
    all
}

#[test]
fn what_was_forgotten_stays_forgotten_when_a_copy_is_put_back_unless_it_is_asked_for() {
    let home = Home::new();
    let engine = home.open();
    for key in ["kept", "edited", "gone", "/memories/moved"] {
        remember(&engine, key, "first");
    }
    let copy = dumped(&engine);
    let restore = |forgotten_too| {
        engine.restore(Restore { memories: copy.clone(), replace: false, forgotten_too }).unwrap()
    };
    remember(&engine, "gone", "second");
    forget(&engine, "gone");
    let (old_path, new_path) = ("/memories/moved".into(), "/memories/elsewhere".into());
    engine.command(Command::Rename { old_path, new_path }, CommandLimits::default()).unwrap();
    forget(&engine, "/memories/elsewhere");
    let mut forgotten = restore(false).forgotten;
    forgotten.sort();
    assert_eq!(forgotten, ["/memories/moved", "gone"], "whatever was done to it between");
    assert_eq!(engine.stats().memories, 2);
    // A new memory of the same name is another one, and is kept.
    remember(&engine, "gone", "a new one");
    assert_eq!(restore(false).kept, ["gone"]);
    let asked = restore(true);
    assert_eq!((asked.restored, asked.forgotten.len()), (1, 0));
    assert_eq!(engine.stats().memories, 4);
    assert_eq!(restore(false).unchanged, 3, "what is there is there");
}

#[test]
fn nothing_forgotten_nor_anything_of_its_name_is_in_any_file() {
    for passphrase in [None, Some("correct horse battery")] {
        let home = Home::new();
        let key = passphrase.map(|text| Passphrase::new(text.into()));
        let options = VaultOptions { passphrase: key, ..home.options() };
        let open = || Engine::open(&Vault::open(&options).unwrap(), "default", Default::default()).unwrap();
        let engine = open();
        let secrets =
            ["xylophonist", "xylophon", "quarrelsome", "quarrelsom", "zeppelin-tag", "wanderlust-title"];
        engine
            .remember(Remember {
                key: Some("/memories/quarrelsome.md".into()),
                text: "the xylophonist's door code".into(),
                title: Some("wanderlust-title".into()),
                tags: vec!["zeppelin-tag".into()],
                ..Remember::default()
            })
            .unwrap();
        remember(&engine, "other", "text");
        forget(&engine, "/memories/quarrelsome.md");
        let look = |when: &str| {
            for (path, bytes) in home.files() {
                for secret in secrets {
                    let found = bytes
                        .windows(secret.len())
                        .any(|window| window.eq_ignore_ascii_case(secret.as_bytes()));
                    assert!(!found, "{when}: {secret} is in {}", path.display());
                }
            }
        };
        look("before the restart");
        drop(engine);
        look("closed");
        drop(open());
        look("after the restart");
    }
}
