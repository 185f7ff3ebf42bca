//! `warm-mcp`: a sealed, searchable memory for AI agents, served over the Model Context Protocol.
#![forbid(unsafe_code)]

mod cli;
mod demo;
mod doctor;
mod greeting;
mod handler;
mod limits;
mod load;
mod logging;
mod memory;
mod namespaces;
mod options;
mod repair;
mod serve;
mod service;
mod shared;
mod tools;
mod transport;

use std::{
    io::{IsTerminal, stdin},
    process::ExitCode,
};

use clap::Parser;

use options::{Action, Cli};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let options = cli.options;
    logging::start(options.log());
    let done = match cli.action {
        Some(Action::Demo) => demo::run(&mut std::io::stdout().lock()),
        Some(Action::Doctor(how)) => return doctor::run(&options, how),
        Some(Action::Memories(command)) => return cli::run(&command, &options),
        None if stdin().is_terminal() => {
            eprintln!("{}", greeting::text(&options));
            Ok(())
        }
        None => serve::serve(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("warm-mcp: {problem}");
            ExitCode::FAILURE
        }
    }
}
