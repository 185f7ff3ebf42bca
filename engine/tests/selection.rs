//! Memories chosen by metadata and time, pages in both orders, and bounds of what comes back.

mod common;

use common::{Home, Shorthand};
use serde_json::{Value, json};
use warm_engine::Engine;
use warm_engine::contract::{
    ErrorCode, Export, Forget, Get, Limits, List, ListOrder, Memory, Recall, Remember, Restore,
};

fn remember(engine: &Engine, key: &str, text: &str, metadata: Value) {
    let metadata = metadata.as_object().cloned();
    let request = Remember { key: Some(key.into()), text: text.into(), metadata, ..Remember::default() };
    engine.remember(request).unwrap();
}

fn listed(engine: &Engine, request: List) -> Vec<String> {
    let page = engine.list(&request).unwrap();
    assert_eq!(page.total, page.returned);
    page.memories.into_iter().map(|memory| memory.key).collect()
}

fn object(value: Value) -> Option<serde_json::Map<String, Value>> {
    value.as_object().cloned()
}

/// A memory that was last written in second `at` of 1970.
fn written_at(key: &str, at: u64) -> Memory {
    let time = format!("1970-01-01T00:{:02}:{:02}Z", at / 60, at % 60);
    serde_json::from_value(json!({
        "key": key, "text": "a note of words", "title": null, "tags": [], "metadata": null, "version": "",
        "bytes": 0, "created_at": "1970-01-01T00:00:00Z", "updated_at": time,
    }))
    .unwrap()
}

#[test]
fn a_filter_narrows_list_and_recall_alike_also_after_reopening_and_after_an_edit() {
    let home = Home::new();
    let engine = home.open();
    for n in 0..40 {
        let team = if n % 4 == 0 { "ops" } else { "dev" };
        let metadata = json!({"team": team, "n": n, "source": {"page": n / 10}});
        remember(&engine, &format!("k{n:02}"), "the release is on Friday", metadata);
    }
    remember(&engine, "plain", "the release is on Friday", Value::Null);
    engine.create("/memories/release.md", "the release is on Friday").unwrap();
    let narrowed = |engine: &Engine, filter: Value| {
        let list = List { filter: object(filter.clone()), limit: Some(200), ..List::default() };
        let keys = listed(engine, list);
        let request = Recall {
            query: "release Friday".into(),
            k: Some(3),
            filter: object(filter),
            ..Recall::default()
        };
        let found = engine.recall(&request).unwrap();
        // Exact: all that pass are counted, and as many as were asked for are returned.
        assert_eq!(found.total, keys.len() as u64);
        assert_eq!(found.returned, found.total.min(3));
        assert!(found.results.iter().all(|hit| keys.contains(&hit.key)));
        keys
    };
    drop(engine);
    for _ in 0..2 {
        let engine = home.open();
        assert_eq!(narrowed(&engine, json!({"team": "ops"})).len(), 10);
        assert_eq!(narrowed(&engine, json!({"n": {"gte": 38}})), ["k38", "k39"]);
        assert_eq!(narrowed(&engine, json!({"source.page": 3, "team": "ops"})), ["k32", "k36"]);
        assert_eq!(narrowed(&engine, json!({"team": {"exists": false}})), ["/memories/release.md", "plain"]);
        assert_eq!(narrowed(&engine, json!({"not": {"team": {"in": ["dev", "ops"]}}})).len(), 2);
        assert_eq!(narrowed(&engine, json!({"team": "none"})), [""; 0]);
        assert_eq!(narrowed(&engine, json!({})).len(), 42);
    }
    let engine = home.open();
    remember(&engine, "k38", "the release is on Friday", json!({"team": "moved"}));
    assert_eq!(narrowed(&engine, json!({"n": {"gte": 38}})), ["k39"]);
    assert_eq!(narrowed(&engine, json!({"team": "moved"})), ["k38"]);
    engine.forget(Forget { key: Some("k38".into()), ..Forget::default() }).unwrap();
    assert_eq!(narrowed(&engine, json!({"team": "moved"})), [""; 0]);
}

#[test]
fn a_malformed_filter_or_time_is_refused_with_its_place_by_both() {
    let home = Home::new();
    let engine = home.open();
    let filter = object(json!({"or": [{"n": {"over": 1}}]}));
    let list = List { filter: filter.clone(), ..List::default() };
    let recall = Recall { query: "q".into(), filter, ..Recall::default() };
    for error in [engine.list(&list).err().unwrap(), engine.recall(&recall).err().unwrap()] {
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert!(error.to_string().contains("filter.or[0].n.over"), "{error}");
    }
    let list = List { since: Some("tomorrow".into()), ..List::default() };
    let recall = Recall { query: "q".into(), until: Some("2026-02-30".into()), ..Recall::default() };
    for (error, field) in
        [(engine.list(&list).err().unwrap(), "since"), (engine.recall(&recall).err().unwrap(), "until")]
    {
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert!(error.to_string().starts_with(field), "{error}");
    }
}

#[test]
fn since_and_until_choose_by_the_last_write_and_take_the_times_that_replies_show() {
    let home = Home::new();
    let engine = home.open();
    let memories = (0..10).map(|n| written_at(&format!("m{n}"), n)).collect();
    engine.restore(Restore { memories, ..Restore::default() }).unwrap();
    let shown = engine.get(&Get { key: "m3".into() }).unwrap().updated_at;
    for (since, until, keys) in [
        (Some(shown.as_str()), Some("1970-01-01T00:00:05Z"), &["m3", "m4"][..]),
        (None, Some(shown.as_str()), &["m0", "m1", "m2"][..]),
        (Some("1970-01-01T02:00:07.5+02:00"), None, &["m8", "m9"][..]),
        (Some("1970-01-02"), None, &[][..]),
    ] {
        let (since, until) = (since.map(str::to_owned), until.map(str::to_owned));
        let list = List { since: since.clone(), until: until.clone(), ..List::default() };
        assert_eq!(listed(&engine, list), keys);
        let request = Recall { query: "words".into(), k: Some(1), since, until, ..Recall::default() };
        let found = engine.recall(&request).unwrap();
        assert_eq!((found.total, found.returned), (keys.len() as u64, keys.len().min(1) as u64));
    }
}

#[test]
fn the_recent_order_shows_the_last_written_first_and_pages_steadily() {
    let home = Home::new();
    let engine = home.open();
    // Three of each second, so that the order within one moment is tried too.
    let memories = (0..120).map(|n| written_at(&format!("/memories/d{}/m{n:03}", n % 2), n / 3)).collect();
    engine.restore(Restore { memories, ..Restore::default() }).unwrap();
    let (mut seen, mut cursor, mut gone) = (Vec::new(), None, 0);
    loop {
        let request = List { order: Some(ListOrder::Recent), limit: Some(7), cursor, ..List::default() };
        let page = engine.list(&request).unwrap();
        assert_eq!(page.truncated, page.next_cursor.is_some());
        seen.extend(page.memories);
        // The one where the cursor stands goes, and others come, in front and behind.
        let last = seen.last().unwrap().key.clone();
        engine.forget(Forget { key: Some(last), ..Forget::default() }).unwrap();
        gone += 1;
        remember(&engine, &format!("new{gone}"), "now", Value::Null);
        let Some(next) = page.next_cursor else { break };
        cursor = Some(next);
    }
    assert_eq!(seen.len(), 120);
    let by_time: Vec<_> = seen.iter().map(|memory| memory.updated_at.clone()).collect();
    assert!(by_time.windows(2).all(|two| two[0] >= two[1]));
    let newest = List { order: Some(ListOrder::Recent), limit: Some(1), ..List::default() };
    assert!(engine.list(&newest).unwrap().memories[0].key.starts_with("new"));
    // A cursor of one order is no place in the other.
    let by_name = engine.list(&List { limit: Some(1), ..List::default() }).unwrap().next_cursor;
    let crossed = List { order: Some(ListOrder::Recent), cursor: by_name, ..List::default() };
    assert_eq!(engine.list(&crossed).err().unwrap().code(), ErrorCode::InvalidArgument);
}

#[test]
fn the_excerpts_of_a_recall_never_exceed_max_chars_and_one_is_always_there() {
    let home = Home::new();
    let engine = home.open();
    let text = "The ünïcode deployment 部署 runs on Friday at noon. ".repeat(20);
    for n in 0..8 {
        engine.remember_text(&format!("k{n}"), &text);
    }
    let recall = |max_chars| {
        let query = "deployment Friday".into();
        engine.recall(&Recall { query, max_chars, ..Recall::default() })
    };
    let unbounded = recall(None).unwrap();
    assert_eq!(unbounded.returned, 5);
    for most in (1..40).chain([299, 300, 301, 599, 600, 601, 5_000]) {
        let found = recall(Some(most)).unwrap();
        let chars: usize = found.results.iter().map(|hit| hit.excerpt.chars().count()).sum();
        assert!(chars as u64 <= most && !found.results.is_empty(), "{most}");
        assert!(!found.results[0].excerpt.is_empty(), "{most}");
        assert!(found.truncated && found.total == 8);
    }
    assert_eq!(recall(Some(5_000)).unwrap().returned, 5);
    assert_eq!(recall(Some(0)).err().unwrap().code(), ErrorCode::InvalidArgument);
    // One memory that is cut is truncated, too; one that is not, is not.
    let home = Home::new();
    let engine = home.open();
    engine.remember_text("only", "the deployment is on Friday");
    let ask = |max_chars| Recall { query: "deployment".into(), max_chars, ..Recall::default() };
    assert!(engine.recall(&ask(Some(10))).unwrap().truncated);
    assert!(!engine.recall(&ask(Some(100))).unwrap().truncated);
}

#[test]
fn an_export_has_every_memory_that_stays_exactly_once_while_others_come_and_go() {
    let home = Home::new();
    let engine = home.open_with(Limits { max_export_bytes: 4_000, ..Limits::default() });
    for n in 0..200 {
        remember(&engine, &format!("k{n:03}"), &"text ".repeat(n % 50 + 1), json!({"n": n}));
    }
    engine.create("/memories/a.md", "").unwrap();
    let (mut seen, mut cursor, mut pages) = (Vec::new(), None, 0);
    loop {
        let page = engine.export(&Export { cursor, max_bytes: None }).unwrap();
        assert_eq!(page.truncated, page.next_cursor.is_some());
        assert!(serde_json::to_vec(&page.memories).unwrap().len() <= 4_001);
        seen.extend(page.memories.into_iter().map(|memory| memory.key));
        pages += 1;
        engine.forget(Forget { key: seen.last().cloned(), ..Forget::default() }).unwrap();
        engine.remember_text(&format!("/memories/b{pages}"), "comes before");
        let Some(next) = page.next_cursor else { break };
        cursor = Some(next);
    }
    let expected: Vec<_> =
        ["/memories/a.md".to_owned()].into_iter().chain((0..200).map(|n| format!("k{n:03}"))).collect();
    assert_eq!(seen, expected);
    assert!(pages > 5);
    // One memory always fits, and a caller can only ask for less.
    let one = engine.export(&Export { cursor: None, max_bytes: Some(1) }).unwrap();
    assert_eq!((one.returned, one.truncated), (1, true));
    let most = engine.export(&Export { cursor: None, max_bytes: Some(u64::MAX) }).unwrap();
    assert!(serde_json::to_vec(&most.memories).unwrap().len() <= 4_001);
    let bad = engine.export(&Export { cursor: Some("%".into()), max_bytes: None }).err().unwrap();
    assert_eq!(bad.code(), ErrorCode::InvalidArgument);
}

#[test]
fn lowered_limits_lower_what_is_returned_unasked() {
    let home = Home::new();
    let engine = home.open_with(Limits { max_top_k: 2, max_page: 3, ..Limits::default() });
    for n in 0..9 {
        engine.remember_text(&format!("k{n}"), "word");
    }
    assert_eq!(engine.list(&List::default()).unwrap().returned, 3);
    let found = engine.recall(&Recall { query: "word".into(), ..Recall::default() }).unwrap();
    assert_eq!((found.returned, found.total), (2, 9));
}
