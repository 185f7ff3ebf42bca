//! `warm-bench scan`: the nearest rows, for one query, for many, and in two stages.
//!
//! Owns that command. Speeds are set beside a plain read of the same bytes by the same threads,
//! taken in turns with them.

use std::error::Error;
use std::hint::black_box;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use warm_kernels::{Hypervector, HypervectorView, Search, Threads, TwoStage};

use crate::synthetic::{Data, mixture, texts};
use crate::timing::{Failure, best, best_in_turns, best_of_each, kernels, on_threads, read};

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Dimension of a code; a multiple of 64.
    #[arg(long, default_value_t = 1_024)]
    bits: usize,
    /// How many codes; with --texts at most so many.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// How many queries in a batch.
    #[arg(long, default_value_t = 64)]
    queries: usize,
    /// How many rows to find.
    #[arg(long, default_value_t = 10)]
    k: usize,
    /// How many threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The instruction set: scalar, avx2, avx512, avx512-vpopcntdq or neon. The default is what WARM_ISA says, or the best.
    #[arg(long, value_name = "NAME")]
    isa: Option<String>,
    /// A file whose lines are coded, plain or .gz; without it, a seeded mixture with clusters.
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,
    /// Bits of the prefix plane of the two-stage scan; a sixth of the bits by default.
    #[arg(long, value_name = "BITS")]
    prefix: Option<usize>,
    /// The most rows that the prefix stage keeps; a sixteenth of all by default.
    #[arg(long, value_name = "ROWS")]
    keep: Option<usize>,
    /// Standard deviations of a prefix distance that the two-stage scan allows for.
    #[arg(long, value_name = "Z", default_value_t = 2.0)]
    margin: f64,
    /// What codes and queries are drawn from.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Make the last line of stdout one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    isa: &'static str,
    bits: usize,
    rows: usize,
    queries: usize,
    k: usize,
    threads: usize,
    read_gbps: f64,
    single: Single,
    batch: Batch,
    two_stage: Stages,
}

#[derive(Serialize)]
struct Single {
    ms: f64,
    gbps: f64,
    of_read: f64,
}

#[derive(Serialize)]
struct Batch {
    ms_per_query: f64,
    gbps_equiv: f64,
}

#[derive(Serialize)]
struct Stages {
    ms: f64,
    recall_at_k: f64,
    of_single: f64,
    prefix_bits: usize,
    keep: usize,
}

/// Measures and prints.
pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    on_threads(options.threads, || measure(options)).map_err(|failure| -> Box<dyn Error> { failure })
}

fn measure(options: &Options) -> Result<(), Failure> {
    let kernels = kernels(options.isa.as_deref())?;
    let Data { mut codes, queries } = match &options.texts {
        Some(path) => texts(kernels, path, options.bits, options.rows, options.queries.max(1), options.seed)?,
        None => mixture(options.bits, options.rows, options.queries.max(1), options.seed)?,
    };
    let views: Vec<HypervectorView<'_>> = queries.iter().map(Hypervector::view).collect();
    let threads = if options.threads > 1 { Threads::Pool } else { Threads::One };
    let search = Search::nearest(options.k).threads(threads);
    let bytes = codes.words().len() as f64 * 8.0;
    // About two seconds of single scans, whatever the size.
    let rounds = ((40e9 / bytes) as usize).clamp(10, 400);

    let mut turn = 0;
    let [read_seconds, single] = best_in_turns(
        rounds,
        [&mut || read(kernels, codes.words()), &mut || {
            let query = views[turn % views.len()];
            turn += 1;
            black_box(kernels.scan(&codes, black_box(query), &search).is_ok());
        }],
    );
    let batch = best((rounds / 20).clamp(3, 20), || {
        black_box(kernels.scan_many(&codes, black_box(&views), &search).is_ok());
    });
    let exact = kernels.scan_many(&codes, &views, &search)?;

    let prefix = options.prefix.unwrap_or((options.bits / 6).next_multiple_of(64));
    codes.set_prefix(prefix)?;
    let keep = options.keep.unwrap_or(codes.len() / 16).max(options.k);
    let stages = TwoStage::new(search).at_most(keep).margin(options.margin);
    let mut kept = 0;
    let mut wanted = 0;
    for (query, exact) in views.iter().zip(&exact) {
        let found = kernels.scan_two_stage(&codes, *query, &stages)?;
        // A row as near as the last of the exact ones is as good as that one.
        let last = exact.last().map_or(0, |found| found.distance);
        wanted += exact.len();
        kept += found.iter().filter(|found| found.distance <= last).count();
    }
    let two = best_of_each((rounds / 10).clamp(5, 20), views.len(), |at| {
        black_box(kernels.scan_two_stage(&codes, black_box(views[at]), &stages).is_ok());
    });
    let two = two.iter().sum::<f64>() / views.len() as f64;

    let report = Report {
        isa: kernels.isa().name(),
        bits: options.bits,
        rows: codes.len(),
        queries: views.len(),
        k: options.k,
        threads: options.threads,
        read_gbps: bytes / read_seconds / 1e9,
        single: Single { ms: single * 1e3, gbps: bytes / single / 1e9, of_read: read_seconds / single },
        batch: Batch {
            ms_per_query: batch / views.len() as f64 * 1e3,
            gbps_equiv: bytes * views.len() as f64 / batch / 1e9,
        },
        two_stage: Stages {
            ms: two * 1e3,
            recall_at_k: kept as f64 / wanted.max(1) as f64,
            of_single: two / single,
            prefix_bits: prefix,
            keep,
        },
    };
    println!(
        "{} rows of {} bits, {}, {} thread(s): read {:.1} GB/s",
        report.rows, report.bits, report.isa, report.threads, report.read_gbps
    );
    println!(
        "one query   {:8.3} ms  {:6.1} GB/s, {:.3} of a plain read",
        report.single.ms, report.single.gbps, report.single.of_read
    );
    println!(
        "{:3} queries {:8.3} ms each, as good as {:.1} GB/s",
        report.queries, report.batch.ms_per_query, report.batch.gbps_equiv
    );
    println!(
        "two stages  {:8.3} ms, {:.3} of one query's; recall {:.4} with {} rows kept by {} bits",
        report.two_stage.ms, report.two_stage.of_single, report.two_stage.recall_at_k, keep, prefix
    );
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(())
}
