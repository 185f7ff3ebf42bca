//! `warm-bench http`: the real server over HTTP, under the load of many clients.
//!
//! A server is started on a store of its own and each client opens a connection and a session. Requests leave at
//! times that are set beforehand, and each is timed from the moment at which it should have left: one that had to
//! wait because its connection was still busy counts that wait, so a server that falls behind can't hide it. Timers
//! wake on whole milliseconds, which adds up to one to every time that is reported.
//!
//! With `--compare-stdio`, one client over HTTP and one over stdio take turns instead, each timed from sending to
//! having read the answer.

mod client;
mod compare;
mod load;
mod profile;

use std::{
    error::Error,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

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
    /// How many clients there are, each with a connection and a session.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// How many requests a second all of them send.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// How long they send, in seconds.
    #[arg(long, default_value_t = 120)]
    seconds: u32,
    /// How long they send before that, in seconds, until caches are filled.
    #[arg(long, default_value_t = 20)]
    warm_up: u32,
    /// Compare one client over HTTP with one over stdio instead.
    #[arg(long)]
    compare_stdio: bool,
    /// How many stores and recalls each of the two makes.
    #[arg(long, default_value_t = 2_000)]
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
    // The clients share one thread, so that the server has the other cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if options.compare_stdio {
        compare::run(options, &binary, &runtime)
    } else {
        runtime.block_on(load::run(options, &binary))
    }
}

/// A server that this command started.
struct Server {
    child: Child,
    /// Address and port.
    address: String,
}

impl Server {
    fn start(binary: &Path, data: &Path) -> Result<Self, Box<dyn Error>> {
        let mut child = Command::new(binary)
            .args(["--transport", "http", "--bind", "127.0.0.1:0", "--data-dir"])
            .arg(data)
            .env_remove("WARM_MCP_TOKEN")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{} can't be started: {error}", binary.display()))?;
        let stdout = child.stdout.take();
        let mut server = Self { child, address: String::new() };
        let mut line = String::new();
        BufReader::new(stdout.ok_or("no pipe")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("warm-mcp listening on http://");
        let address = address.and_then(|rest| rest.strip_suffix("/mcp"));
        server.address = address.ok_or("the server did not say where it listens")?.to_owned();
        Ok(server)
    }

    /// Memory that it occupies, in kB, where the system tells.
    fn resident_kb(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse().ok()
    }

    /// Processor time that it has used, where the system tells.
    fn processor_time(&self) -> Option<Duration> {
        /// What Linux counts in, whatever the machine.
        const TICKS_PER_SECOND: u64 = 100;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name, in brackets, may hold anything; user and system time are the 12th and 13th field behind it.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut ticks = || fields.next()?.parse::<u64>().ok();
        Some(Duration::from_millis((ticks()? + ticks()?) * 1_000 / TICKS_PER_SECOND))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
