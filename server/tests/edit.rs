//! `warm-mcp edit`: what is saved replaces what was opened, or nothing, and no text is lost or left behind.
#![cfg(unix)]

mod common;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use common::{Server, finish, memories, names, owner, signal, warm_mcp};
use serde_json::{Value, json};

struct Desk {
    dir: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let desk = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(desk.run_time()).expect("a folder");
        desk
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn run_time(&self) -> PathBuf {
        self.dir.path().join("run time")
    }

    /// An editor that runs `script` on the file `$1`.
    fn editor(&self, script: &str) -> String {
        let path = self.dir.path().join("editor.sh");
        fs::write(&path, format!("#!/bin/sh\nset -e\n{script}\n")).expect("a file");
        format!("sh '{}'", path.display())
    }

    fn command(&self, path: &str) -> std::process::Command {
        let mut command = warm_mcp(&self.store());
        command
            .args(["edit", path])
            .env("XDG_RUNTIME_DIR", self.run_time())
            .env_remove("VISUAL")
            .env_remove("EDITOR");
        command
    }

    /// Edits with a script; returns status, stdout and stderr.
    fn edit(&self, path: &str, script: &str) -> (Option<i32>, String, String) {
        finish(self.command(path).env("EDITOR", self.editor(script)))
    }

    fn filled(&self) {
        let mut server = Server::start(&self.store());
        server.call(
            "remember",
            json!({"key": "/memories/a.md", "text": "one\ntwo\n", "title": "T", "tags": ["x"], "metadata": {"n": 1.5}}),
        );
        server.close();
    }

    fn text(&self, key: &str) -> Value {
        memories(&self.store()).into_iter().find(|memory| memory["key"] == key).expect("it is there")
    }

    fn nothing_is_left(&self) {
        assert!(names(&self.run_time()).is_empty(), "{:?}", names(&self.run_time()));
    }
}

#[test]
fn what_is_saved_replaces_the_text_and_keeps_the_rest() {
    let desk = Desk::new();
    desk.filled();
    let before = desk.text("/memories/a.md");
    let (code, stdout, stderr) = desk.edit(
        "/memories/a.md",
        "stat -c '%a %n' \"$1\" \"$(dirname \"$1\")\" > \"$XDG_RUNTIME_DIR/../seen\"; sed -i s/two/2/ \"$1\"; touch \"$1~\"",
    );
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "Saved /memories/a.md.\n", ""));
    let after = desk.text("/memories/a.md");
    assert_eq!(after["text"], "one\n2\n");
    for kept in ["title", "tags", "metadata", "created_at"] {
        assert_eq!(after[kept], before[kept], "{kept}");
    }
    desk.nothing_is_left();
    let seen = fs::read_to_string(desk.dir.path().join("seen")).expect("the editor wrote it");
    let seen: Vec<&str> = seen.lines().collect();
    assert!(seen[0].starts_with("600 ") && seen[0].ends_with("/a.md"), "its name tells its kind: {seen:?}");
    assert!(seen[1].starts_with("700 ") && seen[1].contains("/run time/warm-edit-"), "{seen:?}");
}

#[test]
fn what_is_not_changed_is_not_written() {
    let desk = Desk::new();
    desk.filled();
    let before = owner(&desk.store(), &["export", "-"]);
    let (code, stdout, _) = desk.edit("/memories/a.md", "touch \"$1\"");
    assert!(code == Some(0) && stdout.contains("unchanged"), "{stdout}");
    let (code, stdout, _) = desk.edit("/memories/new.md", ":");
    assert!(code == Some(0) && stdout.contains("unchanged"), "{stdout}");
    let (code, _, stderr) = desk.edit("/memories/a.md", "exit 3");
    assert!(code == Some(1) && stderr.contains("the editor failed"), "{stderr}");
    assert!(!stderr.contains("Your text is in"), "{stderr}");
    let (code, _, stderr) = finish(desk.command("/memories/a.md").env("EDITOR", "/no/such/editor"));
    assert!(code == Some(1) && stderr.contains("nothing was written"), "{stderr}");
    assert_eq!(owner(&desk.store(), &["export", "-"]), before);
    desk.nothing_is_left();
}

#[test]
fn a_new_memory_is_made_and_with_it_a_store_if_there_is_none() {
    let desk = Desk::new();
    let (code, stdout, stderr) = desk.edit("/memories/dir/new.md", "test ! -s \"$1\"; printf new > \"$1\"");
    assert_eq!((code, stdout.as_str()), (Some(0), "Made /memories/dir/new.md.\n"), "{stderr}");
    let (code, stdout, _) = desk.edit("a key", "printf 'its text' > \"$1\"");
    assert_eq!((code, stdout.as_str()), (Some(0), "Made a key.\n"));
    assert_eq!(owner(&desk.store(), &["view", "a key"]), "its text");
    assert_eq!(desk.text("/memories/dir/new.md")["text"], "new");
    desk.nothing_is_left();
}

#[test]
fn visual_comes_before_editor_and_without_either_nothing_happens() {
    let desk = Desk::new();
    let editor = desk.editor("printf visual > \"$1\"");
    assert_eq!(finish(desk.command("k").env("VISUAL", editor).env("EDITOR", "false")).0, Some(0));
    assert_eq!(desk.text("k")["text"], "visual");
    let (code, _, stderr) = finish(&mut desk.command("k"));
    assert!(code == Some(1) && stderr.contains("set EDITOR"), "{stderr}");
    for refused in ["/memories/../x", "/memories", ""] {
        let (code, _, stderr) = desk.edit(refused, "echo never > \"$XDG_RUNTIME_DIR/../ran\"");
        assert!(code == Some(1) && stderr.starts_with("warm-mcp: "), "{stderr}");
    }
    assert!(!desk.dir.path().join("ran").exists(), "no editor is opened for a name that can't be saved");
}

/// Where the text is that could not be saved.
fn kept(stderr: &str) -> PathBuf {
    let (_, rest) = stderr.split_once("Your text is in ").expect("it is named");
    Path::new(rest.split_once(": move it").expect("the path ends").0).to_owned()
}

#[test]
fn what_was_changed_meanwhile_is_not_overwritten_and_the_edited_text_is_kept() {
    let desk = Desk::new();
    desk.filled();
    let program = env!("CARGO_BIN_EXE_warm-mcp");
    let store = desk.store().display().to_string();
    for (key, other) in [("/memories/a.md", "replace"), ("/memories/b.md", "make")] {
        // While the text is open, another process writes the same memory.
        let name = key.rsplit('/').next().expect("a name");
        let meanwhile = format!(
            "cd \"$XDG_RUNTIME_DIR/..\"; echo theirs > {name}; '{program}' --data-dir '{store}' import --replace {name} \
             > /dev/null; echo mine > \"$1\""
        );
        let (code, stdout, stderr) = desk.edit(key, &meanwhile);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{other}");
        assert!(stderr.contains("nothing was overwritten") && stderr.contains("warm-mcp view"), "{stderr}");
        assert!(!stderr.contains("mine") && !stderr.contains("theirs"), "{stderr}");
        assert_eq!(desk.text(key)["text"], "theirs\n");
        let kept = kept(&stderr);
        assert_eq!(fs::read_to_string(&kept).expect("it is kept"), "mine\n");
        assert_eq!(
            fs::metadata(kept.parent().expect("a folder")).expect("there").permissions().mode() & 0o77,
            0
        );
    }
}

#[test]
fn text_that_can_not_be_saved_is_kept_and_the_reason_said() {
    let desk = Desk::new();
    desk.filled();
    for (script, reason) in [
        ("head -c 40000 /dev/zero | tr '\\0' x > \"$1\"", "over the limit"),
        ("printf '\\377' > \"$1\"", "not UTF-8"),
    ] {
        let (code, _, stderr) = desk.edit("/memories/a.md", script);
        assert!(code == Some(1) && stderr.contains(reason), "{stderr}");
        assert!(kept(&stderr).is_file(), "{stderr}");
    }
    assert_eq!(desk.text("/memories/a.md")["text"], "one\ntwo\n");
}

#[test]
fn a_text_that_is_emptied_is_not_written_nothing_is_kept_and_forget_is_named() {
    let desk = Desk::new();
    desk.filled();
    let (code, _, stderr) = desk.edit("/memories/a.md", ": > \"$1\"");
    assert!(code == Some(1) && stderr.contains("warm-mcp forget /memories/a.md"), "{stderr}");
    assert_eq!(desk.text("/memories/a.md")["text"], "one\ntwo\n");
    desk.nothing_is_left();
}

#[test]
fn what_an_editor_leaves_that_ends_with_an_error_is_not_written_and_is_kept() {
    let desk = Desk::new();
    desk.filled();
    for (key, script) in [
        ("/memories/a.md", "echo mine > \"$1\"; exit 3"),
        ("/memories/new.md", "echo mine > \"$1\"; kill -9 $$"),
        // An editor that crashes has the text in a file of its own.
        ("/memories/a.md", "echo mine > \"$1.swp\"; exit 3"),
        ("/memories/a.md", "mv \"$1\" \"$1~\"; echo mine > \"$1~\""),
    ] {
        let (code, stdout, stderr) = desk.edit(key, script);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{script}");
        assert!(stderr.contains("nothing was written") && !stderr.contains("mine"), "{stderr}");
        let kept = kept(&stderr);
        assert_eq!(fs::read_to_string(&kept).expect("it is kept"), "mine\n", "{script}");
        let folder = kept.parent().expect("a folder");
        assert_eq!(fs::metadata(folder).expect("there").permissions().mode() & 0o77, 0);
    }
    assert_eq!(desk.text("/memories/a.md")["text"], "one\ntwo\n");
    assert_eq!(memories(&desk.store()).len(), 1);
}

#[test]
fn ctrl_c_in_the_editor_neither_ends_the_edit_nor_leaves_its_text_behind() {
    let desk = Desk::new();
    desk.filled();
    let ready = desk.dir.path().join("ready");
    let editor = desk.editor(&format!("touch '{}'; sleep 1; echo saved > \"$1\"", ready.display()));
    let mut edit = desk.command("/memories/a.md").env("EDITOR", editor).spawn().expect("warm-mcp starts");
    while !ready.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(edit.id(), "-INT");
    signal(edit.id(), "-HUP");
    assert!(common::ended(&mut edit).success());
    assert_eq!(desk.text("/memories/a.md")["text"], "saved\n");
    desk.nothing_is_left();
}
