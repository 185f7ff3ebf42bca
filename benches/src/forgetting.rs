//! `warm-bench forgetting`: whether forgetting one memory costs more in a large store, and how soon one opens.
//!
//! A store of a hundred memories and a large one lie on the same disk, and memories are forgotten in turn from the
//! one and the other, so that a disk whose speed drifts drifts under both. Then the large one is opened, after it was
//! closed and from a copy that was taken while it was open, as after a crash.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use warm_engine::contract::{Forget, Limits, Memory, Recall, Restore};
use warm_engine::{Engine, Vault, VaultOptions};

use crate::engine::note;
use crate::percentiles::Percentiles;

/// Memories of the small store, and how many are forgotten from each.
const FEW: usize = 100;
const FORGOTTEN: usize = 60;

/// Options of the command.
#[derive(clap::Args)]
pub struct Options {
    /// Where to make the stores; they are removed afterwards.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Memories of the large store.
    #[arg(long, default_value_t = 100_000)]
    memories: usize,
    /// End with one line of JSON.
    #[arg(long)]
    json: bool,
}

type Failure = Box<dyn std::error::Error>;

/// Runs the measurement.
pub fn run(options: &Options) -> Result<(), Failure> {
    let home = tempfile::tempdir_in(&options.dir)?;
    let vault = vault(&home.path().join("data"))?;
    let open = |namespace: &str| Engine::open(&vault, namespace, Limits::default());
    let (few, many) = (open("few")?, open("many")?);
    fill(&few, FEW)?;
    fill(&many, options.memories)?;
    // The index is filled before anything is measured.
    let query = || Recall { query: "team".into(), ..Recall::default() };
    many.recall(&query())?;
    let (mut of_few, mut of_many) = (Vec::new(), Vec::new());
    for number in 0..FORGOTTEN {
        of_few.push(forget(&few, number)?);
        of_many.push(forget(&many, number * (options.memories / FORGOTTEN))?);
    }
    let crashed = home.path().join("crashed");
    copy(&home.path().join("data"), &crashed)?;
    drop((few, many));
    let opened = |vault: &Vault| -> Result<(f64, f64), Failure> {
        let started = Instant::now();
        let engine = Engine::open(vault, "many", Limits::default())?;
        let files = millis(started);
        engine.recall(&query())?;
        Ok((files, millis(started)))
    };
    let clean = opened(&vault)?;
    let unclean = opened(&self::vault(&crashed)?)?;
    let (of_few, of_many) = (Percentiles::of(of_few), Percentiles::of(of_many));
    let ratio = of_many.p50 / of_few.p50;
    println!("{} memories beside {FEW}, below {}", options.memories, options.dir.display());
    println!("forget one of {FEW:<8} p50 {:>8.1} us   p95 {:>8.1} us", of_few.p50, of_few.p95);
    println!(
        "forget one of {:<8} p50 {:>8.1} us   p95 {:>8.1} us",
        options.memories, of_many.p50, of_many.p95
    );
    println!("the large store costs {ratio:.2} x the small one");
    for (how, (files, recall)) in [("closed", clean), ("crashed", unclean)] {
        println!("open what was {how}: files after {files:.0} ms, recall after {recall:.0} ms");
    }
    if options.json {
        println!(
            "{}",
            json!({
                "memories": options.memories, "forget_few_us": of_few.p50, "forget_many_us": of_many.p50,
                "ratio": ratio, "open_ms": clean.0, "recall_ready_ms": clean.1,
                "crashed_open_ms": unclean.0, "crashed_recall_ready_ms": unclean.1,
            })
        );
    }
    Ok(())
}

fn vault(data_dir: &Path) -> Result<Vault, Failure> {
    Ok(Vault::open(&VaultOptions { data_dir: data_dir.to_owned(), identity: None, passphrase: None })?)
}

fn key(number: usize) -> String {
    format!("note-{number}")
}

fn fill(engine: &Engine, memories: usize) -> Result<(), Failure> {
    let at = "2026-01-01T00:00:00Z";
    let memory = |number| Memory {
        key: key(number),
        text: note(number),
        title: None,
        tags: Vec::new(),
        metadata: None,
        version: String::new(),
        created_at: at.into(),
        updated_at: at.into(),
        bytes: 0,
        origin: None,
    };
    let numbers: Vec<usize> = (0..memories).collect();
    for some in numbers.chunks(1_000) {
        let memories = some.iter().map(|number| memory(*number)).collect();
        engine.restore(Restore { memories, ..Restore::default() })?;
    }
    Ok(())
}

/// How long it takes.
fn forget(engine: &Engine, number: usize) -> Result<Duration, Failure> {
    let started = Instant::now();
    let forgotten = engine.forget(Forget { key: Some(key(number)), ..Forget::default() })?;
    let took = started.elapsed();
    forgotten.receipt.ok_or("there is no receipt")?;
    Ok(took)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            std::fs::copy(&path, &to)?;
        }
    }
    Ok(())
}
