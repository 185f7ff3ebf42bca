//! `warm-bench`: measurements of WARM.
//!
//! Owns the command line. Each command prints a table for people; with `--json` the last line of
//! stdout is one JSON object. Collections are never part of the project: their paths are options.
#![forbid(unsafe_code)]

mod collections;
mod engine;
mod measures;
mod retrieval;

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
    /// How well recall finds what is relevant, on LoCoMo and Cranfield.
    Retrieval(retrieval::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Engine(options) => engine::run(&options),
        Command::Retrieval(options) => retrieval::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("warm-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
