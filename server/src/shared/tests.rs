//! Owner and guests in one process: each [`SharedMemory`] stands for a process of its own.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    thread,
};

use tempfile::TempDir;
use warm_engine::{
    VaultOptions,
    contract::{CopyKind, Copying, Get, Remember},
};

use super::{
    endpoint::{Endpoint, seat_place},
    handshake::Place,
    *,
};
use crate::memory::contract::{check, check_alike};

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn vault(&self) -> Vault {
        let options = VaultOptions { data_dir: self.0.path().join("data"), identity: None, passphrase: None };
        Vault::open(&options).expect("a vault")
    }

    fn memory(&self) -> SharedMemory {
        self.with_limits(Limits::default())
    }

    fn with_limits(&self, limits: Limits) -> SharedMemory {
        SharedMemory::open(&self.vault(), "default", limits).expect("a memory")
    }

    fn seat(&self) -> Seat {
        Seat::of(&self.vault(), "default").expect("a seat")
    }

    fn place(&self) -> Place {
        seat_place(self.seat().dir()).expect("a place")
    }

    fn socket(&self) -> PathBuf {
        let found = Endpoint::find(self.seat().dir(), self.place());
        found.into_iter().next().expect("the owner says where it is")
    }
}

fn owns(memory: &SharedMemory) -> bool {
    matches!(memory.shared.role(), Role::Owner(_))
}

fn remember(memory: &SharedMemory, key: &str, text: &str) -> Result<Reply, Failure> {
    memory.call(Request::Remember(Remember {
        key: Some(key.into()),
        text: text.into(),
        create_only: true,
        ..Remember::default()
    }))
}

fn text(memory: &SharedMemory, key: &str) -> Option<String> {
    match memory.call(Request::Get(Get { key: key.into() })) {
        Ok(Reply::Get(memory)) => Some(memory.text),
        _ => None,
    }
}

#[test]
fn a_local_memory_an_owner_and_a_guest_meet_the_contract() {
    let home = Home::new();
    let owner = home.memory();
    check(&owner);
    let guest = home.memory();
    assert!(owns(&owner) && !owns(&guest));
    check(&guest);
    check(&owner);
    let other = Home::new();
    let engine = Engine::open(&other.vault(), "default", Limits::default()).expect("an engine");
    check(&LocalMemory::new(engine));
}

#[test]
fn a_guest_answers_as_the_engine_does_to_the_last_bit() {
    let (home, other) = (Home::new(), Home::new());
    let _owner = home.memory();
    let local =
        LocalMemory::new(Engine::open(&other.vault(), "default", Limits::default()).expect("an engine"));
    check_alike(&local, &home.memory());
}

#[test]
fn each_process_has_its_own_limits() {
    let home = Home::new();
    let owner = home.memory();
    let guest = home.with_limits(Limits { max_text_bytes: 100_000, ..Limits::default() });
    let long = "x".repeat(50_000);
    assert_eq!(remember(&owner, "k", &long).err().map(|failure| failure.code), Some(ErrorCode::TooLarge));
    assert!(remember(&guest, "k", &long).is_ok());
    assert_eq!(text(&owner, "k").map(|text| text.len()), Some(50_000));
}

#[test]
fn when_the_owner_ends_a_guest_takes_over_before_it_is_asked_and_the_others_join_it() {
    let home = Home::new();
    let owner = home.memory();
    let guests: Vec<_> = (0..4).map(|_| home.memory()).collect();
    assert!(remember(&owner, "k", "text").is_ok());
    drop(owner);
    let started = Instant::now();
    while guests.iter().filter(|guest| owns(guest)).count() != 1 {
        assert!(started.elapsed() < PATIENCE, "nobody takes over");
        thread::sleep(Duration::from_millis(5));
    }
    for (n, guest) in guests.iter().enumerate() {
        assert_eq!(text(guest, "k").as_deref(), Some("text"));
        assert!(remember(guest, &format!("k{n}"), "more").is_ok());
    }
    assert_eq!(guests.iter().filter(|guest| owns(guest)).count(), 1);
}

#[test]
fn writes_under_way_while_owners_end_one_after_another_are_made_once_each() {
    let home = Home::new();
    let keeper = home.memory();
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let memory = home.memory();
                scope.spawn(move || {
                    for n in 0..40 {
                        // `create_only`: one that was made twice would be refused.
                        let key = format!("{writer}-{n}");
                        if let Err(failure) = remember(&memory, &key, "text") {
                            panic!("{key}: {}", failure.message);
                        }
                    }
                    memory
                })
            })
            .collect();
        // Each owner in turn ends while the others write.
        let mut owner = Some(keeper);
        for _ in 0..6 {
            thread::sleep(Duration::from_millis(30));
            drop(owner.take());
            let next = home.memory();
            owner = Some(next);
        }
        let memories: Vec<_> = writers.into_iter().map(|writer| writer.join().expect("it writes")).collect();
        for memory in &memories {
            for writer in 0..4 {
                for n in 0..40 {
                    assert!(text(memory, &format!("{writer}-{n}")).is_some());
                }
            }
        }
    });
}

#[test]
fn a_process_without_the_key_learns_nothing_and_serves_nothing() {
    let (home, stranger) = (Home::new(), Home::new());
    let owner = home.memory();
    let (socket, place) = (home.socket(), home.place());
    let stream = UnixStream::connect(&socket).expect("it is there");
    let refused = handshake::join(stream, &stranger.vault().prover("default"), place, &Limits::default());
    assert!(matches!(refused, Err(Refused::NoProof)));
    // Nor does the right key of another namespace do.
    let stream = UnixStream::connect(&socket).expect("it is there");
    let refused = handshake::join(stream, &home.vault().prover("other"), place, &Limits::default());
    assert!(matches!(refused, Err(Refused::NoProof)));
    // Words instead of a handshake end the connection without an answer.
    let mut stream = UnixStream::connect(&socket).expect("it is there");
    wire::write(&mut stream, &serde_json::json!({"request": "stats"})).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
    // A guest that lies about the key at the last moment is not served.
    let mut stream = UnixStream::connect(&socket).expect("it is there");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time-out");
    let hello = serde_json::json!({"protocol": handshake::PROTOCOL, "nonce": vec![0; 16]});
    wire::write(&mut stream, &hello).expect("it is sent");
    let _: Option<serde_json::Value> = wire::read(&mut stream, 4096, None, || Ok(())).expect("a welcome");
    let lie = serde_json::json!({"proof": vec![0; 32], "limits": Limits::default()});
    wire::write(&mut stream, &lie).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(answer.is_empty());
    assert!(remember(&owner, "k", "text").is_ok(), "the owner goes on");
}

#[test]
fn a_copy_of_a_store_is_another_store() {
    let home = Home::new();
    let owner = home.memory();
    assert!(remember(&owner, "k", "text").is_ok());
    let copy = Home::new();
    let (from, to) = (home.0.path().join("data"), copy.0.path().join("data"));
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().expect("cp starts");
    assert!(copied.success());
    let of_copy = copy.memory();
    let guest_of_copy = copy.memory();
    assert!(owns(&of_copy) && !owns(&guest_of_copy), "the note in it leads to the owner of the original");
    assert!(remember(&guest_of_copy, "only here", "text").is_ok());
    assert_eq!(text(&owner, "only here"), None);
    let stream = UnixStream::connect(home.socket()).expect("it is there");
    let refused = handshake::join(stream, &copy.vault().prover("default"), copy.place(), &Limits::default());
    assert!(matches!(refused, Err(Refused::NoProof)));
}

#[test]
fn an_owner_that_can_not_prove_itself_is_not_told_anything() {
    let home = Home::new();
    drop(home.memory());
    let (_endpoint, listener) = Endpoint::make(home.seat().dir(), home.place()).expect("a socket");
    let (stranger, place) = (Home::new().vault().prover("default"), home.place());
    let admit = thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a guest comes");
        let mut listening = stream.try_clone().expect("another handle");
        let refused = handshake::admit(Arc::new(stream), &stranger, place);
        let mut said = Vec::new();
        let _ = listening.read_to_end(&mut said);
        (refused.is_err(), said)
    });
    let joined = Guest::join(&home.seat(), home.vault().prover("default"), &Limits::default());
    assert!(matches!(joined.err(), Some(Refused::NoProof)));
    let (refused, said) = admit.join().expect("it ends");
    assert!(refused && said.is_empty());
}

#[test]
fn one_who_passes_on_what_two_processes_say_learns_nothing() {
    let home = Home::new();
    let _owner = home.memory();
    let dir = home.seat().dir().to_owned();
    let real = home.socket();
    let between = home.0.path().join("between");
    let listener = UnixListener::bind(&between).expect("a socket");
    let note = serde_json::json!({"socket": between, "process": 1});
    std::fs::write(dir.join("owner"), note.to_string()).expect("it is written");
    let overheard = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&overheard);
    thread::spawn(move || {
        for guest in listener.incoming().flatten() {
            let owner = UnixStream::connect(&real).expect("it is there");
            for (mut from, mut to) in [(guest.try_clone(), owner.try_clone()), (Ok(owner), Ok(guest))]
                .map(|(a, b)| (a.unwrap(), b.unwrap()))
            {
                let record = Arc::clone(&record);
                thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(read @ 1..) = from.read(&mut bytes) {
                        record.lock().extend_from_slice(&bytes[..read]);
                        if to.write_all(&bytes[..read]).is_err() {
                            break;
                        }
                    }
                });
            }
        }
    });
    let guest = home.memory();
    assert!(!owns(&guest));
    assert!(remember(&guest, "plainkey", "plaintext").is_ok());
    assert_eq!(text(&guest, "plainkey").as_deref(), Some("plaintext"));
    let overheard = overheard.lock();
    assert!(overheard.len() > 500, "everything went through there");
    for word in ["plainkey", "plaintext", "remember"] {
        assert!(!overheard.windows(word.len()).any(|heard| heard == word.as_bytes()), "{word}");
    }
}

fn copying() -> Copying {
    Copying { kind: CopyKind::Export, place: "-".into() }
}

#[test]
fn a_reader_who_pauses_in_the_middle_of_a_dump_gets_all_of_it() {
    let home = Home::new();
    let owner = home.memory();
    for n in 0..40 {
        assert!(remember(&owner, &format!("k{n}"), &"x".repeat(20_000)).is_ok());
    }
    let guest = home.memory();
    let mut seen = 0;
    let dumped = guest.dump(&copying(), &mut |_| {
        seen += 1;
        if seen == 1 {
            // Longer than either side waits for the other elsewhere.
            thread::sleep(Duration::from_secs(7));
        }
        Ok(())
    });
    assert!(matches!(dumped, Ok(40)));
    let stopped = guest.dump(&copying(), &mut |_| Err(Failure::invalid("enough")));
    assert_eq!(stopped.err().map(|failure| failure.message).as_deref(), Some("enough"));
    assert!(remember(&guest, "after", "text").is_ok());
}

#[test]
fn an_owner_of_another_protocol_is_named_with_what_to_restart() {
    let home = Home::new();
    drop(home.memory());
    let _claim = home.seat().try_claim().expect("no error").expect("nobody holds it");
    let (_endpoint, listener): (_, UnixListener) =
        Endpoint::make(home.seat().dir(), home.place()).expect("a socket");
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a guest comes");
        let _: Option<serde_json::Value> = wire::read(&mut stream, 4096, None, || Ok(())).expect("a hello");
        let welcome = serde_json::json!({
            "protocol": 99, "version": "9.9.9", "process": 4711, "nonce": vec![0; 16], "proof": [], "news": 1,
        });
        wire::write(&mut stream, &welcome).expect("it is sent");
    });
    let error = SharedMemory::open(&home.vault(), "default", Limits::default()).err().expect("it is refused");
    let said = error.to_string();
    assert!(said.contains("process 4711, version 9.9.9") && said.contains("restart"), "{said}");
}

#[test]
fn a_store_that_was_given_up_is_opened_again_by_the_next_call() {
    let home = Home::new();
    let memory = home.memory();
    assert!(remember(&memory, "k", "text").is_ok());
    memory.shared.election.lock().opened = None;
    memory.shared.let_go(memory.shared.role());
    assert!(matches!(memory.shared.role(), Role::None));
    // Until the old store is closed, the next call may still be served by it.
    let started = Instant::now();
    while !owns(&memory) {
        assert!(started.elapsed() < PATIENCE, "it is not opened again");
        assert_eq!(text(&memory, "k").as_deref(), Some("text"));
    }
}
