//! The memory tree against a plain map, and its exact strings.

mod common;

use std::collections::BTreeMap;

use common::{Home, Shorthand};
use proptest::prelude::*;
use warm_engine::contract::{Command, CommandLimits, ErrorCode, Limits};

fn replace(path: &str, old: &str, new: Option<&str>) -> Command {
    Command::StrReplace { path: path.into(), old_str: old.into(), new_str: new.map(Into::into) }
}

fn insert(path: &str, insert_line: i64, text: &str) -> Command {
    Command::Insert { path: path.into(), insert_line, insert_text: text.into() }
}

fn delete(path: &str) -> Command {
    Command::Delete { path: path.into() }
}

fn rename(old: &str, new: &str) -> Command {
    Command::Rename { old_path: old.into(), new_path: new.into() }
}

#[test]
fn an_empty_store_shows_its_root() {
    let home = Home::new();
    let engine = home.open();
    assert_eq!(
        engine.view("/memories").unwrap(),
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n\
         0B\t/memories"
    );
}

#[test]
fn a_directory_is_shown_two_levels_deep_with_sizes_and_without_node_modules() {
    let home = Home::new();
    let engine = home.open();
    for (path, size) in [
        ("/memories/b.txt", 1536),
        ("/memories/a/x.md", 10),
        ("/memories/a/deep/deeper/f", 1014),
        ("/memories/a-b", 1),
        ("/memories/node_modules/m/index.js", 5),
    ] {
        engine.create(path, &"x".repeat(size)).unwrap();
    }
    let shown = engine.view("/memories").unwrap();
    let rows: Vec<_> = shown.lines().skip(1).collect();
    assert_eq!(
        rows,
        [
            "2.5K\t/memories",
            "1K\t/memories/a/",
            "1014B\t/memories/a/deep/",
            "10B\t/memories/a/x.md",
            "1B\t/memories/a-b",
            "1.5K\t/memories/b.txt",
        ]
    );
    let below = engine.view("/memories/a").unwrap();
    assert_eq!(
        below.lines().skip(1).collect::<Vec<_>>(),
        [
            "1K\t/memories/a",
            "1014B\t/memories/a/deep/",
            "1014B\t/memories/a/deep/deeper/",
            "10B\t/memories/a/x.md"
        ]
    );
}

#[test]
fn every_command_answers_in_the_documented_words() {
    let home = Home::new();
    let engine = home.open();
    assert_eq!(
        engine.create("/memories/f.txt", "one\ntwo\n").unwrap(),
        "File created successfully at: /memories/f.txt"
    );
    assert_eq!(
        engine.run(replace("/memories/f.txt", "two", Some("zwei"))).unwrap(),
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     \
         1\tone\n     2\tzwei\n     3\t"
    );
    assert_eq!(
        engine.run(insert("/memories/f.txt", 0, "null\n\n")).unwrap(),
        "The file /memories/f.txt has been edited."
    );
    assert_eq!(
        engine.view("/memories/f.txt").unwrap(),
        "Here's the content of /memories/f.txt with line numbers:\n     1\tnull\n     2\tone\n     3\tzwei"
    );
    assert_eq!(
        engine.run(rename("/memories/f.txt", "/memories/d/g.txt")).unwrap(),
        "Successfully renamed /memories/f.txt to /memories/d/g.txt"
    );
    assert_eq!(engine.run(delete("/memories/d")).unwrap(), "Successfully deleted /memories/d");
}

#[test]
fn every_refusal_is_in_the_documented_words_and_changes_nothing() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/f", "aXbXc\nX\n").unwrap();
    engine.create("/memories/d/g", "text").unwrap();
    let before = engine.view("/memories").unwrap();
    for (command, message) in [
        (
            Command::View { path: "/memories/no".into(), view_range: None },
            "The path /memories/no does not exist. Please provide a valid path.",
        ),
        (
            Command::Create { path: "/memories/f".into(), file_text: String::new() },
            "File /memories/f already exists",
        ),
        (
            Command::Create { path: "/memories/d".into(), file_text: String::new() },
            "File /memories/d already exists",
        ),
        (
            Command::Create { path: "/memories".into(), file_text: String::new() },
            "File /memories already exists",
        ),
        (
            Command::Create { path: "/memories/f/x".into(), file_text: String::new() },
            "Cannot write /memories/f/x: /memories/f is a file, not a directory",
        ),
        (
            replace("/memories/no", "a", None),
            "The path /memories/no does not exist. Please provide a valid path.",
        ),
        (replace("/memories/d", "a", None), "The path /memories/d is not a file."),
        (
            replace("/memories/f", "Y", None),
            "No replacement was performed, old_str `Y` did not appear verbatim in /memories/f.",
        ),
        (
            replace("/memories/f", "X", None),
            "No replacement was performed. Multiple occurrences of old_str `X` in lines: 1, 1, 2. Please ensure it is unique",
        ),
        (
            replace("/memories/f", "", None),
            "No replacement was performed. old_str must not be empty; use insert to add text to /memories/f.",
        ),
        (
            insert("/memories/no", 0, "x"),
            "The path /memories/no does not exist. Please provide a valid path.",
        ),
        (insert("/memories/d", 0, "x"), "The path /memories/d is not a file."),
        (
            insert("/memories/f", 3, "x"),
            "Invalid `insert_line` parameter: 3. It should be within the range [0, 2].",
        ),
        (
            insert("/memories/f", -1, "x"),
            "Invalid `insert_line` parameter: -1. It should be within the range [0, 2].",
        ),
        (delete("/memories"), "Cannot delete the /memories directory itself"),
        (delete("/memories/no"), "The path /memories/no does not exist"),
        (rename("/memories", "/memories/x"), "Cannot rename the /memories directory itself"),
        (rename("/memories/no", "/memories/x"), "The path /memories/no does not exist"),
        (rename("/memories/d", "/memories/f"), "The destination /memories/f already exists"),
        (rename("/memories/f", "/memories/d"), "The destination /memories/d already exists"),
        (rename("/memories/d", "/memories"), "The destination /memories already exists"),
        (
            rename("/memories/d", "/memories/d/e"),
            "Cannot move /memories/d into itself: /memories/d/e is inside it",
        ),
        (
            rename("/memories/d", "/memories/f/e"),
            "Cannot write /memories/f/e: /memories/f is a file, not a directory",
        ),
        (delete("/memories_backup/f.txt"), "Path must start with /memories, got: /memories_backup/f.txt"),
        (rename("/memories/f", "/memories/../x"), "Path /memories/../x would escape /memories directory"),
    ] {
        assert_eq!(engine.run(command).unwrap_err(), message);
    }
    assert_eq!(engine.view("/memories").unwrap(), before);
    assert_eq!(
        engine.view("/memories/f").unwrap().lines().skip(1).collect::<Vec<_>>(),
        ["     1\taXbXc", "     2\tX"]
    );
}

#[test]
fn overlapping_matches_are_counted_as_the_sdk_counts_them() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/f", "aaa").unwrap();
    engine.run(replace("/memories/f", "aa", Some("b"))).unwrap();
    assert!(
        engine.view("/memories/f").unwrap().ends_with("     1\tba"),
        "one match without overlap is replaced"
    );
    engine.create("/memories/g", "ééé\néé").unwrap();
    assert!(engine.run(replace("/memories/g", "éé", None)).unwrap_err().contains("in lines: 1, 1, 2."));
}

#[test]
fn many_matches_are_named_within_bounds() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/f", &"x\n".repeat(10_000)).unwrap();
    let error = engine.run(replace("/memories/f", "x", None)).unwrap_err();
    assert!(error.contains("1, 2, 3") && error.contains("100, …") && error.len() < 1_000);
}

#[test]
fn replacement_text_is_taken_literally_and_carriage_returns_stay() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/f", "a\r\nb\r\n").unwrap();
    engine.run(replace("/memories/f", "b", Some(r"$1 \1 $& \n"))).unwrap();
    engine.run(insert("/memories/f", 1, "new")).unwrap();
    let get = warm_engine::contract::Get { key: "/memories/f".into() };
    assert_eq!(engine.get(&get).unwrap().text, "a\r\nnew\n$1 \\1 $& \\n\r\n");
}

#[test]
fn size_limits_hold_at_the_byte_and_can_only_be_lowered() {
    let home = Home::new();
    let engine = home.open_with(Limits { max_text_bytes: 10, ..Limits::default() });
    let create = |path: &str, size: usize, lower: Option<u64>| {
        let command = Command::Create { path: path.into(), file_text: "é".repeat(size / 2) };
        let limits = CommandLimits { max_file_bytes: lower, ..CommandLimits::default() };
        engine.command(command, limits).map_err(|error| error.code())
    };
    assert!(create("/memories/a", 10, None).is_ok());
    assert_eq!(create("/memories/b", 12, None), Err(ErrorCode::TooLarge));
    assert_eq!(create("/memories/b", 12, Some(100)), Err(ErrorCode::TooLarge));
    assert_eq!(create("/memories/b", 10, Some(9)), Err(ErrorCode::TooLarge));
    assert!(engine.run(insert("/memories/a", 0, "x")).unwrap_err().contains("over the limit of 10 bytes"));
    assert!(engine.run(replace("/memories/a", "ééééé", Some("12345678901"))).is_err());
    assert!(engine.run(replace("/memories/a", "ééééé", Some("1234567890"))).is_ok());
}

#[test]
fn names_are_compared_as_given_and_contents_are_never_normalised() {
    let home = Home::new();
    let engine = home.open();
    let (composed, decomposed) = ("/memories/caf\u{e9}.md", "/memories/cafe\u{301}.md");
    engine.create(composed, "caf\u{e9}").unwrap();
    engine.create(decomposed, "cafe\u{301}").unwrap();
    assert!(engine.view(composed).unwrap().ends_with("caf\u{e9}"));
    assert!(engine.view(decomposed).unwrap().ends_with("cafe\u{301}"));
    assert_eq!(engine.view("/memories").unwrap().lines().count(), 4);
}

#[test]
fn a_directory_rename_that_breaks_a_limit_moves_nothing() {
    let home = Home::new();
    let engine = home.open();
    engine.create("/memories/d/short", "1").unwrap();
    engine.create(&format!("/memories/d/{}", "n".repeat(120)), "2").unwrap();
    let before = engine.view("/memories").unwrap();
    let target = format!("/memories/{}", "t".repeat(125));
    assert!(engine.run(rename("/memories/d", &target)).unwrap_err().contains("limited to 240 bytes"));
    assert_eq!(engine.view("/memories").unwrap(), before);
}

#[derive(Clone, Debug)]
enum Step {
    Create(usize, String),
    Replace(usize, String, String),
    Insert(usize, i64, String),
    Delete(usize),
    Rename(usize, usize),
}

const PATHS: [&str; 8] = [
    "/memories/a",
    "/memories/a/b",
    "/memories/a/b/c",
    "/memories/ab",
    "/memories/d/e",
    "/memories/d",
    "/memories/d/f",
    "/memories/g",
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = || 0..PATHS.len();
    let text = || "[xy\n]{0,6}";
    let step = prop_oneof![
        (path(), text()).prop_map(|(p, t)| Step::Create(p, t)),
        (path(), "[xy\n]{1,2}", text()).prop_map(|(p, o, n)| Step::Replace(p, o, n)),
        (path(), -1i64..5, text()).prop_map(|(p, l, t)| Step::Insert(p, l, t)),
        path().prop_map(Step::Delete),
        (path(), path()).prop_map(|(a, b)| Step::Rename(a, b)),
    ];
    prop::collection::vec(step, 1..40)
}

/// The tree as a plain map from path to text; `false` means refused.
#[derive(Default)]
struct Model(BTreeMap<String, String>);

impl Model {
    fn is_dir(&self, path: &str) -> bool {
        self.0.keys().any(|key| key.starts_with(&format!("{path}/")))
    }

    fn free(&self, path: &str) -> bool {
        let under_file = self.0.keys().any(|file| path.starts_with(&format!("{file}/")));
        !self.0.contains_key(path) && !self.is_dir(path) && !under_file
    }

    fn apply(&mut self, step: &Step) -> bool {
        match step {
            Step::Create(p, text) => {
                let free = self.free(PATHS[*p]);
                if free {
                    self.0.insert(PATHS[*p].into(), text.clone());
                }
                free
            }
            Step::Replace(p, old, new) => {
                let Some(text) = self.0.get_mut(PATHS[*p]) else {
                    return false;
                };
                let once = text.matches(old.as_str()).count() == 1;
                if once {
                    *text = text.replacen(old.as_str(), new, 1);
                }
                once
            }
            Step::Insert(p, line, new) => {
                let Some(text) = self.0.get_mut(PATHS[*p]) else {
                    return false;
                };
                let mut lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
                if text.is_empty() {
                    lines.clear();
                }
                let Some(at) = usize::try_from(*line).ok().filter(|at| *at <= lines.len()) else {
                    return false;
                };
                lines.insert(at, new.trim_end_matches('\n'));
                let joined = lines.join("\n");
                *text = if joined.ends_with('\n') { joined } else { joined + "\n" };
                true
            }
            Step::Delete(p) => {
                let before = self.0.len();
                self.0.retain(|key, _| key != PATHS[*p] && !key.starts_with(&format!("{}/", PATHS[*p])));
                self.0.len() < before
            }
            Step::Rename(a, b) => {
                let (old, new) = (PATHS[*a], PATHS[*b]);
                let exists = self.0.contains_key(old) || self.is_dir(old);
                if !exists || !self.free(new) || new.starts_with(&format!("{old}/")) {
                    return false;
                }
                let moved: Vec<_> = self
                    .0
                    .keys()
                    .filter(|k| *k == old || k.starts_with(&format!("{old}/")))
                    .cloned()
                    .collect();
                for key in moved {
                    let text = self.0.remove(&key).unwrap();
                    self.0.insert(format!("{new}{}", &key[old.len()..]), text);
                }
                true
            }
        }
    }
}

fn command(step: &Step) -> Command {
    match step.clone() {
        Step::Create(p, text) => Command::Create { path: PATHS[p].into(), file_text: text },
        Step::Replace(p, old, new) => replace(PATHS[p], &old, Some(&new)),
        Step::Insert(p, line, text) => insert(PATHS[p], line, &text),
        Step::Delete(p) => delete(PATHS[p]),
        Step::Rename(a, b) => rename(PATHS[a], PATHS[b]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_tree_equals_a_plain_map_also_after_reopening(steps in steps()) {
        let home = Home::new();
        let mut engine = home.open();
        let mut model = Model::default();
        let half = steps.len() / 2;
        for (n, step) in steps.iter().enumerate() {
            if n == half {
                drop(engine);
                engine = home.open();
            }
            let accepted = model.apply(step);
            let done = engine.run(command(step));
            prop_assert_eq!(done.is_ok(), accepted, "{:?} gave {:?}", step, done);
        }
        let stats = engine.stats();
        prop_assert_eq!(stats.files, model.0.len() as u64);
        prop_assert_eq!(stats.text_bytes, model.0.values().map(|text| text.len() as u64).sum::<u64>());
        for (key, text) in &model.0 {
            let get = warm_engine::contract::Get { key: key.clone() };
            prop_assert_eq!(&engine.get(&get).unwrap().text, text);
        }
    }
}
