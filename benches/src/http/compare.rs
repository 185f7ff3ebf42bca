//! One client over HTTP and one over stdio, each with a server and a store of its own, taking turns.

use std::{
    error::Error,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{Options, Server, client::Client};
use crate::{
    engine::note,
    percentiles::Percentiles,
    windows::{Window, fill},
};

pub fn run(options: &Options, binary: &Path, runtime: &Runtime) -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir_in(&options.dir)?;
    let (of_http, of_stdio) = (home.path().join("http"), home.path().join("stdio"));
    fill(&of_http, options.memories)?;
    fill(&of_stdio, options.memories)?;
    let server = Server::start(binary, &of_http)?;
    let mut client = runtime.block_on(Client::open(&server.address))?;
    let mut window = Window::start(binary, &of_stdio)?;
    let mut http = |tool: &str, arguments: &Value| -> Result<Duration, Box<dyn Error>> {
        let started = Instant::now();
        runtime.block_on(client.call(tool, arguments))?;
        Ok(started.elapsed())
    };
    let mut times: [Vec<Duration>; 4] = Default::default();
    for n in 0..options.rounds {
        let memory = json!({"text": note(n), "key": format!("note {}", n % 100)});
        let question = json!({"query": format!("who asked for a review of subject {}?", n % 97)});
        times[0].push(http("remember", &memory)?);
        times[1].push(window.timed("remember", &memory)?);
        times[2].push(http("recall", &question)?);
        times[3].push(window.timed("recall", &question)?);
    }
    let [store_http, store_stdio, recall_http, recall_stdio] = times.map(Percentiles::of);
    println!("{} memories, {} rounds, below {}", options.memories, options.rounds, options.dir.display());
    for (name, http, stdio) in [("store", &store_http, &store_stdio), ("recall", &recall_http, &recall_stdio)]
    {
        println!(
            "{name:<7} HTTP p50 {:>7.3} ms p99 {:>7.3} ms   stdio p50 {:>7.3} ms p99 {:>7.3} ms   HTTP adds {:>6.3} ms",
            http.p50 / 1e3,
            http.p99 / 1e3,
            stdio.p50 / 1e3,
            stdio.p99 / 1e3,
            (http.p50 - stdio.p50) / 1e3
        );
    }
    if options.json {
        let pair = |http: &Percentiles, stdio: &Percentiles| {
            json!({"http_p50_ms": http.p50 / 1e3, "stdio_p50_ms": stdio.p50 / 1e3,
                "added_p50_ms": (http.p50 - stdio.p50) / 1e3})
        };
        println!(
            "{}",
            json!({"memories": options.memories, "rounds": options.rounds,
                "store": pair(&store_http, &store_stdio), "recall": pair(&recall_http, &recall_stdio)})
        );
    }
    Ok(())
}
