//! `warm-mcp`: a sealed, searchable memory for AI agents, served over the Model Context Protocol.
#![forbid(unsafe_code)]

mod changes;
mod cli;
mod client_log;
mod completion;
mod demo;
mod descriptors;
mod doctor;
mod greeting;
mod handler;
mod http;
mod limits;
mod load;
mod logging;
mod markdown;
mod medium;
mod memory;
mod misplaced;
mod namespaces;
mod options;
mod progress;
mod prompts;
mod repair;
mod resources;
mod serve;
mod service;
mod session;
mod shared;
mod signals;
mod subscriptions;
mod tools;
mod transport;

use std::{
    io::{IsTerminal, stdin},
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use http::options::Transport;
use misplaced::Given;
use options::{Doctor, Options};

/// What a person or a client typed.
#[derive(Parser)]
#[command(
    name = "warm-mcp",
    version,
    about = "A sealed, searchable memory for AI agents, served over the Model Context Protocol.",
    after_help = "Without a command it serves MCP on stdin and stdout; a client starts it that way.",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    action: Option<Action>,
}

/// What to do instead of serving.
#[derive(Clone, PartialEq, Eq, Subcommand)]
enum Action {
    #[command(flatten)]
    Memories(cli::Command),
    /// Show an agent's session on a fresh sealed store in a temporary folder
    Demo,
    /// Check the store and say what is wrong, if anything; makes and changes nothing
    Doctor(Doctor),
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let given = match (&cli.action, cli.options.http.transport()) {
        (Some(_), _) => Given::ToCommand,
        (None, Transport::Stdio) => Given::OnStdio,
        (None, Transport::Http) => Given::OverHttp,
    };
    let settled = misplaced::check(given, &matches).and_then(|note| {
        note.iter().for_each(|note| eprintln!("warm-mcp: {note}"));
        cli.options.settle()
    });
    let options = match settled {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("warm-mcp: {problem}");
            return ExitCode::FAILURE;
        }
    };
    logging::start(options.log());
    descriptors::ask_for_enough();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_are_taken_before_and_after_the_command() {
        for line in [["warm-mcp", "--data-dir", "d", "doctor"], ["warm-mcp", "doctor", "--data-dir", "d"]] {
            let cli = Cli::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"));
            assert!(matches!(cli.action, Some(Action::Doctor(_))));
            assert!(cli.options.data_dir().is_ok_and(|dir| dir.is_absolute() && dir.ends_with("d")));
        }
    }
}
