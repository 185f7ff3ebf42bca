//! Memories by name, and recall over them.

mod common;

use std::collections::BTreeSet;

use common::{Home, Shorthand};
use warm_engine::contract::{ErrorCode, Forget, Get, Limits, List, Recall, RecallMode, Remember};

fn remember(key: &str, text: &str) -> Remember {
    Remember { key: Some(key.into()), text: text.into(), ..Remember::default() }
}

#[test]
fn what_is_remembered_comes_back_whole_also_after_reopening() {
    let home = Home::new();
    let metadata = serde_json::json!({ "b": [1, 2.5, null], "a": "ü" });
    let request = Remember {
        text: "Ünïcode\r\n\0 text".into(),
        title: Some("T".into()),
        tags: vec!["x".into(), "y".into(), "x".into()],
        metadata: metadata.as_object().cloned(),
        ..remember("some key", "")
    };
    let done = home.open().remember(request).unwrap();
    assert!(done.created && done.bytes == 17);
    let got = home.open().get(&Get { key: "some key".into() }).unwrap();
    assert_eq!(got.text, "Ünïcode\r\n\0 text");
    assert_eq!(
        (got.title.as_deref(), got.tags.as_slice()),
        (Some("T"), &["x".to_owned(), "y".to_owned()][..])
    );
    assert_eq!(serde_json::Value::Object(got.metadata.unwrap()), metadata);
    assert_eq!(got.version, done.version);
    assert_eq!(got.created_at, got.updated_at);
}

#[test]
fn a_key_is_made_up_when_absent_and_never_twice() {
    let home = Home::new();
    let engine = home.open();
    let make = || engine.remember(Remember { text: "same".into(), ..Remember::default() }).unwrap().key;
    assert_ne!(make(), make());
}

#[test]
fn replacing_keeps_the_creation_time_and_changes_the_version() {
    let home = Home::new();
    let engine = home.open();
    let first = engine.remember_text("k", "one");
    let before = engine.get(&Get { key: "k".into() }).unwrap();
    let again = engine.remember(remember("k", "two")).unwrap();
    let after = engine.get(&Get { key: "k".into() }).unwrap();
    assert!(!again.created && again.version != first);
    assert_eq!((after.created_at, after.text.as_str()), (before.created_at, "two"));
}

#[test]
fn compare_and_set_lets_one_of_two_writers_win() {
    let home = Home::new();
    let engine = home.open();
    let version = engine.remember_text("k", "one");
    let set = |text: &str, version: &str| {
        engine.remember(Remember { if_version: Some(version.into()), ..remember("k", text) })
    };
    let second = set("two", &version).unwrap().version;
    let conflict = set("lost", &version).unwrap_err();
    assert_eq!(conflict.code(), ErrorCode::VersionConflict);
    assert_eq!(conflict.details().unwrap()["current"], second.as_str());
    assert_eq!(engine.get(&Get { key: "k".into() }).unwrap().text, "two");
    let absent =
        engine.remember(Remember { if_version: Some(second), ..remember("other", "x") }).unwrap_err();
    assert_eq!(absent.code(), ErrorCode::VersionConflict);
    let taken = engine.remember(Remember { create_only: true, ..remember("k", "x") }).unwrap_err();
    assert_eq!(taken.code(), ErrorCode::AlreadyExists);
}

#[test]
fn files_and_other_memories_are_one_kind_of_record() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/notes/car.md", "the car is red").unwrap();
    engine.remember_text("plain", "the bike is red");
    engine.remember_text("/memories/notes/bus.md", "the bus is red");
    assert_eq!(engine.recalled("red").len(), 3);
    let under = |under: &str| {
        let request = Recall { query: "red".into(), under: Some(under.into()), ..Recall::default() };
        engine.recall(&request).unwrap().results.into_iter().map(|hit| hit.key).collect::<BTreeSet<_>>()
    };
    let both = BTreeSet::from(["/memories/notes/bus.md".to_owned(), "/memories/notes/car.md".to_owned()]);
    assert_eq!(under("/memories"), both);
    assert_eq!(under("/memories/notes/"), both);
    assert_eq!(under("/memories/note"), BTreeSet::new());
    let tagged = Recall { query: "red".into(), tags: vec!["memory-file".into()], ..Recall::default() };
    assert_eq!(engine.recall(&tagged).unwrap().total, 2);
    assert!(engine.view("/memories").unwrap().contains("bus.md"));
    engine.forget(Forget { key: Some("/memories/notes/car.md".into()), ..Forget::default() }).unwrap();
    assert!(!engine.view("/memories").unwrap().contains("car.md"));
    assert_eq!(under("/memories").len(), 1);
}

#[test]
fn keys_below_memories_obey_the_path_rules() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/f", "x").unwrap();
    engine.create("/memories/d/g", "x").unwrap();
    for key in [
        "/memories",
        "/memories/",
        "/memories/../x",
        "/memories/.x",
        "/memories/d",
        "/memories/f/x",
        "",
        "a\nb",
    ] {
        let error = engine.remember(remember(key, "text")).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{key:?}: {error}");
    }
    assert_eq!(engine.stats().memories, 2);
}

#[test]
fn a_memory_has_one_spelling() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/a.txt", "x").unwrap();
    engine.remember_text("notes/a", "y");
    for key in ["\0memories\0a.txt", "notes\0a"] {
        let get = engine.get(&Get { key: key.into() }).err().unwrap();
        let forget = engine.forget(Forget { key: Some(key.into()), ..Forget::default() }).unwrap_err();
        assert_eq!((get.code(), forget.code()), (ErrorCode::InvalidArgument, ErrorCode::InvalidArgument));
    }
    let prefix = Forget { prefix: Some("notes\0".into()), confirm: true, ..Forget::default() };
    assert_eq!(engine.forget(prefix).unwrap().forgotten, 0);
    let everything = Forget { prefix: Some(String::new()), confirm: true, ..Forget::default() };
    assert_eq!(engine.forget(everything).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!(engine.stats().memories, 2);
}

#[test]
fn metadata_is_no_deeper_than_every_reader_of_json_goes() {
    let home = Home::new();
    let engine = home.open();
    let nested = |levels: usize| {
        let mut value = serde_json::json!(1);
        for _ in 1..levels {
            value = serde_json::json!([value]);
        }
        let metadata = serde_json::json!({ "a": value }).as_object().cloned();
        engine.remember(Remember { metadata, ..remember("t", "x") }).map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(nested(32), Ok(()));
    assert_eq!(nested(33), Err(ErrorCode::InvalidArgument));
    assert_eq!(nested(100), Err(ErrorCode::InvalidArgument));
}

#[test]
fn limits_hold_at_the_byte() {
    let home = Home::new();
    let limits = Limits::default();
    let engine = home.open();
    let code = |request: Remember| engine.remember(request).map(|_| ()).map_err(|error| error.code());
    let (ok, too_large) = (Ok(()), Err(ErrorCode::TooLarge));
    assert_eq!(code(remember("t", &"x".repeat(32 * 1024))), ok);
    assert_eq!(code(remember("t", &"x".repeat(32 * 1024 + 1))), too_large);
    let title = |n| Remember { title: Some("x".repeat(n)), ..remember("t", "x") };
    assert_eq!((code(title(256)), code(title(257))), (ok, too_large));
    let tags = |n| Remember { tags: (0..n).map(|i: u64| i.to_string()).collect(), ..remember("t", "x") };
    assert_eq!((code(tags(limits.max_tags)), code(tags(limits.max_tags + 1))), (ok, too_large));
    let metadata = |n| Remember {
        metadata: serde_json::json!({ "k": "x".repeat(n) }).as_object().cloned(),
        ..remember("t", "x")
    };
    let frame = r#"{"k":""}"#.len();
    assert_eq!((code(metadata(4096 - frame)), code(metadata(4097 - frame))), (ok, too_large));
    assert_eq!(code(remember("t", "")), Err(ErrorCode::InvalidArgument));
    let forget = |n: u64| {
        let keys = (0..n).map(|i| i.to_string()).collect();
        engine
            .forget(Forget { keys: Some(keys), ..Forget::default() })
            .map(|_| ())
            .map_err(|error| error.code())
    };
    assert_eq!((forget(limits.max_forget), forget(limits.max_forget + 1)), (ok, too_large));
}

#[test]
fn paging_visits_every_memory_exactly_once_while_others_come_and_go() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..500 {
        engine.remember_text(&format!("k{n:03}"), "text");
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let request = List { prefix: Some("k".into()), limit: Some(33), cursor, ..List::default() };
        let page = engine.list(&request).unwrap();
        assert!(page.returned == page.memories.len() as u64 && page.returned <= 33);
        assert_eq!(page.truncated, page.next_cursor.is_some());
        seen.extend(page.memories.into_iter().map(|memory| memory.key));
        pages += 1;
        let last = seen.last().unwrap().clone();
        engine.forget(Forget { key: Some(last.clone()), ..Forget::default() }).unwrap();
        engine.remember_text(&format!("a{pages}"), "before");
        let Some(next) = page.next_cursor else { break };
        cursor = Some(next);
    }
    assert_eq!(seen, (0..500).map(|n| format!("k{n:03}")).collect::<Vec<_>>());
    let bad = engine.list(&List { cursor: Some("%%%".into()), ..List::default() }).err().unwrap();
    assert_eq!(bad.code(), ErrorCode::InvalidArgument);
}

#[test]
fn replies_stay_bounded_and_say_what_was_left_out() {
    let home = Home::new();
    let engine = home.open();
    let tags: Vec<_> = (0..32).map(|n| format!("{n:064}")).collect();
    for n in 0..60 {
        let request = Remember {
            title: Some("t".repeat(256)),
            tags: tags.clone(),
            ..remember(&format!("{n:0240}"), "word")
        };
        engine.remember(request).unwrap();
    }
    let page = engine.list(&List { limit: Some(200), ..List::default() }).unwrap();
    assert!(page.truncated && page.total == 60 && serde_json::to_vec(&page).unwrap().len() < 33_000);
    let found = engine.recall(&Recall { query: "word".into(), k: Some(50), ..Recall::default() }).unwrap();
    assert!(found.truncated && found.total == 60 && found.returned < 50);
    assert!(serde_json::to_vec(&found).unwrap().len() < 33_000);
}

#[test]
fn forgetting_takes_one_form_at_a_time_and_asks_before_it_forgets_many() {
    let home = Home::new();
    let engine = home.open();
    for key in ["a/1", "a/2", "b"] {
        engine.remember_text(key, "text");
    }
    let code = |request: Forget| engine.forget(request).map_err(|error| error.code());
    let prefix = |confirm| Forget { prefix: Some("a/".into()), confirm, ..Forget::default() };
    assert_eq!(code(Forget::default()), Err(ErrorCode::InvalidArgument));
    assert_eq!(code(Forget { key: Some("b".into()), ..prefix(true) }), Err(ErrorCode::InvalidArgument));
    assert_eq!(code(Forget { key: Some("no".into()), ..Forget::default() }), Err(ErrorCode::NotFound));
    let unconfirmed = engine.forget(prefix(false)).unwrap_err();
    assert!(unconfirmed.to_string().contains("2 memories"));
    assert_eq!(engine.stats().memories, 3);
    assert_eq!(code(prefix(true)).unwrap().forgotten, 2);
    let keys = Forget { keys: Some(vec!["b".into(), "gone".into(), "b".into()]), ..Forget::default() };
    let done = code(keys).unwrap();
    assert_eq!((done.forgotten, done.missing), (1, vec!["gone".to_owned(), "b".to_owned()]));
    assert_eq!(engine.stats().memories, 0);
}

#[test]
fn a_write_is_found_by_the_next_recall_and_a_forgotten_one_never_again() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..50 {
        let word = format!("zebra{n}");
        engine.remember_text("k", &format!("the {word} runs"));
        assert_eq!(engine.recalled(&word), ["k"]);
        if n > 0 {
            assert!(engine.recalled(&format!("zebra{}", n - 1)).is_empty(), "the earlier version is gone");
        }
    }
    engine.forget(Forget { key: Some("k".into()), ..Forget::default() }).unwrap();
    assert!(engine.recalled("zebra49").is_empty());
    drop(engine);
    assert!(home.open().recalled("zebra49").is_empty());
}

#[test]
fn the_index_is_rebuilt_from_the_records() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..300 {
        engine.remember_text(&format!("k{n}"), &format!("shared words and number{n}"));
    }
    let score = |engine: &warm_engine::Engine| {
        let found = engine
            .recall(&Recall { query: "number7 words".into(), k: Some(50), ..Recall::default() })
            .unwrap();
        found.results.into_iter().map(|hit| (hit.key, hit.score)).collect::<Vec<_>>()
    };
    let before = score(&engine);
    assert_eq!(before[0].0, "k7");
    drop(engine);
    let after = score(&home.open());
    assert_eq!(before.len(), after.len());
    for ((key_before, score_before), (key_after, score_after)) in before.iter().zip(&after) {
        assert_eq!(key_before, key_after);
        assert!((score_before - score_after).abs() < 1e-9);
    }
}

#[test]
fn what_changes_while_the_index_is_being_filled_is_neither_lost_nor_brought_back() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..300 {
        engine.remember_text(&format!("k{n:04}"), &format!("an earlier note about number{n}"));
    }
    drop(engine);
    let engine = home.open();
    // These overtake the filling, which began with the newest last.
    let gone: Vec<_> = (200..250).map(|n| format!("k{n:04}")).collect();
    engine.forget(Forget { keys: Some(gone), ..Forget::default() }).unwrap();
    for n in 250..300 {
        engine.remember_text(&format!("k{n:04}"), &format!("a later note about number{n}"));
    }
    let count = |query: &str| {
        let request = Recall { query: query.into(), ..Recall::default() };
        engine.recall(&request).unwrap().total
    };
    assert_eq!((count("note"), count("earlier"), count("later")), (250, 200, 50));
    assert_eq!((count("number225"), count("number275"), count("number3")), (0, 1, 1));
}

#[test]
fn arguments_of_recall_are_checked_and_no_query_is_an_error() {
    let home = Home::new();
    let engine = home.open();
    engine.remember_text("k", "text");
    let ask = |query: &str| Recall { query: query.into(), ..Recall::default() };
    for query in ["", " ", "🚀", "!?()[]{}", "a AND (b OR", "\"unclosed", "title:x^2~", "*", "\\", "\0"] {
        engine.recall(&ask(query)).unwrap();
    }
    let code = |request: Recall| engine.recall(&request).map(|_| ()).map_err(|error| error.code());
    for request in [
        Recall { k: Some(0), ..ask("text") },
        Recall { k: Some(51), ..ask("text") },
        Recall { mode: Some(RecallMode::Hybrid), ..ask("text") },
        Recall { mode: Some(RecallMode::Semantic), ..ask("text") },
        Recall { under: Some("/memories/../x".into()), ..ask("text") },
        Recall { under: Some("/".into()), ..ask("text") },
        Recall { tags: vec![String::new()], ..ask("text") },
    ] {
        assert_eq!(code(request), Err(ErrorCode::InvalidArgument));
    }
    assert_eq!(code(ask(&"x".repeat(40_000))), Err(ErrorCode::TooLarge));
    assert_eq!(code(Recall { mode: Some(RecallMode::Lexical), ..ask("text") }), Ok(()));
    let none = engine.recall(&Recall { min_score: Some(1e9), ..ask("text") }).unwrap();
    assert_eq!((none.total, none.truncated), (0, false));
}

#[test]
fn signs_codes_and_long_tokens_are_found() {
    let home = Home::new();
    let engine = home.open_with(Limits { max_text_bytes: 100_000, ..Limits::default() });
    engine.remember_text("rocket", "deploy 🚀 friday");
    engine.remember_text("turtle", "deploy 🐢 monday");
    engine.remember_text("link", "link runs at 12 GB/s");
    engine.remember_text("logs", "GBs of old logs");
    engine.remember_text("tokyo", "東京都庁に行きました");
    engine.remember_text("long", &"z".repeat(70_000));
    let (one, two) = (format!("{}1", "t".repeat(199)), format!("{}2", "t".repeat(199)));
    engine.remember_text("one", &one);
    engine.remember_text("two", &two);
    for (query, key) in [
        ("🚀", "rocket"),
        ("🐢", "turtle"),
        ("GB/s", "link"),
        ("東京", "tokyo"),
        (one.as_str(), "one"),
        (two.as_str(), "two"),
    ] {
        assert_eq!(engine.recalled(query)[0], key, "{query}");
    }
    assert_eq!(engine.recalled("🚀"), ["rocket"]);
    assert_eq!(engine.recalled(&"z".repeat(70_000)), ["long"]);
}

#[test]
fn an_excerpt_comes_from_the_best_passage_and_names_its_lines() {
    let home = Home::new();
    let engine = home.open();
    let filler: String = (0..400).map(|n| format!("filler line {n} about nothing\n")).collect();
    engine
        .create("/memories/long.md", &format!("{filler}the vault opens with a tuning fork\n{filler}"))
        .unwrap();
    let found = engine.recall(&Recall { query: "tuning fork".into(), ..Recall::default() }).unwrap();
    let hit = &found.results[0];
    assert!(hit.excerpt.contains("tuning fork") && hit.excerpt.chars().count() <= 300);
    assert!(hit.lines[0] <= 401 && 401 <= hit.lines[1], "{:?}", hit.lines);
}
