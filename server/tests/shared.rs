//! Several processes on one store: all work, whichever ends and however it ends.
#![cfg(unix)]

mod common;

use std::{
    collections::{HashMap, HashSet},
    fs,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use common::{DEADLINE, Server, run, warm_mcp};
use serde_json::{Value, json};

fn home() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// The directory of the one store below a data directory.
fn store(dir: &Path) -> PathBuf {
    let stores: Vec<_> = fs::read_dir(dir.join("stores")).expect("stores").flatten().collect();
    assert_eq!(stores.len(), 1);
    stores[0].path()
}

fn socket(dir: &Path) -> Option<PathBuf> {
    let note: Value = serde_json::from_slice(&fs::read(store(dir).join("owner")).ok()?).ok()?;
    note["socket"].as_str().map(Into::into)
}

/// The process that says it owns the store.
fn owner(dir: &Path) -> Option<u32> {
    let note: Value = serde_json::from_slice(&fs::read(store(dir).join("owner")).ok()?).ok()?;
    u32::try_from(note["process"].as_u64()?).ok()
}

fn create(path: impl AsRef<str>) -> Value {
    json!({"command": "create", "path": format!("/memories/{}", path.as_ref()), "file_text": "a note\n"})
}

fn kill(server: Server) {
    server.signal("-KILL");
    drop(server.wait());
}

/// The paths of all files, by paging.
fn files(server: &mut Server) -> Vec<String> {
    let (mut found, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let mut page = server.call("list", json!({"limit": 200, "cursor": cursor}));
        let memories = page["memories"].take();
        found.extend(
            memories.as_array().unwrap().iter().map(|memory| memory["key"].as_str().unwrap().to_owned()),
        );
        cursor = page["next_cursor"].take();
        if cursor.is_null() {
            return found;
        }
    }
}

#[test]
fn windows_on_one_store_see_each_others_writes_at_once() {
    let home = home();
    let mut windows: Vec<_> = (0..3).map(|_| Server::start(home.path())).collect();
    for n in 0..9 {
        windows[n % 3].memory(create(format!("{n}.md")));
        for window in &mut windows {
            assert_eq!(
                window
                    .memory(json!({"command": "view", "path": format!("/memories/{n}.md")}))
                    .lines()
                    .count(),
                2
            );
        }
    }
    let found = windows[1].call("recall", json!({"query": "note", "k": 20}));
    assert_eq!(found["total"], 9);
    for window in windows {
        let ended = window.close();
        assert!(ended.status.success() && !ended.stderr.contains("panic"), "{}", ended.stderr);
    }
    assert_eq!(socket(home.path()), None, "who ends last tidies up");
}

#[test]
fn ten_windows_lose_nothing_and_make_nothing_twice_when_the_owner_is_killed() {
    const WINDOWS: usize = 10;
    const EACH: usize = 50;
    let home = home();
    let mut windows: Vec<_> = (0..WINDOWS).map(|_| Server::start(home.path())).collect();
    // `create` refuses a path that exists, so one that was made twice would be an error.
    let sent: Vec<Vec<i64>> = windows
        .iter_mut()
        .enumerate()
        .map(|(w, window)| {
            (0..EACH).map(|n| window.send_call("memory", create(format!("{w}/{n}.md")))).collect()
        })
        .collect();
    // The first to start is the owner; it dies in the middle of its work.
    thread::sleep(Duration::from_millis(60));
    let owner = windows.remove(0);
    owner.signal("-KILL");
    let mut acknowledged: HashSet<String> = HashSet::new();
    for message in owner.wait().unread {
        if let (Some(id), false) = (message["id"].as_i64(), message["result"]["isError"] == true)
            && let Some(n) = sent[0].iter().position(|sent| *sent == id)
        {
            acknowledged.insert(format!("/memories/0/{n}.md"));
        }
    }
    for (window, (w, ids)) in windows.iter_mut().zip(sent.iter().enumerate().skip(1)) {
        for (n, id) in ids.iter().enumerate() {
            let reply = window.reply(*id);
            assert_eq!(reply["result"]["isError"], false, "window {w}: {reply}");
            acknowledged.insert(format!("/memories/{w}/{n}.md"));
        }
    }
    let all: HashSet<_> = files(&mut windows[0]).into_iter().collect();
    assert!(acknowledged.is_subset(&all));
    assert!(all.len() <= WINDOWS * EACH);
    for window in &mut windows {
        assert_eq!(files(window).into_iter().collect::<HashSet<_>>(), all);
    }
    for window in windows {
        let ended = window.close();
        assert!(ended.status.success() && !ended.stderr.contains("panic"), "{}", ended.stderr);
    }
    assert_eq!(files(&mut Server::start(home.path())).into_iter().collect::<HashSet<_>>(), all);
}

#[test]
fn edits_under_way_when_owners_are_killed_are_made_once_each_in_their_order() {
    let home = home();
    let mut others: Vec<_> = (0..4).map(|_| Server::start(home.path())).collect();
    let mut writer = Server::start(home.path());
    writer.memory(json!({"command": "create", "path": "/memories/log.md", "file_text": "start\n"}));
    let insert = |n: usize| json!({"command": "insert", "path": "/memories/log.md", "insert_line": n + 1, "insert_text": format!("line {n}")});
    let dir = home.path().to_owned();
    let killer = thread::spawn(move || {
        let mut killed = 0;
        let started = Instant::now();
        while killed < 3 && started.elapsed() < DEADLINE {
            thread::sleep(Duration::from_millis(60));
            // Whoever is the owner now, unless it is the writer.
            let owner = owner(&dir).and_then(|owner| others.iter().position(|other| other.id() == owner));
            if let Some(at) = owner {
                kill(others.remove(at));
                killed += 1;
            } else {
                break;
            }
        }
        killed
    });
    // The writer goes on until no other owner is left to be killed.
    let mut written = 0;
    while written < 100 || !killer.is_finished() {
        let ids: Vec<_> = (written..written + 20).map(|n| writer.send_call("memory", insert(n))).collect();
        for id in ids {
            let reply = writer.reply(id);
            assert_eq!(reply["result"]["isError"], false, "insert {written}: {reply}");
            written += 1;
        }
    }
    assert!(killer.join().unwrap() > 0, "an owner was killed");
    let text = writer.call("get", json!({"key": "/memories/log.md"}))["text"].take();
    let expected: String = (0..written).fold("start\n".into(), |text, n| text + &format!("line {n}\n"));
    assert_eq!(text, expected);
}

#[test]
fn an_idle_window_takes_over_without_being_asked() {
    let home = home();
    let owner = Server::start(home.path());
    let mut guest = Server::start(home.path());
    kill(owner);
    let started = Instant::now();
    let taken_over =
        || socket(home.path()).is_some_and(|socket| std::os::unix::net::UnixStream::connect(socket).is_ok());
    while !taken_over() {
        assert!(started.elapsed() < DEADLINE, "nobody takes over");
        thread::sleep(Duration::from_millis(5));
    }
    guest.memory(create("f.md"));
    let mut third = Server::start(home.path());
    assert_eq!(files(&mut third), ["/memories/f.md"]);
}

#[test]
fn what_dead_processes_leave_behind_stops_nobody() {
    let home = home();
    let mut server = Server::start(home.path());
    server.memory(create("f.md"));
    kill(server);
    let store = store(home.path());
    let stale = socket(home.path()).expect("a killed owner leaves its note");
    let leftovers: [&[u8]; 4] = [b"", b"\xff\x00 garbage \n", b"4194304\n", b"{\"socket\": 5}"];
    for leftover in leftovers {
        fs::write(store.join("owner"), leftover).unwrap();
        let mut server = Server::start(home.path());
        assert_eq!(files(&mut server), ["/memories/f.md"]);
        kill(server);
    }
    // A socket on which nobody listens, and a plain file in its place.
    fs::write(store.join("owner"), json!({"socket": stale, "process": 1}).to_string()).unwrap();
    drop(fs::remove_file(&stale));
    drop(UnixListener::bind(&stale).unwrap());
    let mut server = Server::start(home.path());
    assert_eq!(files(&mut server), ["/memories/f.md"]);
    kill(server);
    drop(fs::remove_file(&stale));
    fs::write(&stale, "no socket").unwrap();
    let (mut server, mut guest) = (Server::start(home.path()), Server::start(home.path()));
    assert_eq!(
        (files(&mut server), files(&mut guest)),
        (vec!["/memories/f.md".into()], vec!["/memories/f.md".into()])
    );
}

#[test]
fn a_holder_that_can_not_be_reached_is_named_and_nothing_hangs() {
    let home = home();
    let mut server = Server::start(home.path());
    server.memory(create("f.md"));
    drop(server.close());
    let lock = fs::File::open(store(home.path()).join("lock")).unwrap();
    lock.lock().unwrap();
    let (status, stdout, stderr) = run(home.path(), &[] as &[&str]);
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("another process has the store") && stderr.contains("end it"), "{stderr}");
    lock.unlock().unwrap();
    assert_eq!(files(&mut Server::start(home.path())), ["/memories/f.md"]);
}

#[test]
fn an_owner_that_stands_still_is_named_and_served_again_once_it_goes_on() {
    let home = home();
    let mut owner = Server::start(home.path());
    let mut guest = Server::start(home.path());
    guest.memory(create("before.md"));
    owner.signal("-STOP");
    let call = guest.send_call("memory", create("during.md"));
    // Meanwhile the session hears its client.
    assert!(guest.request("ping", json!({}))["result"].is_object());
    let outcome = guest.reply(call)["result"].take();
    let (code, message) =
        (&outcome["structuredContent"]["code"], outcome["structuredContent"]["message"].to_string());
    assert_eq!(code, "store_unavailable");
    let id = owner.id().to_string();
    assert!(message.contains(&format!("process {id}")) && message.contains("does not answer"), "{message}");
    assert!(message.contains("look before trying again"), "{message}");
    owner.signal("-CONT");
    guest.memory(create("after.md"));
    assert!(files(&mut owner).contains(&"/memories/after.md".to_owned()));
}

#[test]
fn a_window_that_waits_for_an_owner_that_stands_still_ends_when_told() {
    let home = home();
    let owner = Server::start(home.path());
    let mut guest = Server::start(home.path());
    owner.signal("-STOP");
    guest.send_call("memory", create("during.md"));
    guest.signal("-TERM");
    let started = Instant::now();
    assert!(guest.wait().status.success() && started.elapsed() < DEADLINE);
    owner.signal("-CONT");
}

#[test]
fn guests_of_an_owner_whose_disk_was_full_write_again_once_there_is_room() {
    let home = home();
    let mut owner = Server::start(home.path());
    let mut guest = Server::start(home.path());
    guest.memory(create("before.md"));
    let limit = |limit: &str| {
        let set = Command::new("prlimit").args(["--pid", &owner.id().to_string(), limit]).status();
        set.is_ok_and(|status| status.success())
    };
    let size = fs::metadata(store(home.path()).join("store.redb")).unwrap().len();
    if !limit(&format!("--fsize={size}:unlimited")) {
        eprintln!("SKIPPED: prlimit is not installed");
        return;
    }
    let text = "x".repeat(30_000);
    let mut acknowledged = vec!["/memories/before.md".to_owned()];
    let mut refused = None;
    for n in 0..40 {
        let outcome = guest.outcome(
            "memory",
            json!({"command": "create", "path": format!("/memories/{n}.md"), "file_text": text}),
        );
        if outcome["isError"] == true {
            refused = Some(outcome["structuredContent"]["code"].clone());
            break;
        }
        acknowledged.push(format!("/memories/{n}.md"));
    }
    assert_eq!(refused, Some(json!("store_unavailable")));
    assert!(limit("--fsize=unlimited:unlimited"));
    // Opened again at most once a second.
    let started = Instant::now();
    while guest.outcome("memory", create("after.md"))["isError"] == true {
        assert!(started.elapsed() < DEADLINE, "no write is taken any more");
        thread::sleep(Duration::from_millis(200));
    }
    let found: HashSet<_> = files(&mut owner).into_iter().collect();
    assert!(acknowledged.iter().all(|path| found.contains(path)) && found.contains("/memories/after.md"));
}

#[test]
fn when_the_data_folder_goes_away_no_store_is_made_in_its_place() {
    let home = home();
    let (data, moved) = (home.path().join("data"), home.path().join("moved"));
    let owner = Server::start(&data);
    let mut guest = Server::start(&data);
    guest.memory(create("before.md"));
    fs::rename(&data, &moved).unwrap();
    // The owner has the store open wherever it is, and takes no writes that no later start would find.
    assert_eq!(files(&mut guest), ["/memories/before.md"]);
    let (code, message) = guest.refusal("memory", create("meanwhile.md"));
    assert!(code == "store_unavailable" && message.contains("store.redb"), "{message}");
    kill(owner);
    let (code, message) = guest.refusal("memory", create("lost.md"));
    assert_eq!(code, "store_unavailable");
    assert!(message.contains("is missing although"), "{message}");
    assert!(!data.exists());
    fs::rename(&moved, &data).unwrap();
    let started = Instant::now();
    while guest.outcome("memory", create("after.md"))["isError"] == true {
        assert!(started.elapsed() < DEADLINE, "it is not found again");
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(files(&mut guest), ["after.md", "before.md"].map(|name| format!("/memories/{name}")));
}

#[test]
fn what_others_remove_of_an_owner_is_made_again() {
    let home = home();
    let mut owner = Server::start(home.path());
    owner.memory(create("f.md"));
    let found = || socket(home.path()).filter(|socket| socket.exists());
    let socket = found().unwrap();
    fs::remove_file(&socket).unwrap();
    fs::remove_file(store(home.path()).join("owner")).unwrap();
    // A newcomer waits until the owner has noticed.
    assert_eq!(files(&mut Server::start(home.path())), ["/memories/f.md"]);
    assert!(found().is_some());
}

#[test]
fn a_window_with_another_key_gets_nothing() {
    let home = home();
    let mut owner = Server::start(home.path());
    owner.memory(create("f.md"));
    let other = tempfile::tempdir().unwrap();
    drop(Server::start(other.path()).close());
    let identity = other.path().join("identity.txt");
    let (status, stdout, stderr) = run(home.path(), &["--identity", identity.to_str().unwrap()]);
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("wrong key"), "{stderr}");
    assert_eq!(files(&mut owner), ["/memories/f.md"]);
}

#[test]
fn long_and_strange_paths_are_shared_too() {
    let home = home();
    let dir = home.path().join("my notes 記憶 \u{1f9e0}").join("d".repeat(200));
    let mut owner = Server::start(&dir);
    let mut guest = Server::start(&dir);
    owner.memory(create("f.md"));
    assert_eq!(files(&mut guest), ["/memories/f.md"]);
    assert_eq!(guest.call("recall", json!({"query": "note"}))["total"], 1);
    kill(owner);
    assert_eq!(guest.call("recall", json!({"query": "note"}))["total"], 1);
    drop(guest.close());
    assert_eq!(Server::start(&dir).call("recall", json!({"query": "note"}))["total"], 1);
}

#[test]
fn windows_with_different_environments_meet() {
    let home = home();
    let run_dir = home.path().join("run");
    fs::create_dir(&run_dir).unwrap();
    let data = home.path().join("data");
    let with = |run_dir: &Path| {
        Server::start_with(warm_mcp(&data), |command| {
            command.env("XDG_RUNTIME_DIR", run_dir);
        })
    };
    let mut owner = with(&run_dir);
    assert!(socket(&data).unwrap().starts_with(&run_dir));
    let mut guest = with(Path::new("/nowhere"));
    owner.memory(create("f.md"));
    assert_eq!(files(&mut guest), ["/memories/f.md"]);
    kill(owner);
    assert_eq!(files(&mut guest), ["/memories/f.md"]);
    assert!(!socket(&data).unwrap().starts_with(&run_dir), "a directory that is not there is passed over");
    let mut third = with(&run_dir);
    assert_eq!(files(&mut third), ["/memories/f.md"]);
}

#[test]
fn recalls_under_way_when_the_owner_is_killed_are_answered() {
    let home = home();
    let mut owner = Server::start(home.path());
    let ids: Vec<_> = (0..300)
        .map(|n| owner.send_call("remember", json!({"text": format!("memory number {n} about lighthouses")})))
        .collect();
    for id in ids {
        owner.reply(id);
    }
    let mut guest = Server::start(home.path());
    let ids: Vec<_> =
        (0..40).map(|_| guest.send_call("recall", json!({"query": "lighthouses", "k": 50}))).collect();
    kill(owner);
    for id in ids {
        let reply = guest.reply(id);
        assert_eq!(reply["result"]["structuredContent"]["total"], 300, "all of it, or later: {reply}");
    }
}

#[test]
fn all_namespaces_of_a_window_are_shared() {
    let home = home();
    let with = |_: ()| {
        Server::start_with(warm_mcp(home.path()), |command| {
            command.arg("--namespace-arg");
        })
    };
    let (mut one, mut other) = (with(()), with(()));
    let mut expected: HashMap<&str, usize> = HashMap::new();
    for (n, namespace) in ["a", "b", "a", "c"].into_iter().enumerate() {
        let window = if n % 2 == 0 { &mut one } else { &mut other };
        window.call("remember", json!({"text": "x", "namespace": namespace}));
        *expected.entry(namespace).or_default() += 1;
    }
    kill(one);
    for (namespace, count) in expected {
        assert_eq!(other.call("list", json!({"namespace": namespace}))["total"], count);
    }
}
