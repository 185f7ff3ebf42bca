//! `warm-bench windows`: several processes of the real `warm-mcp` on one store.
//!
//! What a write costs through the owner of the store and through a guest, interleaved; and how long a
//! request of a guest takes when the owner is killed while it is under way. Only processes that this command
//! started are killed.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use warm_engine::contract::{Command, CommandLimits, Limits};
use warm_engine::{Engine, Vault, VaultOptions};

use crate::engine::note;
use crate::percentiles::Percentiles;

/// Writers that fill the store: they share its commits.
const FILLERS: usize = 64;
/// Requests that are sent in each round before the owner is killed, and after it is at most.
const BEFORE: usize = 3;
const AFTER: Duration = Duration::from_millis(1_500);

/// A client that thinks between two requests.
const PAUSE: Duration = Duration::from_millis(1);

/// Options of the command.
#[derive(clap::Args)]
pub struct Options {
    /// The `warm-mcp` to measure; by default the one beside this program.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where to make the store; it is removed afterwards.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// How many memories there are.
    #[arg(long, default_value_t = 1_000)]
    memories: usize,
    /// How many processes are on the store.
    #[arg(long, default_value_t = 4)]
    windows: usize,
    /// How many writes are timed on each side.
    #[arg(long, default_value_t = 500)]
    writes: usize,
    /// How many owners are killed.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// End with one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the measurement.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => std::env::current_exe()?.with_file_name("warm-mcp"),
    };
    let home = tempfile::tempdir_in(&options.dir)?;
    let data = home.path().join("data");
    fill(&data, options.memories)?;
    let start = || Window::start(&binary, &data);
    let (mut owner, mut guest) = (start()?, start()?);
    let (mut through_owner, mut through_guest) = (Vec::new(), Vec::new());
    for n in 0..options.writes {
        let memory = json!({"text": note(n), "key": format!("note {}", n % 100)});
        through_owner.push(owner.timed("remember", &memory)?);
        through_guest.push(guest.timed("remember", &memory)?);
    }
    let (through_owner, through_guest) = (Percentiles::of(through_owner), Percentiles::of(through_guest));

    let mut windows = vec![owner, guest];
    let (mut files, mut recalls) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        while windows.len() < options.windows.max(2) {
            windows.push(start()?);
        }
        let (longest, recall) = hand_over(&mut windows, &data)?;
        files.push(longest);
        recalls.push(recall);
    }
    let (files, recalls) = (Percentiles::of(files), Percentiles::of(recalls));
    let ratio = through_guest.p50 / through_owner.p50;
    println!("{} memories, {} processes, below {}", options.memories, options.windows, options.dir.display());
    println!(
        "store through the owner  p50 {:>8.1} us   p95 {:>8.1} us",
        through_owner.p50, through_owner.p95
    );
    println!(
        "store through a guest    p50 {:>8.1} us   p95 {:>8.1} us   {ratio:.2} x the owner's",
        through_guest.p50, through_guest.p95
    );
    println!("{} owners killed; the slowest request of a guest in each round:", options.rounds);
    for (name, row) in [("files", &files), ("first recall", &recalls)] {
        println!(
            "{name:<14} p50 {:>7.1} ms   p99 {:>7.1} ms   max {:>7.1} ms",
            row.p50 / 1e3,
            row.p99 / 1e3,
            row.max / 1e3
        );
    }
    if options.json {
        let row =
            |p: &Percentiles| json!({"p50_ms": p.p50 / 1e3, "p99_ms": p.p99 / 1e3, "max_ms": p.max / 1e3});
        println!(
            "{}",
            json!({
                "memories": options.memories, "windows": options.windows, "rounds": options.rounds,
                "store_owner_us": through_owner.p50, "store_guest_us": through_guest.p50,
                "guest_to_owner": ratio, "files": row(&files), "first_recall": row(&recalls),
            })
        );
    }
    Ok(())
}

/// Makes a store of so many memory files.
pub fn fill(data: &Path, memories: usize) -> Result<(), Box<dyn Error>> {
    let vault = Vault::open(&VaultOptions { data_dir: data.to_owned(), identity: None, passphrase: None })?;
    let engine = Engine::open(&vault, "default", Limits::default())?;
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let fillers: Vec<_> = (0..FILLERS)
            .map(|_| {
                scope.spawn(|| -> Result<(), warm_engine::Error> {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= memories {
                            return Ok(());
                        }
                        let path = format!("/memories/topic-{}/note-{n}.md", n % 50);
                        let create = Command::Create { path, file_text: note(n) };
                        engine.command(create, CommandLimits::default())?;
                    }
                })
            })
            .collect();
        for filler in fillers {
            filler.join().map_err(|_| "a filler failed")??;
        }
        Ok(())
    })
}

/// Kills the owner while a guest's requests are under way. Returns the guest's slowest request of a file, and
/// the time from the kill to the answer of a recall that was asked for right behind it.
fn hand_over(windows: &mut Vec<Window>, data: &Path) -> Result<(Duration, Duration), Box<dyn Error>> {
    let owner = owner_of(data)?;
    let at = windows.iter().position(|window| window.child.id() == owner).ok_or("the owner is not ours")?;
    let mut doomed = windows.remove(at);
    let guest = windows.last_mut().ok_or("there is no guest")?;
    let view = json!({"command": "view", "path": "/memories/topic-0/note-0.md"});
    let mut longest = Duration::ZERO;
    let mut killed = None;
    for n in 0.. {
        if n == BEFORE {
            doomed.child.kill()?;
            let recall = guest.send("tools/call", &call("recall", &json!({"query": "billing page"})))?;
            killed = Some((Instant::now(), recall));
        }
        let took = if n % 2 == 0 {
            // Under one name, so that the store stays as large as it was said to be.
            guest.timed("remember", &json!({"text": note(n), "key": "the same"}))?
        } else {
            guest.timed("memory", &view)?
        };
        thread::sleep(PAUSE);
        if let Some((killed, recall)) = killed {
            longest = longest.max(took);
            if let Some((_, answered)) = guest.early.iter().find(|(id, _)| *id == recall)
                && killed.elapsed() > AFTER
            {
                let recalled = *answered - killed;
                guest.early.clear();
                doomed.child.wait()?;
                return Ok((longest, recalled));
            }
        }
    }
    Err("there is an end to numbers".into())
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// What the note beside the only store says.
fn owner_of(data: &Path) -> Result<u32, Box<dyn Error>> {
    let store = std::fs::read_dir(data.join("stores"))?.next().ok_or("there is no store")??.path();
    let started = Instant::now();
    loop {
        let note = std::fs::read(store.join("owner")).ok();
        let note: Option<Value> = note.and_then(|note| serde_json::from_slice(&note).ok());
        if let Some(process) = note.and_then(|note| note["process"].as_u64()) {
            return Ok(u32::try_from(process)?);
        }
        if started.elapsed() > Duration::from_secs(10) {
            return Err("the store has no owner".into());
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// A process and the session with it.
pub struct Window {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Replies that came while another was waited for, and when.
    early: Vec<(u64, Instant)>,
}

impl Window {
    pub fn start(binary: &Path, data: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child = Process::new(binary)
            .arg("--data-dir")
            .arg(data)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", binary.display()))?;
        let input = child.stdin.take().ok_or("no pipe")?;
        let output = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        let mut window = Self { child, input, output, next: 0, early: Vec::new() };
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "warm-bench", "version": env!("CARGO_PKG_VERSION")}});
        window.ask("initialize", &hello)?;
        writeln!(window.input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(window)
    }

    fn send(&mut self, method: &str, params: &Value) -> Result<u64, Box<dyn Error>> {
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.input.write_all(format!("{request}\n").as_bytes())?;
        Ok(self.next)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Box<dyn Error>> {
        let sent = self.send(method, params)?;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line)?;
            let reply: Value = serde_json::from_str(&line)?;
            if reply["result"]["isError"] == true {
                return Err(format!("a call failed: {reply}").into());
            }
            match reply["id"].as_u64() {
                Some(id) if id == sent => return Ok(reply),
                id => self.early.push((id.ok_or("a reply without id")?, Instant::now())),
            }
        }
    }

    pub fn timed(&mut self, tool: &str, arguments: &Value) -> Result<Duration, Box<dyn Error>> {
        let started = Instant::now();
        self.ask("tools/call", &call(tool, arguments))?;
        Ok(started.elapsed())
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
