//! `warm-bench retrieval`: how well recall finds what is relevant.
//!
//! Owns the run over the collections and its report. Every collection gets a text index of its own, each
//! text one document, so that the parameters can be tried; `Engine::recall` searches the same index.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use warm_engine::index::text::{Bm25Params, Document, Query, TextIndex, analyse};

use crate::collections::{Collection, cranfield, locomo};
use crate::measures::{DEPTH, Scores};

/// What to measure.
#[derive(Args)]
pub struct Options {
    /// Folder with the conversations of LoCoMo, one JSON file each.
    #[arg(long, value_name = "DIR", required_unless_present = "cranfield")]
    locomo: Option<PathBuf>,
    /// Folder with cran.all.1400, cran.qry and cranqrel.
    #[arg(long, value_name = "DIR")]
    cranfield: Option<PathBuf>,
    /// Which of Cranfield's queries to ask.
    #[arg(long, value_enum, default_value_t = Parity::Odd)]
    parity: Parity,
    /// How slowly repetitions of a word saturate.
    #[arg(long, default_value_t = Bm25Params::default().k1)]
    k1: f64,
    /// How much long passages are discounted.
    #[arg(long, default_value_t = Bm25Params::default().b)]
    b: f64,
    /// Make the last line of stdout one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Parity {
    Odd,
    Even,
}

#[derive(Serialize)]
struct Report {
    k1: f64,
    b: f64,
    collections: Vec<Row>,
    /// Over all questions of LoCoMo together.
    #[serde(skip_serializing_if = "Option::is_none")]
    locomo: Option<Scores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cranfield: Option<Scores>,
    /// The mean of the lines above, each counting the same.
    mean: Scores,
}

#[derive(Serialize)]
struct Row {
    name: String,
    texts: usize,
    queries: usize,
    #[serde(flatten)]
    scores: Scores,
    index_ms: f64,
    /// Mean time of one search.
    search_us: f64,
}

pub fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let params = Bm25Params { k1: options.k1, b: options.b, ..Bm25Params::default() };
    let mut rows = Vec::new();
    let mut benchmarks = Vec::new();
    println!(
        "{:<14} {:>6} {:>8} {:>10} {:>8} {:>9}",
        "collection", "texts", "queries", "recall@10", "hit@10", "nDCG@10"
    );
    let mut locomo_mean = None;
    if let Some(folder) = &options.locomo {
        let mut all = Vec::new();
        for collection in locomo(folder)? {
            let (row, scores) = measure(&collection, params);
            print(&row.name, Some((row.texts, row.queries)), &row.scores);
            rows.push(row);
            all.extend(scores);
        }
        let mean = Scores::mean(&all);
        print("locomo", Some((rows.iter().map(|row| row.texts).sum(), all.len())), &mean);
        benchmarks.push(mean);
        locomo_mean = Some(mean);
    }
    let mut cranfield_mean = None;
    if let Some(folder) = &options.cranfield {
        let remainder = match options.parity {
            Parity::Odd => 1,
            Parity::Even => 0,
        };
        let (row, _) = measure(&cranfield(folder, remainder)?, params);
        print(&row.name, Some((row.texts, row.queries)), &row.scores);
        benchmarks.push(row.scores);
        cranfield_mean = Some(row.scores);
        rows.push(row);
    }
    let mean = Scores::mean(&benchmarks);
    print("mean", None, &mean);
    if options.json {
        let report = Report {
            k1: params.k1,
            b: params.b,
            collections: rows,
            locomo: locomo_mean,
            cranfield: cranfield_mean,
            mean,
        };
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(())
}

fn print(name: &str, counts: Option<(usize, usize)>, scores: &Scores) {
    let (texts, queries) = counts.map_or_else(Default::default, |(t, q)| (t.to_string(), q.to_string()));
    let Scores { recall, hit, ndcg } = scores;
    println!("{name:<14} {texts:>6} {queries:>8} {recall:>10.4} {hit:>8.4} {ndcg:>9.4}");
}

fn measure(collection: &Collection, params: Bm25Params) -> (Row, Vec<Scores>) {
    let began = Instant::now();
    let mut index = TextIndex::new(params);
    for (place, text) in collection.texts.iter().enumerate() {
        let id = (place as u128).to_be_bytes();
        index.insert(analyse(&Document { id, name: "", title: None, tags: &[], text }));
    }
    let index_ms = began.elapsed().as_secs_f64() * 1e3;
    let mut searching = Duration::ZERO;
    let scores: Vec<Scores> = collection
        .queries
        .iter()
        .map(|query| {
            let began = Instant::now();
            let found = index.search(&Query::new(&query.text), DEPTH, None, None);
            searching += began.elapsed();
            let ranked: Vec<usize> =
                found.hits.iter().map(|hit| u128::from_be_bytes(hit.id) as usize).collect();
            Scores::of(&ranked, &query.relevant, query.lacking)
        })
        .collect();
    let row = Row {
        name: collection.name.clone(),
        texts: collection.texts.len(),
        queries: scores.len(),
        scores: Scores::mean(&scores),
        index_ms,
        search_us: searching.as_secs_f64() * 1e6 / scores.len().max(1) as f64,
    };
    (row, scores)
}
