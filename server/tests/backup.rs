//! `warm-mcp backup` and `restore`: what was backed up comes back, whole, or nothing changes.

mod common;

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use common::{Server, damage_a_record, finish, memories, names, owner, run, warm_mcp};
use serde_json::{Value, json};

/// A store with memories of every kind.
fn filled(dir: &Path) {
    let mut server = Server::start(dir);
    for (path, text) in [
        ("/memories/crlf.md", "one\r\ntwo\r\n"),
        ("/memories/forms/cafe\u{301}.md", "cafe\u{301}"),
        ("/memories/forms/caf\u{e9}.md", "caf\u{e9}\n"),
        ("/memories/empty.md", ""),
        ("/memories/last lines.md", "text\n\n\n"),
    ] {
        server.memory(json!({"command": "create", "path": path, "file_text": text}));
    }
    thread::sleep(Duration::from_millis(5));
    server.memory(
        json!({"command": "str_replace", "path": "/memories/crlf.md", "old_str": "one", "new_str": "1"}),
    );
    server.call(
        "remember",
        json!({
            "key": "deploy/notes", "text": "marmalade 🚀\u{0}", "title": "How to deploy", "tags": ["ops", "日本"],
            "metadata": {"float": 0.1 + 0.2, "tiny": 5e-324, "large": u64::MAX, "list": [null, {"a": "\u{1}"}]},
        }),
    );
    server.call("remember", json!({"text": "a name is made up for this"}));
    server.close();
}

fn backed_up(store: &Path, file: &Path) -> String {
    owner(store, &[Path::new("backup"), file])
}

/// Restores into the store in `dir` with the identity of another.
fn restore(dir: &Path, identity_of: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    finish(warm_mcp(dir).arg("restore").arg("--identity").arg(identity_of.join("identity.txt")).args(more))
}

#[test]
fn a_backup_restored_into_a_fresh_folder_gives_the_same_memories_and_again_changes_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, fresh, file) = (dir.path().join("store"), dir.path().join("fresh"), dir.path().join("b.age"));
    filled(&store);
    let said = backed_up(&store, &file);
    let bytes = fs::metadata(&file).expect("it is there").len();
    for part in ["7 memories", &file.display().to_string(), &format!("({bytes} bytes)"), "identity.txt"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let file = file.to_str().expect("UTF-8");
    let (code, stdout, _) = restore(&fresh, &store, &["--dry-run", file]);
    assert_eq!(code, Some(0));
    assert!(
        stdout.starts_with("Nothing was written") && stdout.contains("7 restored, 0 unchanged"),
        "{stdout}"
    );
    assert!(!fresh.exists(), "a dry run makes nothing");
    let (code, stdout, stderr) = restore(&fresh, &store, &[file]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("namespace default: 7 restored, 0 unchanged, 0 kept."), "{stdout}");
    // Its identity was named from elsewhere, and is so from now on.
    fs::copy(store.join("identity.txt"), fresh.join("identity.txt")).expect("it can be copied");
    let versions = |dir: &Path| owner(dir, &["export", "-"]);
    let restored = versions(&fresh);
    assert_eq!(memories(&fresh), memories(&store));
    assert_eq!(memories(&fresh).len(), 7);
    let (code, stdout, _) = restore(&fresh, &store, &["--replace", file]);
    assert_eq!(code, Some(0));
    assert!(stdout.contains("0 restored, 7 unchanged, 0 kept."), "{stdout}");
    assert_eq!(versions(&fresh), restored, "not even a version changed");
}

#[test]
fn what_the_store_has_is_kept_until_told_otherwise() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, file) = (dir.path().join("store"), dir.path().join("b.age"));
    filled(&store);
    let before = memories(&store);
    backed_up(&store, &file);
    let mut server = Server::start(&store);
    server.call("remember", json!({"key": "deploy/notes", "text": "later"}));
    server.call("remember", json!({"key": "new", "text": "new"}));
    server.call("forget", json!({"key": "/memories/empty.md"}));
    server.close();
    let file = file.to_str().expect("UTF-8");
    let said = owner(&store, &["restore", file]);
    assert!(said.contains("0 restored, 5 unchanged, 1 kept, 1 left forgotten."), "{said}");
    assert!(said.contains("--forgotten-too") && said.contains("\n  /memories/empty.md\n"), "{said}");
    let dry = owner(&store, &["restore", file, "--dry-run"]);
    assert!(dry.contains("0 restored, 5 unchanged, 1 kept, 1 left forgotten."), "{dry}");
    let said = owner(&store, &["restore", file, "--forgotten-too"]);
    assert!(
        said.contains("1 restored, 5 unchanged, 1 kept.") && said.contains("\n  deploy/notes\n"),
        "{said}"
    );
    assert!(said.contains("--replace"), "{said}");
    assert_eq!(owner(&store, &["view", "deploy/notes"]), "later");
    let said = owner(&store, &["restore", file, "--dry-run", "--replace"]);
    assert!(said.contains("1 restored, 6 unchanged, 0 kept."), "{said}");
    assert_eq!(owner(&store, &["view", "deploy/notes"]), "later");
    owner(&store, &["restore", file, "--replace"]);
    let mut after = memories(&store);
    after.retain(|memory| memory["key"] != "new");
    assert_eq!(after, before);
}

#[test]
fn a_backup_goes_back_to_its_own_namespace_unless_another_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, file) = (dir.path().join("store"), dir.path().join("b.age"));
    let mut server = Server::start_with(warm_mcp(&store), |command| {
        command.args(["--namespace", "work"]);
    });
    server.call("remember", json!({"key": "k", "text": "at work"}));
    server.close();
    let file = file.to_str().expect("UTF-8");
    owner(&store, &["backup", file, "--namespace", "work"]);
    let said = owner(&store, &["restore", file]);
    assert!(said.contains("namespace work: 0 restored, 1 unchanged"), "{said}");
    let said = owner(&store, &["restore", file, "--namespace", "home"]);
    assert!(said.contains("namespace home: 1 restored"), "{said}");
    assert_eq!(owner(&store, &["view", "k", "--namespace", "home"]), "at work");
    assert_eq!(run(&store, &["view", "k"]).0, Some(1), "the default namespace is as it was");
}

#[test]
fn the_age_tool_opens_a_backup() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, file) = (dir.path().join("store"), dir.path().join("b.age"));
    filled(&store);
    backed_up(&store, &file);
    let identity = store.join("identity.txt");
    let text = fs::read_to_string(&identity).expect("it is there");
    let key: age::x25519::Identity =
        text.lines().find(|line| !line.starts_with('#')).expect("a key").parse().expect("an identity");
    let mut plain = String::new();
    let opened = age::Decryptor::new(File::open(&file).expect("it is there")).expect("an age file");
    let mut opened = opened.decrypt(std::iter::once(&key as _)).expect("it opens");
    opened.read_to_string(&mut plain).expect("UTF-8");
    let lines: Vec<Value> = plain.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((lines.len(), &lines[0]["warm_backup"], &lines[8]["end"]), (9, &json!(1), &json!(true)));

    if Command::new("age").arg("--version").output().is_err() {
        println!("skipped: the age tool is not installed");
        return;
    }
    let (code, stdout, stderr) = finish(Command::new("age").arg("-d").arg("-i").arg(&identity).arg(&file));
    assert_eq!((code, stdout), (Some(0), plain), "{stderr}");
}

#[test]
fn a_backup_goes_through_a_pipe() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, other) = (dir.path().join("store"), dir.path().join("other"));
    filled(&store);
    let mut backup =
        warm_mcp(&store).args(["backup", "-"]).stdout(Stdio::piped()).spawn().expect("warm-mcp starts");
    let restored = warm_mcp(&other)
        .args(["restore", "-", "--identity"])
        .arg(store.join("identity.txt"))
        .stdin(backup.stdout.take().expect("a pipe"))
        .output()
        .expect("warm-mcp starts");
    assert!(backup.wait().expect("it ends").success());
    assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
    assert!(String::from_utf8_lossy(&restored.stdout).contains("7 restored"));
}

#[test]
fn a_store_with_a_passphrase_is_backed_up_under_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, fresh, file) = (dir.path().join("store"), dir.path().join("fresh"), dir.path().join("b.age"));
    let with = |dir: &Path, secret: &str, arguments: &[&str]| {
        let mut command = warm_mcp(dir);
        command.env("WARM_MCP_PASSPHRASE_ENV", "SECRET").env("SECRET", secret);
        finish(command.args(arguments))
    };
    let note = dir.path().join("note.md");
    fs::write(&note, "text").expect("a file");
    let file = file.to_str().expect("UTF-8");
    assert_eq!(with(&store, "correct horse", &["import", note.to_str().expect("UTF-8")]).0, Some(0));
    let (code, stdout, stderr) = with(&store, "correct horse", &["backup", file]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("takes the passphrase"), "{stdout}");
    let (code, _, stderr) = with(&fresh, "wrong", &["restore", file]);
    assert!(code == Some(1) && stderr.contains("wrong passphrase") && !fresh.exists(), "{stderr}");
    assert_eq!(with(&fresh, "correct horse", &["restore", file]).0, Some(0));
    assert_eq!(with(&fresh, "correct horse", &["view", "/memories/note.md"]).0, Some(0));
    let (code, _, stderr) = restore(&dir.path().join("third"), &fresh, &[file]);
    assert!(code == Some(1) && stderr.contains("missing"), "{stderr}");
}

#[test]
fn a_backup_that_is_damaged_foreign_or_newer_changes_nothing_and_says_why() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, fresh, file) = (dir.path().join("store"), dir.path().join("fresh"), dir.path().join("b.age"));
    filled(&store);
    let before = owner(&store, &["export", "-"]);
    backed_up(&store, &file);
    let good = fs::read(&file).expect("it is there");
    let mut flipped = good.clone();
    let middle = good.len() - 100;
    flipped[middle] ^= 1;
    for (bytes, said) in [
        (&good[..good.len() - 1], "damaged or cut short"),
        (&good[..good.len() / 2], "damaged or cut short"),
        (&good[..30], "cut off at its beginning"),
        (&flipped, "damaged or cut short"),
        (b"hello\n", "not a backup"),
        (b"", "not a backup"),
    ] {
        let bad = dir.path().join("bad.age");
        fs::write(&bad, bytes).expect("a file");
        let bad = bad.to_str().expect("UTF-8");
        for (code, stdout, stderr) in
            [run(&store, &["restore", bad, "--replace"]), restore(&fresh, &store, &[bad])]
        {
            assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
            assert!(stderr.contains(said) && stderr.contains("Nothing was changed"), "{said}\n{stderr}");
            assert!(!stderr.contains("marmalade"));
        }
    }
    let file = file.to_str().expect("UTF-8");
    let other = dir.path().join("other");
    Server::start(&other).close();
    let (code, _, stderr) = run(&other, &["restore", file]);
    assert!(code == Some(1) && stderr.contains("wrong key") && stderr.contains("--identity"), "{stderr}");
    assert_eq!(memories(&other).len(), 0);
    let (code, _, stderr) = run(&fresh, &["restore", file]);
    assert!(code == Some(1) && stderr.contains("--identity"), "{stderr}");
    let (code, _, stderr) = run(&store, &["restore", "nowhere.age"]);
    assert!(code == Some(1) && stderr.contains("nowhere.age"), "{stderr}");
    assert!(!fresh.exists(), "no store was made for nothing");
    assert_eq!(owner(&store, &["export", "-"]), before);
}

#[test]
fn an_existing_file_is_replaced_only_when_told_and_only_by_a_whole_one() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, file) = (dir.path().join("store"), dir.path().join("b.age"));
    filled(&store);
    fs::write(&file, "precious").expect("a file");
    let name = file.to_str().expect("UTF-8");
    let (code, _, stderr) = run(&store, &["backup", name]);
    assert!(code == Some(1) && stderr.contains("--force"), "{stderr}");
    assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    owner(&store, &["backup", name, "--force"]);
    owner(&store, &["restore", name]);
    let folder = dir.path().join("folder");
    fs::create_dir(&folder).expect("a folder");
    let (code, _, stderr) = run(&store, &["backup", folder.to_str().expect("UTF-8"), "--force"]);
    assert!(code == Some(1) && stderr.contains("not a file"), "{stderr}");
    let missing = dir.path().join("missing/b.age");
    let (code, _, stderr) = run(&store, &["backup", missing.to_str().expect("UTF-8")]);
    assert!(code == Some(1) && stderr.contains("no folder"), "{stderr}");
    assert_eq!(names(dir.path()), ["b.age", "folder", "store"]);
    let (code, _, _) =
        run(&dir.path().join("none"), &["backup", dir.path().join("x").to_str().expect("UTF-8")]);
    assert_eq!(code, Some(1));
    assert_eq!(names(dir.path()), ["b.age", "folder", "store"], "no store, no backup");
}

/// Notes that make a store much larger than what the next tests let a file have.
#[cfg(target_os = "linux")]
fn large(dir: &Path, store: &Path) {
    let notes = dir.join("notes");
    fs::create_dir(&notes).expect("a folder");
    for number in 0..60 {
        let text: String = (0..4_000).map(|word| format!("w{} ", word * 7_919 % 9_973 + number)).collect();
        fs::write(notes.join(format!("{number}.md")), text).expect("a file");
    }
    owner(store, &[Path::new("import"), &notes]);
    fs::remove_dir_all(notes).expect("it was ours");
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_full_disk_no_half_file_is_left_and_an_existing_one_is_kept() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    large(dir.path(), &store);
    let file = dir.path().join("kept.age");
    fs::write(&file, "precious").expect("a file");
    for arguments in [
        &["backup", "new.age"][..],
        &["backup", "kept.age", "--force"],
        &["export", "new.jsonl"],
        &["export", "kept.age", "--force"],
        &["export", "new"],
    ] {
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -f 40; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_warm-mcp")]);
        limited.args(arguments).env("WARM_MCP_DATA_DIR", &store).current_dir(dir.path());
        let (code, stdout, stderr) = finish(&mut limited);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{arguments:?} {stderr}");
        assert!(stderr.contains("can't be written: File too large"), "{stderr}");
        assert_eq!(names(dir.path()), ["kept.age", "store"], "{arguments:?}");
        assert_eq!(fs::read(&file).expect("it is there"), b"precious");
    }
    owner(&store, &[Path::new("backup"), &file, Path::new("--force")]);
}

#[cfg(unix)]
#[test]
fn into_a_folder_that_may_not_be_written_nothing_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, folder) = (dir.path().join("store"), dir.path().join("folder"));
    filled(&store);
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).expect("it is ours");
    if fs::write(folder.join("probe"), "").is_ok() {
        println!("skipped: this user may write everywhere");
        return;
    }
    for command in ["backup", "export"] {
        let (code, _, stderr) = run(&store, &[command, folder.join("b.age").to_str().expect("UTF-8")]);
        assert!(code == Some(1) && stderr.contains("can't be written"), "{stderr}");
    }
    assert!(names(&folder).is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_killed_run_left_is_swept_by_the_next_and_what_a_live_one_writes_is_not() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, place) = (dir.path().join("store"), dir.path().join("place"));
    large(dir.path(), &store);
    fs::create_dir(&place).expect("a folder");
    let file = place.join("b.age");
    let mut killed = 0;
    for _ in 0..5 {
        let mut backup = warm_mcp(&store)
            .arg("backup")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        while backup.try_wait().expect("a child").is_none() {
            if names(&place).iter().any(|name| name.starts_with(".warm-unfinished-")) {
                backup.kill().expect("a child");
                break;
            }
            thread::sleep(Duration::from_micros(200));
        }
        killed += usize::from(!backup.wait().expect("a child").success());
        if file.exists() {
            owner(&store, &[Path::new("restore"), &file, Path::new("--dry-run")]);
            fs::remove_file(&file).expect("it is ours");
        }
    }
    assert!(killed > 0, "no run was caught in the middle");
    assert!(names(&place).len() <= 1, "one run sweeps what another left: {:?}", names(&place));
    let left = |name: &str| {
        let path = place.join(name);
        File::create(&path).expect("a file").write_all(b"half").expect("a file");
        path
    };
    let (dead, live) = (left(".warm-unfinished-dead.tmp"), left(".warm-unfinished-live.tmp"));
    fs::create_dir_all(place.join(".warm-unfinished-folder.tmp/x")).expect("a folder");
    let held = File::open(&live).expect("it is there");
    held.lock().expect("it can be locked");
    owner(&store, &[Path::new("backup"), &file]);
    assert_eq!(names(&place), [".warm-unfinished-live.tmp", "b.age"]);
    assert!(!dead.exists());
}

#[test]
fn while_a_server_runs_they_go_through_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, file) = (dir.path().join("store"), dir.path().join("b.age"));
    filled(&store);
    let mut server = Server::start(&store);
    let file = file.to_str().expect("UTF-8");
    let folder = dir.path().join("folder");
    for arguments in [
        &["backup", file][..],
        &["export", folder.to_str().expect("UTF-8")],
        &["export", "-"],
        &["list"],
        &["view"],
        &["recall", "marmalade"],
    ] {
        let (code, _, stderr) = run(&store, arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    }
    assert_eq!(server.call("stats", json!({}))["memories"], 7);
}

#[test]
fn a_damaged_memory_is_named_missing_from_the_copy_and_comes_back_from_an_older_one() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, older, newer) =
        (dir.path().join("store"), dir.path().join("older"), dir.path().join("newer"));
    let notes = dir.path().join("notes");
    fs::create_dir(&notes).expect("a folder");
    for number in 0..10 {
        fs::write(notes.join(format!("{number}.md")), format!("marmalade {number}")).expect("a file");
    }
    owner(&store, &[Path::new("import"), &notes]);
    let before = memories(&store);
    backed_up(&store, &older);
    damage_a_record(&store);
    let (code, stdout, stderr) = run(&store, &[Path::new("backup"), &newer]);
    assert!(code == Some(0) && stdout.contains("9 memories"), "{stdout}{stderr}");
    assert!(
        stderr.contains("1 of the store's records can't be opened") && stderr.contains("doctor"),
        "{stderr}"
    );
    assert!(!stderr.contains("marmalade"));
    let (code, stdout, _) = run(&store, &[Path::new("restore"), &older]);
    assert!(code == Some(0) && stdout.contains("1 restored, 9 unchanged"), "{stdout}");
    assert_eq!(memories(&store), before);
}
