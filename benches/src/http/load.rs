//! Many clients, each request at its time.

use std::{
    collections::BTreeMap,
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    Options, Server,
    client::Client,
    profile::{Hand, Kind, MIX},
};
use crate::{percentiles::Percentiles, windows::fill};

/// What one client saw.
#[derive(Default)]
struct Seen {
    times: Vec<(Kind, Duration)>,
    errors: BTreeMap<String, usize>,
}

/// The requests of one stretch of time.
#[derive(Clone, Copy)]
struct Stretch {
    begins: Instant,
    /// Numbers of its requests.
    first: usize,
    count: usize,
    rate: f64,
}

impl Stretch {
    /// When a request leaves.
    fn due(self, request: usize) -> Instant {
        self.begins + Duration::from_secs_f64((request - self.first) as f64 / self.rate)
    }
}

pub async fn run(options: &Options, binary: &Path) -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir_in(&options.dir)?;
    let data = home.path().join("data");
    fill(&data, options.memories)?;
    let server = Server::start(binary, &data)?;
    let mut clients = Vec::new();
    for number in 0..options.connections as usize {
        let mut client = Client::open(&server.address).await?;
        let mut hand = Hand::new(number, options.memories);
        for (tool, arguments) in hand.beginning() {
            client.call(tool, &arguments).await?;
        }
        clients.push((client, hand));
    }
    let rss_start = server.resident_kb();
    let rate = f64::from(options.rate);
    let warming = (options.rate * options.warm_up) as usize;
    let stretch = |first, count| Stretch { begins: Instant::now(), first, count, rate };
    let (clients, warmed) = drive(clients, stretch(0, warming)).await?;
    let (rss_warm, before) = (server.resident_kb(), server.processor_time());
    let measured = stretch(warming, (options.rate * options.seconds) as usize);
    let (_, seen) = drive(clients, measured).await?;
    let took = measured.begins.elapsed();
    let used = server.processor_time().zip(before).map(|(after, before)| (after - before).as_secs_f64());
    report(options, &warmed, seen, took, [rss_start, rss_warm, server.resident_kb()], used)
}

/// Lets all clients send what is theirs in a stretch: every so-manieth request. Returns when all is answered.
async fn drive(
    clients: Vec<(Client, Hand)>,
    stretch: Stretch,
) -> Result<(Vec<(Client, Hand)>, Seen), Box<dyn Error>> {
    let (number, end) = (clients.len(), stretch.first + stretch.count);
    let mut tasks = Vec::new();
    for (n, (mut client, mut hand)) in clients.into_iter().enumerate() {
        tasks.push(tokio::spawn(async move {
            let mut seen = Seen::default();
            let first = stretch.first + (n + number - stretch.first % number) % number;
            for request in (first..end).step_by(number) {
                let (due, call) = (stretch.due(request), hand.call(request));
                tokio::time::sleep_until(due.into()).await;
                match client.call(call.tool, &call.arguments).await {
                    Ok(()) => seen.times.push((call.kind, due.elapsed())),
                    Err(error) => {
                        *seen.errors.entry(format!("{}: {error}", call.kind.name())).or_default() += 1;
                    }
                }
            }
            (client, hand, seen)
        }));
    }
    let (mut clients, mut all) = (Vec::new(), Seen::default());
    for task in tasks {
        let (client, hand, seen) = task.await?;
        clients.push((client, hand));
        all.times.extend(seen.times);
        for (error, count) in seen.errors {
            *all.errors.entry(error).or_default() += count;
        }
    }
    Ok((clients, all))
}

fn report(
    options: &Options,
    warmed: &Seen,
    seen: Seen,
    took: Duration,
    rss: [Option<u64>; 3],
    used: Option<f64>,
) -> Result<(), Box<dyn Error>> {
    let errors: usize = seen.errors.values().sum();
    let answered = seen.times.len();
    let of = |kind: Option<Kind>| {
        let times = seen.times.iter().filter(|(of, _)| kind.is_none_or(|kind| kind == *of));
        let times: Vec<_> = times.map(|(_, time)| *time).collect();
        (times.len(), Percentiles::of(times))
    };
    let achieved = answered as f64 / took.as_secs_f64();
    println!(
        "{} clients, {} requests per second for {} s over {} memories, below {}",
        options.connections,
        options.rate,
        options.seconds,
        options.memories,
        options.dir.display()
    );
    println!(
        "{answered} answered ({achieved:.1} per second), {errors} errors; in the warm-up {}",
        warmed.errors.values().sum::<usize>()
    );
    for (error, count) in &seen.errors {
        println!("  {count} x {error}");
    }
    let mut by_kind = serde_json::Map::new();
    let row = |name: &str, share: Option<usize>, (count, p): (usize, Percentiles)| -> Value {
        let share_of = share.map_or_else(String::new, |share| format!("{share} %"));
        println!(
            "{name:<19} {share_of:>5} {count:>7}   p50 {:>7.2} ms   p90 {:>7.2} ms   p99 {:>7.2} ms   max {:>7.2} ms",
            p.p50 / 1e3,
            p.p90 / 1e3,
            p.p99 / 1e3,
            p.max / 1e3
        );
        json!({"requests": count, "p50_ms": p.p50 / 1e3, "p90_ms": p.p90 / 1e3, "p99_ms": p.p99 / 1e3, "max_ms": p.max / 1e3})
    };
    let all = row("all", None, of(None));
    for (kind, share) in MIX {
        by_kind.insert(kind.name().to_owned(), row(kind.name(), Some(share), of(Some(kind))));
    }
    let [start, warm, end] = rss;
    let shown = |kb: Option<u64>| {
        kb.map_or_else(|| "unknown".to_owned(), |kb| format!("{:.1} MB", kb as f64 / 1024.0))
    };
    println!(
        "server resident: {} at first, {} after the warm-up, {} at the end",
        shown(start),
        shown(warm),
        shown(end)
    );
    let cores = used.map(|used| used / took.as_secs_f64());
    if let Some(cores) = cores {
        println!("server used {cores:.2} cores");
    }
    if options.json {
        println!(
            "{}",
            json!({
                "connections": options.connections, "rate": options.rate, "seconds": options.seconds,
                "memories": options.memories, "requests": answered + errors, "answered": answered,
                "achieved_rate": achieved, "errors": errors, "errors_by_kind": seen.errors,
                "warm_up_errors": warmed.errors, "latency": all, "by_kind": by_kind,
                "rss_start_kb": start, "rss_warm_kb": warm, "rss_end_kb": end, "server_cores": cores,
            })
        );
    }
    Ok(())
}
