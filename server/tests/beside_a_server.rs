//! The owner's commands while a server has the store open: each sees what the server wrote, and the server sees
//! at once what a command changed.
#![cfg(unix)]

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
};

use common::{Server, finish, memories, owner, run, warm_mcp};
use serde_json::json;

/// A store that a server has open.
struct Open {
    dir: tempfile::TempDir,
    server: Server,
}

impl Open {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut server = Server::start(&dir.path().join("store"));
        server.memory(json!({"command": "create", "path": "/memories/a/tea.md", "file_text": "green tea\n"}));
        server.call("remember", json!({"key": "door", "text": "the code is 4711", "tags": ["home"]}));
        Self { dir, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn store(&self) -> PathBuf {
        self.path("store")
    }

    fn owner(&self, arguments: &[&str]) -> String {
        owner(&self.store(), arguments)
    }

    fn text(&mut self, key: &str) -> String {
        self.server.call("get", json!({"key": key}))["text"].as_str().expect("a text").to_owned()
    }

    /// How many memories the server finds.
    fn finds(&mut self, query: &str) -> u64 {
        self.server.call("recall", json!({"query": query}))["total"].as_u64().expect("a number")
    }

    /// The server was the one that had the store open, all the time.
    fn end(self) {
        let ended = self.server.close();
        assert!(ended.status.success() && !ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
}

#[test]
fn view_list_and_recall_show_what_the_server_has_just_written() {
    let mut open = Open::new();
    for round in 1..=3 {
        let text = format!("a saucer for round{round}\n");
        open.server
            .memory(json!({"command": "create", "path": format!("/memories/{round}.md"), "file_text": text}));
        open.server.call("remember", json!({"key": "door", "text": format!("the code is {round}")}));
        assert!(open.owner(&["view", &format!("/memories/{round}.md")]).contains(&text));
        assert_eq!(open.owner(&["view", "door"]), format!("the code is {round}"));
        assert!(open.owner(&["view"]).contains(&format!("/memories/{round}.md")));
        let listed = open.owner(&["list"]);
        assert_eq!(listed.lines().count(), 2 + round, "{listed}");
        let found = open.owner(&["recall", &format!("round{round}")]);
        assert!(found.starts_with(&format!("1. /memories/{round}.md")), "{found}");
    }
    open.server.call("forget", json!({"key": "door"}));
    assert_eq!(run(&open.store(), &["view", "door"]).0, Some(1));
    assert!(!open.owner(&["list"]).contains("door"));
    assert!(open.owner(&["recall", "code"]).starts_with("Nothing was found"));
    open.end();
}

#[test]
fn what_edit_saves_is_the_servers_at_once_and_what_the_server_writes_meanwhile_is_kept() {
    let mut open = Open::new();
    let edit = |open: &Open, path: &str, script: &str| {
        let editor = open.path("editor.sh");
        fs::write(&editor, script).expect("a file");
        let editor = format!("sh '{}'", editor.display());
        finish(
            warm_mcp(&open.store())
                .args(["edit", path])
                .env_remove("VISUAL")
                .env("EDITOR", editor)
                .env("TMPDIR", open.dir.path())
                .env_remove("XDG_RUNTIME_DIR"),
        )
    };
    let (code, stdout, stderr) = edit(&open, "/memories/a/tea.md", "sed -i s/green/black/ \"$1\"");
    assert_eq!((code, stdout.as_str()), (Some(0), "Saved /memories/a/tea.md.\n"), "{stderr}");
    assert_eq!(open.text("/memories/a/tea.md"), "black tea\n");
    assert_eq!((open.finds("black"), open.finds("green")), (1, 0));
    let (code, _, stderr) = edit(&open, "/memories/new.md", "echo espresso > \"$1\"");
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!((open.text("/memories/new.md").as_str(), open.finds("espresso")), ("espresso\n", 1));

    // The server writes while the editor is open.
    let (ready, go) = (open.path("ready"), open.path("go"));
    let script = format!(
        "touch '{}'; until [ -e '{}' ]; do sleep 0.01; done; echo mine > \"$1\"",
        ready.display(),
        go.display()
    );
    let done = std::thread::scope(|scope| {
        let (store, dir) = (open.store(), open.dir.path().to_owned());
        let editing = scope.spawn(move || {
            let editor = dir.join("slow.sh");
            fs::write(&editor, script).expect("a file");
            let editor = format!("sh '{}'", editor.display());
            let mut command = warm_mcp(&store);
            command.args(["edit", "door"]).env_remove("VISUAL").env("EDITOR", editor);
            finish(command.env("TMPDIR", &dir).env_remove("XDG_RUNTIME_DIR"))
        });
        while !ready.exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        open.server.call("remember", json!({"key": "door", "text": "theirs"}));
        fs::write(&go, "").expect("a file");
        editing.join().expect("it ends")
    });
    let (code, _, stderr) = done;
    assert!(code == Some(1) && stderr.contains("nothing was overwritten"), "{stderr}");
    assert_eq!(open.text("door"), "theirs");
    open.end();
}

#[test]
fn what_import_takes_is_the_servers_at_once() {
    let mut open = Open::new();
    let notes = open.path("notes");
    fs::create_dir_all(notes.join("a")).expect("a folder");
    fs::write(notes.join("a/tea.md"), "white tea\n").expect("a file");
    for number in 0..300 {
        fs::write(notes.join(format!("{number}.md")), format!("note{number} of many\n")).expect("a file");
    }
    let notes = notes.to_str().expect("UTF-8");
    let (code, stdout, _) = run(&open.store(), &["import", notes, "--dry-run"]);
    assert_eq!(code, Some(1), "what the server has is not replaced untold: {stdout}");
    assert_eq!(open.finds("note299"), 0);
    let (code, stdout, stderr) = run(&open.store(), &["import", notes, "--replace"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("300 imported, 1 replaced"), "{stdout}");
    assert_eq!((open.text("/memories/a/tea.md").as_str(), open.finds("note299")), ("white tea\n", 1));
    assert_eq!(open.server.call("stats", json!({}))["files"], 301);
    open.end();
}

#[test]
fn export_and_backup_hold_all_that_the_server_wrote_and_restore_gives_it_back() {
    let mut open = Open::new();
    let everything = memories(&open.store());
    assert_eq!(everything.len(), 2);
    let (folder, file) = (open.path("out"), open.path("b.age"));
    let (folder, file) = (folder.to_str().expect("UTF-8"), file.to_str().expect("UTF-8"));
    open.owner(&["export", folder]);
    assert_eq!(fs::read_to_string(Path::new(folder).join("a/tea.md")).expect("it is there"), "green tea\n");
    open.owner(&["export", open.path("all.age").to_str().expect("UTF-8")]);
    assert!(open.owner(&["backup", file]).contains("2 memories"));

    // The server goes on, and what it does is not in the backup.
    open.server.call("remember", json!({"key": "door", "text": "another code"}));
    open.server.memory(json!({"command": "delete", "path": "/memories/a/tea.md"}));
    open.server.call("remember", json!({"key": "later", "text": "not in the backup"}));
    let said = open.owner(&["restore", file, "--dry-run"]);
    assert!(said.contains("0 restored, 0 unchanged, 1 kept, 1 left forgotten"), "{said}");
    let said = open.owner(&["restore", file, "--dry-run", "--forgotten-too"]);
    assert!(said.contains("1 restored, 0 unchanged, 1 kept."), "{said}");
    assert_eq!(open.finds("tea"), 0, "a dry run does nothing");
    open.owner(&["restore", file]);
    assert_eq!(open.finds("tea"), 0, "what was forgotten stays so");
    open.owner(&["restore", file, "--forgotten-too"]);
    assert_eq!((open.text("/memories/a/tea.md").as_str(), open.finds("tea")), ("green tea\n", 1));
    assert_eq!(open.text("door"), "another code");
    open.owner(&["restore", file, "--replace"]);
    assert_eq!((open.text("door").as_str(), open.finds("another")), ("the code is 4711", 0));
    assert_eq!(open.text("later"), "not in the backup");
    open.server.call("forget", json!({"key": "later"}));
    assert_eq!(memories(&open.store()), everything);
    open.end();
}
