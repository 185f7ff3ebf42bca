//! `warm-bench engine --sync-ms N`: what many writers at once gain by sharing syncs.
//!
//! Every sync is made to take so long, as on a slower disk, and is counted. Each writer creates files one
//! after the other; one writer alone is measured first, on a store of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use warm_engine::contract::{Command, CommandLimits, Limits};
use warm_engine::{Engine, Vault, VaultOptions};

/// How long each of the two runs takes at least.
const LONG_ENOUGH: Duration = Duration::from_secs(4);

struct Throughput {
    writes: u64,
    syncs: u64,
    per_second: f64,
}

/// Runs the measurement.
pub fn run(dir: &Path, sync_ms: u64, writers: usize, json: bool) -> Result<(), Box<dyn std::error::Error>> {
    let sync_takes = Duration::from_millis(sync_ms);
    let alone = measure(dir, sync_takes, 1)?;
    let together = measure(dir, sync_takes, writers)?;
    let ratio = together.per_second / alone.per_second;
    println!("every sync takes {sync_ms} ms more, below {}", dir.display());
    for (name, row) in [("1 writer".to_owned(), &alone), (format!("{writers} writers"), &together)] {
        println!(
            "{name:<12} {:>8.1} writes/s   {:>6.2} syncs a write   {:>6.2} writes a sync",
            row.per_second,
            row.syncs as f64 / row.writes as f64,
            row.writes as f64 / row.syncs as f64,
        );
    }
    println!("{writers} writers write {ratio:.2} x as much as one");
    if json {
        let row =
            |t: &Throughput| json!({ "writes": t.writes, "syncs": t.syncs, "writes_per_s": t.per_second });
        println!(
            "{}",
            json!({ "sync_ms": sync_ms, "writers": writers, "alone": row(&alone), "together": row(&together), "ratio": ratio })
        );
    }
    Ok(())
}

fn measure(
    dir: &Path,
    sync_takes: Duration,
    writers: usize,
) -> Result<Throughput, Box<dyn std::error::Error>> {
    let home = tempfile::tempdir_in(dir)?;
    let options = VaultOptions { data_dir: home.path().join("data"), identity: None, passphrase: None };
    let syncs = Arc::new(AtomicU64::new(0));
    let vault = Vault::open(&options)?;
    let engine = Engine::open_slowed(&vault, "bench", Limits::default(), sync_takes, Arc::clone(&syncs))?;
    let before = syncs.load(Ordering::Relaxed);
    let started = Instant::now();
    let writes = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|writer| {
                let engine = &engine;
                scope.spawn(move || {
                    let mut writes = 0;
                    while started.elapsed() < LONG_ENOUGH {
                        let path = format!("/memories/writer-{writer}/note-{writes}.md");
                        let file_text = format!("{writer} notes that subject {writes} is due for review.");
                        engine.command(Command::Create { path, file_text }, CommandLimits::default())?;
                        writes += 1;
                    }
                    Ok::<_, warm_engine::Error>(writes)
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer does not panic"))
            .sum::<Result<u64, _>>()
    })?;
    let took = started.elapsed();
    let syncs = syncs.load(Ordering::Relaxed) - before;
    Ok(Throughput { writes, syncs, per_second: writes as f64 / took.as_secs_f64() })
}
