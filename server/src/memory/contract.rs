//! What every [`Memory`] promises, as a suite that each implementation runs.

use std::time::Duration;

use serde_json::{Value, json};
use warm_engine::contract::{
    ChangesSince, Command, CommandLimits, CopyKind, Copying, ErrorCode, Export, Forget, Get, List, ListOrder,
    Recall, RecallMode, Remember, Restore, Suggest, SuggestWhat,
};

use super::{LONGEST_WAIT, Memory, Reply, Request};

const NOW: Duration = Duration::ZERO;

/// A reply without what differs from one store to the next: versions, times and sizes on disk.
fn told(reply: &Reply) -> Value {
    let mut value = serde_json::to_value(reply).expect("a reply is plain values");
    blank(&mut value);
    value
}

fn blank(value: &mut Value) {
    const OWN: [&str; 8] =
        ["version", "origin", "receipt", "public_key", "created_at", "updated_at", "store_bytes", "segments"];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OWN.contains(&name.as_str()));
            fields.values_mut().for_each(blank);
        }
        Value::Array(items) => items.iter_mut().for_each(blank),
        _ => {}
    }
}

/// Every kind of request, those that fail included, in an order in which each finds what it needs.
fn requests() -> Vec<Request> {
    let command = |command| Request::Command(command, CommandLimits::default());
    let path = || "/memories/notes/door.md".to_owned();
    let create = |text: &str| command(Command::Create { path: path(), file_text: text.into() });
    let view = || command(Command::View { path: path(), view_range: Some(vec![1, -1]) });
    let remember = |key: &str, text: &str| Remember {
        key: Some(key.into()),
        text: text.into(),
        title: Some("Türöffner \u{1f511}".into()),
        tags: vec!["house".into()],
        metadata: json!({"a": [1, 2.5, 1e-7, null], "b": {"c": "\u{0001}\u{2028}"}}).as_object().cloned(),
        ..Remember::default()
    };
    let recall = |query: &str| Recall { query: query.into(), ..Recall::default() };
    vec![
        create("The side door's code is 4711.\r\nA second line, café.\n"),
        create("again"),
        view(),
        command(Command::StrReplace { path: path(), old_str: "4711".into(), new_str: Some("0815".into()) }),
        command(Command::StrReplace { path: path(), old_str: "4711".into(), new_str: None }),
        command(Command::Insert { path: path(), insert_line: 99, insert_text: "x".into() }),
        command(Command::Insert { path: path(), insert_line: 1, insert_text: "between".into() }),
        view(),
        Request::Command(
            Command::View { path: path(), view_range: None },
            CommandLimits { max_view_chars: Some(20), max_file_bytes: None },
        ),
        Request::Remember(remember("garage", "The garage opens with a remote control.")),
        Request::Remember(Remember { create_only: true, ..remember("garage", "no") }),
        Request::Remember(Remember { if_version: Some("not it".into()), ..remember("garage", "no") }),
        Request::Remember(Remember { text: String::new(), ..Remember::default() }),
        Request::Get(Get { key: "garage".into() }),
        Request::Get(Get { key: "nothing".into() }),
        Request::List(List { limit: Some(1), ..List::default() }),
        Request::List(List { cursor: Some("?".into()), ..List::default() }),
        Request::Recall(recall("door code")),
        Request::Recall(Recall { tags: vec!["house".into()], k: Some(1), ..recall("remote garage") }),
        Request::Recall(Recall { mode: Some(RecallMode::Semantic), ..recall("door") }),
        Request::Recall(Recall { min_score: Some(0.123_456_789), ..recall("door") }),
        Request::Recall(Recall { filter: filter(json!({"b.c": "\u{1}\u{2028}"})), ..recall("garage door") }),
        Request::Recall(Recall { filter: filter(json!({"a": {"above": 1}})), ..recall("garage door") }),
        Request::Recall(Recall { since: Some("2020-01-01".into()), max_chars: Some(7), ..recall("garage") }),
        Request::Recall(Recall { until: Some("2020-01-01T00:00:00.5+01:00".into()), ..recall("garage") }),
        Request::List(List { filter: filter(json!({"a": {"gt": 2.25, "lt": 2.75}})), ..List::default() }),
        Request::List(List { since: Some("soon".into()), ..List::default() }),
        Request::List(List {
            order: Some(ListOrder::Recent),
            // One alone: two that were written at one moment in one store may not be in the other.
            tag: Some("house".into()),
            until: Some("2999-01-01".into()),
            ..List::default()
        }),
        Request::Export(Export::default()),
        Request::Export(Export { max_bytes: Some(1), cursor: None }),
        Request::Export(Export { max_bytes: None, cursor: Some("?".into()) }),
        command(Command::Rename { old_path: "/memories/notes".into(), new_path: "/memories/n".into() }),
        Request::Forget(Forget { keys: Some(vec!["garage".into(), "no".into()]), ..Forget::default() }),
        Request::Forget(Forget { prefix: Some("/memories/".into()), ..Forget::default() }),
        Request::Forget(Forget { key: Some("garage".into()), ..Forget::default() }),
        command(Command::Delete { path: "/memories/n".into() }),
        command(Command::View { path: "/memories".into(), view_range: None }),
        Request::Restore(restore("garage", "The garage has a keypad.")),
        Request::Restore(restore("garage", "The garage has a keypad.")),
        Request::Restore(restore("garage", "other contents")),
        Request::Restore(restore("/memories/../x", "a name that is none")),
        Request::Get(Get { key: "garage".into() }),
        Request::Damaged,
        suggest(SuggestWhat::Keys, "ga"),
        suggest(SuggestWhat::Tags, ""),
        suggest(SuggestWhat::Prefixes, &"x".repeat(10_000)),
        Request::Stats,
    ]
}

fn suggest(what: SuggestWhat, begun: &str) -> Request {
    Request::Suggest(Suggest { what, begun: begun.into(), most: 10 })
}

fn filter(filter: Value) -> Option<serde_json::Map<String, Value>> {
    filter.as_object().cloned()
}

fn restore(key: &str, text: &str) -> Restore {
    let memory = json!({
        "key": key, "text": text, "title": "T", "tags": ["a"], "metadata": {"n": 0.1}, "version": "", "bytes": 0,
        "created_at": "2026-01-31T12:00:00.123Z", "updated_at": "2026-02-01T12:00:00Z",
    });
    Restore { memories: vec![serde_json::from_value(memory).expect("a memory")], ..Restore::default() }
}

/// Checks that two memories over empty stores answer each request alike, to the last bit.
pub fn check_alike(one: &dyn Memory, other: &dyn Memory) {
    for (number, (request, same)) in requests().into_iter().zip(requests()).enumerate() {
        let (ours, theirs) = (one.call(request), other.call(same));
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => assert_eq!(told(ours), told(theirs), "request {number}"),
            (Err(ours), Err(theirs)) => {
                assert_eq!(ours.code, theirs.code, "request {number}");
                if ours.code != ErrorCode::VersionConflict {
                    assert!(ours == theirs, "request {number}");
                }
            }
            _ => panic!("request {number} is served by one and refused by the other"),
        }
    }
    assert_eq!(dumped(one), dumped(other));
}

fn dumped(memory: &dyn Memory) -> Vec<Value> {
    let mut all = Vec::new();
    let counted = memory.dump(&Copying { kind: CopyKind::Export, place: "-".into() }, &mut |memory| {
        let mut memory = serde_json::to_value(memory).expect("plain values");
        blank(&mut memory);
        all.push(memory);
        Ok(())
    });
    assert_eq!(counted.ok(), Some(all.len() as u64));
    all
}

/// Checks what a caller may count on.
pub fn check(memory: &dyn Memory) {
    let key = || "a key".to_owned();
    let remember = |text: &str, if_version: Option<String>| {
        let request = Remember { key: Some(key()), text: text.into(), if_version, ..Remember::default() };
        match memory.call(Request::Remember(request)) {
            Ok(Reply::Remember(remembered)) => Ok(remembered),
            Ok(_) => panic!("a reply of another kind"),
            Err(failure) => Err(failure),
        }
    };
    let text = || match memory.call(Request::Get(Get { key: key() })) {
        Ok(Reply::Get(memory)) => memory.text,
        _ => panic!("it is there"),
    };
    let listener = memory.listener();
    let mut mark = listener.next(ChangesSince::Time(0), NOW).expect("it is open").mark;
    let mut changed = || {
        let changes = listener.next(ChangesSince::Mark(mark), LONGEST_WAIT).expect("it is open");
        mark = changes.mark;
        assert!(!changes.missed);
        changes.changed.into_iter().map(|changed| (changed.key, changed.listed)).collect::<Vec<_>>()
    };
    let first = remember("first", None).expect("it is stored");
    assert_eq!(changed(), [(key(), true)], "who listens hears of it");
    assert!(first.created);
    assert_eq!(text(), "first", "a write is seen by the next read");
    let second = remember("second", Some(first.version.clone())).expect("nothing came between");
    assert!(!second.created && second.version != first.version);
    assert_eq!(changed(), [(key(), false)]);
    let late = remember("late", Some(first.version)).expect_err("something came between");
    assert_eq!(late.code, ErrorCode::VersionConflict);
    assert_eq!(text(), "second");
    let same = remember("second", None).expect("the same again is a new version");
    assert_ne!(same.version, second.version);
    let Ok(Reply::Recall(found)) =
        memory.call(Request::Recall(Recall { query: "second".into(), ..Recall::default() }))
    else {
        panic!("it is searched")
    };
    assert_eq!((found.results.len(), found.results[0].key.as_str()), (1, "a key"));
    let forget = || memory.call(Request::Forget(Forget { key: Some(key()), ..Forget::default() }));
    assert!(matches!(forget(), Ok(Reply::Forget(forgotten)) if forgotten.forgotten == 1));
    assert_eq!(changed(), [(key(), false), (key(), true)], "one change for each commit, in their order");
    assert_eq!(forget().err().map(|failure| failure.code), Some(ErrorCode::NotFound));
}
