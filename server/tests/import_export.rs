//! `warm-mcp import` and `export`: files in, files out, whole or not at all.

mod common;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use common::{Server, finish, memories, names, owner, run, warm_mcp};
use serde_json::{Value, json};

/// A folder with these files in it.
fn folder(dir: &Path, files: &[(&str, &[u8])]) -> PathBuf {
    let folder = dir.join("notes");
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    }
    folder
}

/// Every file below `dir` with its bytes.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut ahead = vec![dir.to_owned()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                ahead.push(path);
            } else {
                found.insert(
                    path.strip_prefix(dir).expect("below").to_owned(),
                    fs::read(&path).expect("a file"),
                );
            }
        }
    }
    found
}

fn texts(store: &Path) -> BTreeMap<String, String> {
    let text = |memory: &Value, name: &str| memory[name].as_str().expect("a string").to_owned();
    memories(store).iter().map(|memory| (text(memory, "key"), text(memory, "text"))).collect()
}

const FILES: [(&str, &[u8]); 6] = [
    ("a.md", b"one\r\ntwo\r\n"),
    ("b c/ü.TXT", "nfd e\u{301}, nfc \u{e9}, 語 🚀".as_bytes()),
    ("b c/deep/er/x.markdown", b"\xef\xbb\xbfwith a mark\n\n\n"),
    ("d.text", b"\n"),
    ("empty.md", b""),
    ("two dots.more.md", b"\t\0\n"),
];

#[test]
fn a_folder_goes_in_and_comes_out_byte_for_byte_and_again_changes_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (store, out) = (dir.path().join("store"), dir.path().join("out"));
    let notes = folder(dir.path(), &FILES);
    let notes_name = notes.to_str().expect("UTF-8");
    let (code, stdout, _) = run(&store, &["import", "--dry-run", notes_name]);
    assert!(
        code == Some(0) && stdout.starts_with("Nothing was written; this would be: 6 imported"),
        "{stdout}"
    );
    assert!(!store.exists(), "a dry run makes nothing");
    let (code, stdout, stderr) = run(&store, &["import", notes_name]);
    assert!(
        code == Some(0) && stdout.starts_with("Done: 6 imported, 0 replaced, 0 unchanged"),
        "{stdout}{stderr}"
    );
    assert!(
        !stderr.contains('%') && !stderr.contains("importing"),
        "no progress bar without a terminal: {stderr}"
    );
    let before = owner(&store, &["export", "-"]);
    let stdout = owner(&store, &["import", "--replace", notes_name]);
    assert!(stdout.contains("0 imported, 0 replaced, 6 unchanged"), "{stdout}");
    assert_eq!(owner(&store, &["export", "-"]), before);
    let (code, stdout, stderr) = run(&store, &["export", out.to_str().expect("UTF-8")]);
    assert_eq!((code, stdout), (Some(0), format!("Exported 6 memories to {}.\n", out.display())));
    assert!(stderr.contains("outside the seal"), "{stderr}");
    assert_eq!(contents(&out), contents(&notes));
    assert_eq!(names(dir.path()), ["notes", "out", "store"]);
}

#[test]
fn what_is_not_a_text_is_skipped_and_counted_and_what_can_not_be_taken_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let long = format!("{}.md", "n".repeat(130));
    let large = vec![b'x'; 32 * 1024 + 1];
    let notes = folder(
        dir.path(),
        &[
            ("good.md", b"good"),
            (".hidden.md", b"secret"),
            (".git/config.md", b"secret"),
            ("picture.png", b"\x89PNG"),
            ("Makefile", b"all:"),
            ("latin.txt", b"caf\xe9"),
            ("large.md", &large),
            ("100%2e.md", b"a trick of a name"),
            (&long, b"long name"),
        ],
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", notes.join("link.md")).expect("a link");
    let bad = notes.join("latin.txt");
    assert_eq!(run(&store, &[Path::new("import"), &bad]).0, Some(1));
    assert!(!store.exists(), "an import that takes nothing leaves no empty store");
    let notes = notes.to_str().expect("UTF-8");
    for arguments in [&["import", notes, "--dry-run"][..], &["import", notes], &["import", notes]] {
        let (code, stdout, stderr) = run(&store, arguments);
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        assert!(stdout.contains("1 imported") || stdout.contains("1 unchanged"), "{stdout}");
        assert!(
            stdout.contains(&format!("2 hidden, {} of other kinds", 2 + u8::from(cfg!(unix)))),
            "{stdout}"
        );
        for named in ["latin.txt: it is not UTF-8", "large.md: it is over the limit", "100%2e.md: ", &long] {
            assert!(stderr.contains(named), "{named}\n{stderr}");
        }
        assert!(!stderr.contains("hidden") && !stderr.contains("Makefile"), "{stderr}");
    }
    let mut unheard =
        warm_mcp(&store).args(["import", notes]).stderr(Stdio::piped()).spawn().expect("it starts");
    drop(unheard.stderr.take());
    assert_eq!(common::ended(&mut unheard).code(), Some(1), "it does not matter that nobody listens");
    assert_eq!(texts(&store), BTreeMap::from([("/memories/good.md".to_owned(), "good".to_owned())]));
    let png = format!("{notes}/picture.png");
    let (code, _, stderr) = run(&store, &["import", &png, "nowhere"]);
    assert!(
        code == Some(1) && stderr.contains("picture.png: not a .md") && stderr.contains("nowhere: "),
        "{stderr}"
    );
}

#[test]
fn files_go_below_the_folder_that_is_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let notes = folder(dir.path(), &[("sub/a.md", b"a"), ("b.md", b"b")]);
    let single = notes.join("b.md");
    let (notes, single) = (notes.to_str().expect("UTF-8"), single.to_str().expect("UTF-8"));
    owner(&store, &["import", notes, "--under", "projects/acme"]);
    owner(&store, &["import", single, "--under", "/memories/single/"]);
    let keys: Vec<_> = texts(&store).into_keys().collect();
    assert_eq!(
        keys,
        ["/memories/projects/acme/b.md", "/memories/projects/acme/sub/a.md", "/memories/single/b.md"]
    );
    let (code, _, stderr) = run(&store, &["import", single, "--under", "../x"]);
    assert!(code == Some(1) && stderr.contains("would escape"), "{stderr}");
    for more in [&[][..], &["--dry-run"]] {
        let (code, _, stderr) =
            finish(warm_mcp(&store).args(["import", single, "--under", "single/b.md"]).args(more));
        assert!(code == Some(1) && stderr.contains("/memories/single/b.md is a file"), "{stderr}");
    }
}

#[test]
fn a_memory_with_another_text_is_kept_until_told_otherwise() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let notes = folder(dir.path(), &[("a.md", b"from the file"), ("b.md", b"b")]);
    let mut server = Server::start(&store);
    server.call(
        "remember",
        json!({"key": "/memories/a.md", "text": "from the agent", "title": "T", "tags": ["x"], "metadata": {"m": 1}}),
    );
    server.close();
    let notes = notes.to_str().expect("UTF-8");
    let (code, stdout, stderr) = run(&store, &["import", notes]);
    assert!(code == Some(1) && stdout.contains("1 imported"), "{stdout}");
    assert!(
        stderr.contains("a.md") && stderr.contains("--replace") && !stderr.contains("from the"),
        "{stderr}"
    );
    assert_eq!(texts(&store)["/memories/a.md"], "from the agent");
    let stdout = owner(&store, &["import", notes, "--replace"]);
    assert!(stdout.contains("0 imported, 1 replaced, 1 unchanged"), "{stdout}");
    let replaced = memories(&store).remove(0);
    assert_eq!(
        (&replaced["text"], &replaced["title"], &replaced["metadata"]),
        (&json!("from the file"), &json!("T"), &json!({"m": 1}))
    );
}

#[test]
fn every_format_holds_every_memory() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let mut server = Server::start(&store);
    server.memory(
        json!({"command": "create", "path": "/memories/other-memories/x.md", "file_text": "in the tree"}),
    );
    server.call(
        "remember",
        json!({"key": "../deploy/№1", "text": "no path", "title": "T", "tags": ["t"], "metadata": {"m": 0.1}}),
    );
    server.close();
    let all = memories(&store);
    let export = |name: &str, more: &[&str]| {
        let path = dir.path().join(name);
        let (code, _, stderr) = finish(warm_mcp(&store).arg("export").arg(&path).args(more));
        assert_eq!(code, Some(0), "{stderr}");
        (path, stderr)
    };
    let (out, _) = export("out", &[]);
    assert_eq!(
        contents(&out),
        BTreeMap::from([
            ("other-memories/x.md".into(), b"in the tree".to_vec()),
            ("other-memories-2/%2E.%2Fdeploy%2F№1.md".into(), b"no path".to_vec()),
        ]),
        "no key leads out of the folder"
    );
    let without_version = |mut memory: Value| {
        memory.as_object_mut().expect("an object").remove("version");
        memory
    };
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    let text = |path: &Path| fs::read_to_string(path).expect("UTF-8");
    let (jsonl, _) = export("all.jsonl", &[]);
    assert_eq!(text(&jsonl).lines().map(parse).map(without_version).collect::<Vec<_>>(), all);
    let (named, _) = export("no ending", &["--format", "json"]);
    let Value::Array(array) = parse(&text(&named)) else { panic!("an array") };
    assert_eq!(array.into_iter().map(without_version).collect::<Vec<_>>(), all);
    let (md, _) = export("all.md", &[]);
    assert_eq!(text(&md), "# /memories/other-memories/x.md\n\nin the tree\n\n# ../deploy/№1\n\nno path\n");
    let (sealed, stderr) = export("all.age", &[]);
    assert!(stderr.is_empty(), "a sealed copy needs no warning: {stderr}");
    let said = owner(&store, &[Path::new("restore"), &sealed]);
    assert!(said.contains("2 unchanged"), "{said}");
    #[cfg(unix)]
    for file in [&jsonl, &named, &md, &sealed, &out] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(file).expect("it is there").permissions().mode() & 0o77,
            0,
            "{}",
            file.display()
        );
    }
    let empty = tempfile::tempdir().expect("a temporary folder");
    Server::start(empty.path()).close();
    assert_eq!(owner(empty.path(), &["export", "-", "--format", "json"]), "[]\n");
}

#[test]
fn an_export_replaces_no_file_untold_and_no_folder_that_holds_something() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let notes = folder(dir.path(), &[("a.md", b"a")]);
    owner(&store, &[Path::new("import"), &notes]);
    let export = |name: &str, more: &[&str]| {
        finish(warm_mcp(&store).arg("export").arg(dir.path().join(name)).args(more))
    };
    for file in ["x.jsonl", "x"] {
        fs::write(dir.path().join(file), "precious").expect("a file");
    }
    for (name, more, said) in [
        ("x.jsonl", &[][..], "--force"),
        ("notes", &[], "not empty"),
        ("notes", &["--force"], "not empty"),
        ("notes", &["--format", "json", "--force"], "not a file"),
        ("x.jsonl", &["--format", "markdown"], "--force"),
        ("x", &[], "is a file"),
        ("x.jsonl/y", &[], "no folder"),
        ("missing/x.json", &[], "no folder"),
    ] {
        let (code, stdout, stderr) = export(name, more);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{name}");
        assert!(stderr.contains(said), "{said}\n{stderr}");
    }
    for file in ["x.jsonl", "x"] {
        assert_eq!(fs::read(dir.path().join(file)).expect("it is there"), b"precious");
    }
    assert_eq!(names(dir.path()), ["notes", "store", "x", "x.jsonl"]);
    fs::create_dir(dir.path().join("empty")).expect("a folder");
    assert_eq!(export("empty", &[]).0, Some(0));
    assert_eq!(names(&dir.path().join("empty")), ["a.md"]);
    assert_eq!(export("x.jsonl", &["--force"]).0, Some(0));
    let none = dir.path().join("none");
    let out = dir.path().join("nothing");
    assert_eq!(run(&none, &[Path::new("export"), &out]).0, Some(1));
    assert!(!none.exists() && !out.exists());
}

/// `strace` sees what is synced.
#[cfg(target_os = "linux")]
#[test]
fn every_file_and_folder_of_an_export_is_synced_before_it_gets_its_name() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let notes = folder(dir.path(), &[("a.md", b"a"), ("deep/er/b.md", b"b")]);
    owner(&store, &[Path::new("import"), &notes]);
    let trace = dir.path().join("trace");
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", "-o"]).arg(&trace);
    if traced.arg("true").output().map_or(true, |done| !done.status.success()) {
        println!("skipped: no strace, or it may not be used here");
        return;
    }
    let mut traced = std::process::Command::new("strace");
    traced.args(["-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", "-o"]).arg(&trace);
    traced.arg(env!("CARGO_BIN_EXE_warm-mcp")).arg("export").arg(dir.path().join("out"));
    assert_eq!(finish(traced.env("WARM_MCP_DATA_DIR", &store)).0, Some(0));
    let trace = fs::read_to_string(&trace).expect("a trace");
    let lines: Vec<&str> = trace.lines().collect();
    let named = lines.iter().position(|line| line.contains("rename") && line.contains("/out\""));
    let named = named.expect("it gets its name");
    let place = lines[named].split('"').nth(1).expect("its temporary name");
    for part in ["", "/a.md", "/deep", "/deep/er", "/deep/er/b.md"] {
        let synced = lines[..named].iter().any(|line| line.contains(&format!("<{place}{part}>)")));
        assert!(synced, "{part}\n{trace}");
    }
    assert!(
        lines[named..].iter().any(|line| line.contains(&format!("<{}>)", dir.path().display()))),
        "{trace}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn an_import_that_fills_the_disk_says_so_keeps_what_it_took_and_can_be_run_again() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = dir.path().join("store");
    let notes = dir.path().join("notes");
    fs::create_dir(&notes).expect("a folder");
    let count = 130;
    for number in 0..count {
        // Few different words: sealing is what takes the room, and indexing what takes the time.
        fs::write(notes.join(format!("{number}.md")), format!("word{number}\n").repeat(3_500))
            .expect("a file");
    }
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -f 6000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_warm-mcp"), "import"]);
    let (code, _, stderr) = finish(limited.arg(&notes).env("WARM_MCP_DATA_DIR", &store));
    assert!(code == Some(1) && stderr.contains("free space") && stderr.contains("run it again"), "{stderr}");
    let taken = owner(&store, &["list"]).lines().count();
    assert!(0 < taken && taken < count, "{taken}");
    let said = owner(&store, &[Path::new("import"), &notes]);
    assert!(said.contains(&format!("{} imported, 0 replaced, {taken} unchanged", count - taken)), "{said}");
}
