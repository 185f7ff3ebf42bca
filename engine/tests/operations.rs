//! A write that is sent again under its name is made once, and answered alike.

mod common;

use common::{Home, Shorthand};
use warm_engine::Engine;
use warm_engine::contract::{
    Command, CommandLimits, ErrorCode, Forget, Get, OperationId, Remember, Write, Written,
};

fn operation(counter: u64) -> Option<OperationId> {
    Some(OperationId { client: [7; 16], counter })
}

fn command(command: Command) -> Write {
    Write::Command(command, CommandLimits::default())
}

fn create(path: &str, text: &str) -> Write {
    command(Command::Create { path: path.into(), file_text: text.into() })
}

/// One write of each kind, in an order in which all succeed once and few would twice.
fn writes() -> Vec<Write> {
    let path = || "/memories/a/f.md".to_owned();
    let remember = |text: &str, key: Option<&str>| {
        Write::Remember(Remember { text: text.into(), key: key.map(Into::into), ..Remember::default() })
    };
    vec![
        create("/memories/a/f.md", "one\ntwo\nthree\n"),
        command(Command::Insert { path: path(), insert_line: 1, insert_text: "one and a half".into() }),
        command(Command::StrReplace { path: path(), old_str: "two".into(), new_str: Some("2".into()) }),
        command(Command::Rename { old_path: "/memories/a".into(), new_path: "/memories/b".into() }),
        create("/memories/a/f.md", "another"),
        command(Command::Delete { path: "/memories/a".into() }),
        remember("kept under a name of its own", None),
        remember("a door code", Some("door")),
        remember("a new door code", Some("door")),
        remember("for a moment", Some("moment")),
        Write::Forget(Forget {
            keys: Some(vec!["none".into(), "moment".into(), "nor this".into()]),
            ..Forget::default()
        }),
        Write::Forget(Forget { key: Some("door".into()), ..Forget::default() }),
    ]
}

fn contents(engine: &Engine) -> Vec<(String, String, String)> {
    let listing = engine.list(&Default::default()).unwrap();
    let texts = listing.memories.into_iter().map(|listed| {
        let memory = engine.get(&Get { key: listed.key.clone() }).unwrap();
        (listed.key, memory.text, memory.version)
    });
    texts.collect()
}

#[test]
fn each_kind_of_write_sent_twice_is_made_once_and_answered_alike() {
    let home = Home::new();
    let engine = home.open();
    for (counter, write) in (0..).zip(writes()) {
        let first = engine.write(write.clone(), operation(counter)).unwrap();
        let after_first = contents(&engine);
        let again = engine.write(write, operation(counter)).unwrap();
        assert!(first == again, "write {counter} is answered alike");
        assert_eq!(contents(&engine), after_first, "write {counter} is made once");
    }
}

#[test]
fn writes_sent_again_to_the_next_owner_of_the_store_are_made_once_and_answered_alike() {
    let home = Home::new();
    let engine = home.open();
    let first: Vec<_> =
        (0..).zip(writes()).map(|(n, write)| engine.write(write, operation(n)).unwrap()).collect();
    let after = contents(&engine);
    drop(engine);
    let engine = home.open();
    for (counter, (write, first)) in (0..).zip(writes().into_iter().zip(first)) {
        let again = engine.write(write, operation(counter)).unwrap();
        let gone = counter == 2;
        if gone {
            // The file that it edited was moved since: what was done is said, and there is nothing to show.
            assert!(
                matches!(again, Written::Command(told) if told.result.starts_with("The memory file has been edited."))
            );
        } else {
            assert!(first == again, "write {counter}");
        }
    }
    assert_eq!(contents(&engine), after);
}

#[test]
fn the_same_write_under_another_name_or_none_is_another_write() {
    let home = Home::new();
    let engine = home.open();
    engine.write(create("/memories/f", "x"), operation(1)).unwrap();
    let refused = |operation| engine.write(create("/memories/f", "x"), operation).err().unwrap().code();
    assert_eq!(refused(operation(2)), ErrorCode::AlreadyExists);
    assert_eq!(refused(None), ErrorCode::AlreadyExists);
    let other_client = Some(OperationId { client: [8; 16], counter: 1 });
    assert_eq!(refused(other_client), ErrorCode::AlreadyExists);
}

#[test]
fn a_write_that_was_refused_is_tried_again() {
    let home = Home::new();
    let engine = home.open();
    let delete = || command(Command::Delete { path: "/memories/f".into() });
    assert_eq!(engine.write(delete(), operation(1)).err().unwrap().code(), ErrorCode::NotFound);
    engine.create("/memories/f", "x").unwrap();
    engine.write(delete(), operation(1)).unwrap();
    engine.create("/memories/f", "x").unwrap();
    engine.write(delete(), operation(1)).unwrap();
    assert!(engine.view("/memories/f").is_ok(), "it had been made");
}

#[test]
fn a_name_that_comes_again_with_another_kind_of_write_changes_nothing() {
    let home = Home::new();
    let engine = home.open();
    engine.write(create("/memories/f", "x"), operation(1)).unwrap();
    let forget = Write::Forget(Forget { key: Some("/memories/f".into()), ..Forget::default() });
    assert_eq!(engine.write(forget, operation(1)).err().unwrap().code(), ErrorCode::Internal);
    assert!(engine.view("/memories/f").is_ok());
}

#[test]
fn an_edit_answered_again_shows_the_line_as_it_is_now() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/f", "a\nb\nc\n").unwrap();
    let edit = || {
        command(Command::StrReplace {
            path: "/memories/f".into(),
            old_str: "b".into(),
            new_str: Some("B".into()),
        })
    };
    let Written::Command(first) = engine.write(edit(), operation(1)).unwrap() else { panic!("a command") };
    engine
        .run(Command::StrReplace {
            path: "/memories/f".into(),
            old_str: "B".into(),
            new_str: Some("X".into()),
        })
        .unwrap();
    let Written::Command(again) = engine.write(edit(), operation(1)).unwrap() else { panic!("a command") };
    assert_eq!(again.result, first.result.replace('B', "X"));
}
