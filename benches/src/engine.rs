//! `warm-bench engine`: what a write and a recall cost in the engine, beside a bare commit.
//!
//! The bare commit writes as many bytes into one table of a redb file on the same disk, with the
//! same durability (quick repair), and nothing else. The two are interleaved, so that a disk whose
//! speed drifts drifts under both.

use std::fs::File;
use std::hint::black_box;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redb::{Database, TableDefinition};
use serde_json::json;
use warm_engine::contract::{Command, CommandLimits, Limits, Recall};
use warm_engine::{Engine, Vault, VaultOptions};

use crate::percentiles::Percentiles;
use crate::writers;

const RECORDS: TableDefinition<'static, &[u8; 16], &[u8]> = TableDefinition::new("records");
/// Bytes of a row beyond the text, as the engine writes it: the sealed key, and in the record its
/// name, times, padding, head and tag.
const OVERHEAD: usize = 125;

/// Options of the command.
#[derive(clap::Args)]
pub struct Options {
    /// Where to make the store; it is removed afterwards. A tmpfs shows the cost without a disk.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// How many memories to create.
    #[arg(long, default_value_t = 1_000)]
    memories: usize,
    /// Measure instead how writers share syncs, with every sync made to take so many milliseconds longer.
    #[arg(long)]
    sync_ms: Option<u64>,
    /// With --sync-ms: how many write at once.
    #[arg(long, default_value_t = 16, requires = "sync_ms")]
    writers: usize,
    /// End with one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the measurement.
pub fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(sync_ms) = options.sync_ms {
        return writers::run(&options.dir, sync_ms, options.writers, options.json);
    }
    let home = tempfile::tempdir_in(&options.dir)?;
    let vault_options = VaultOptions { data_dir: home.path().join("data"), identity: None, passphrase: None };
    let vault = Vault::open(&vault_options)?;
    let engine = Engine::open(&vault, "bench", Limits::default())?;
    let bare = Database::create(home.path().join("bare.redb"))?;
    let path = |n: usize| format!("/memories/topic-{}/note-{n}.md", n % 50);
    let (mut creates, mut bares, mut text_bytes) = (Vec::new(), Vec::new(), 0);
    for n in 0..options.memories {
        let file_text = note(n);
        let size = file_text.len();
        text_bytes += size;
        let command = Command::Create { path: path(n), file_text };
        creates.push(timed(|| engine.command(command, CommandLimits::default()))?);
        bares.push(timed(|| bare_commit(&bare, n, size + OVERHEAD))?);
    }
    let store_bytes = engine.stats().store_bytes;
    let block = Block::beside(home.path())?;
    let (mut replaces, mut erasing) = (Vec::new(), Vec::new());
    for n in 0..options.memories.min(500) {
        let (old_str, new_str) = ("remember".to_owned(), Some(format!("recall {n}")));
        let command = Command::StrReplace { path: path(n), old_str, new_str };
        replaces.push(timed(|| engine.command(command, CommandLimits::default()))?);
        // What forgetting takes at the least: a commit of the same bytes, and one block overwritten.
        let size = note(n).len() + OVERHEAD;
        erasing.push(timed(|| -> Result<(), Box<dyn std::error::Error>> {
            bare_commit(&bare, options.memories + n, size)?;
            Ok(block.overwrite()?)
        })?);
    }
    let views = (0..1_000)
        .map(|n| {
            let command = Command::View { path: path(n % options.memories), view_range: None };
            timed(|| engine.command(command, CommandLimits::default()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let recalls = (0..1_000)
        .map(|n| {
            let query = format!("what did the team note about subject {}", n % 97);
            timed(|| engine.recall(&Recall { query, ..Recall::default() }))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let churned_bytes = engine.stats().store_bytes;
    drop(engine);
    let opened = Instant::now();
    let engine = Engine::open(&vault, "bench", Limits::default())?;
    let files_ready = opened.elapsed();
    engine.recall(&Recall { query: "team".into(), ..Recall::default() })?;
    let recall_ready = opened.elapsed();
    let closed_bytes = engine.stats().store_bytes;

    let (create, bare) = (Percentiles::of(creates), Percentiles::of(bares));
    let (replace, view, recall) =
        (Percentiles::of(replaces), Percentiles::of(views), Percentiles::of(recalls));
    let erasing = Percentiles::of(erasing);
    let ratio = create.p50 / bare.p50;
    let replace_ratio = replace.p50 / erasing.p50;
    let of_text = |bytes: u64| bytes as f64 / text_bytes as f64;
    println!("{} memories, {text_bytes} bytes of text, below {}", options.memories, options.dir.display());
    for (name, row) in [
        ("create", &create),
        ("bare commit", &bare),
        ("str_replace", &replace),
        ("bare and block", &erasing),
        ("view", &view),
        ("recall", &recall),
    ] {
        println!("{name:<14} p50 {:>8.1} us   p95 {:>8.1} us", row.p50, row.p95);
    }
    println!("create is {ratio:.2} x a bare commit");
    println!("str_replace is {replace_ratio:.2} x a bare commit and one 4 KiB block overwritten and synced");
    println!(
        "store size {:.2} x the text after the creates, {:.2} x after the edits, {:.2} x after a restart",
        of_text(store_bytes),
        of_text(churned_bytes),
        of_text(closed_bytes)
    );
    println!("open: files after {:.1} ms, recall after {:.1} ms", millis(files_ready), millis(recall_ready));
    if options.json {
        let row = |p: &Percentiles| json!({ "p50_us": p.p50, "p95_us": p.p95 });
        println!(
            "{}",
            json!({
                "memories": options.memories,
                "create": row(&create),
                "bare_commit": row(&bare),
                "create_to_bare": ratio,
                "str_replace": row(&replace),
                "bare_and_block": row(&erasing),
                "str_replace_to_bare_and_block": replace_ratio,
                "view": row(&view),
                "recall": row(&recall),
                "store_to_text": of_text(store_bytes),
                "store_to_text_reopened": of_text(closed_bytes),
                "open_ms": millis(files_ready),
                "recall_ready_ms": millis(recall_ready),
            })
        );
    }
    Ok(())
}

/// A block on the same disk that is overwritten in place.
struct Block(File);

impl Block {
    fn beside(dir: &Path) -> std::io::Result<Self> {
        let file = File::create_new(dir.join("block"))?;
        (&file).write_all(&[1; 4_096])?;
        file.sync_all()?;
        Ok(Self(file))
    }

    fn overwrite(&self) -> std::io::Result<()> {
        let mut file = &self.0;
        file.rewind()?;
        file.write_all(&[2; 4_096])?;
        file.sync_data()
    }
}

/// About 110 bytes, like a memory that an agent writes.
pub fn note(n: usize) -> String {
    const WHO: [&str; 7] = ["Ada", "Grace", "Alan", "Edsger", "Barbara", "Donald", "Leslie"];
    const WHAT: [&str; 5] =
        ["the deploy script", "the billing page", "the data export", "the login flow", "the report"];
    format!(
        "{} asked the team to remember that {} needs review {n}; subject {} is due before release {}.",
        WHO[n % WHO.len()],
        WHAT[n % WHAT.len()],
        n % 97,
        n % 13
    )
}

fn bare_commit(database: &Database, n: usize, bytes: usize) -> Result<(), redb::Error> {
    // A multiplicative hash spreads the ids as random ones would be.
    let id = (n as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes();
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    transaction.open_table(RECORDS)?.insert(&id, vec![1; bytes].as_slice())?;
    Ok(transaction.commit()?)
}

fn timed<R, E>(job: impl FnOnce() -> Result<R, E>) -> Result<Duration, E> {
    let started = Instant::now();
    black_box(job()?);
    Ok(started.elapsed())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
