//! `warm-bench`: measurements of WARM.
//!
//! Owns the command line. Each command prints a table for people; with `--json` the last line of
//! stdout is one JSON object. Collections are never part of the project: their paths are options.
#![forbid(unsafe_code)]

mod collections;
mod engine;
mod forgetting;
mod http;
mod measures;
mod ops;
mod percentiles;
mod retrieval;
mod scan;
mod synthetic;
mod timing;
mod windows;
mod writers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measurements of WARM.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// What writes and recalls cost in the engine, beside a bare commit.
    Engine(engine::Options),
    /// What forgetting costs in a large store beside a small one, and how soon a large one opens.
    Forgetting(forgetting::Options),
    /// The server over HTTP under the load of many clients, or beside stdio.
    Http(http::Options),
    /// What the operations on hypervectors cost.
    Ops(ops::Options),
    /// How well recall finds what is relevant, on LoCoMo and Cranfield.
    Retrieval(retrieval::Options),
    /// The nearest codes: for one query, for many, and in two stages.
    Scan(scan::Options),
    /// Several processes on one store: what a guest's write costs, and how long a hand-over takes.
    Windows(windows::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Engine(options) => engine::run(&options),
        Command::Forgetting(options) => forgetting::run(&options),
        Command::Http(options) => http::run(&options),
        Command::Ops(options) => ops::run(&options),
        Command::Retrieval(options) => retrieval::run(&options),
        Command::Scan(options) => scan::run(&options),
        Command::Windows(options) => windows::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("warm-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
