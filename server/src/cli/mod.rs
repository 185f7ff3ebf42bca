//! The commands for the owner of a store: look at memories, edit them, bring them in and take them out.
//!
//! Owns the list of commands and how one ends. Each command is thin, over the
//! [`Memory`](crate::memory::Memory) trait, so that it does the same whichever process has the store
//! open. What is printed on stderr names files and keys, never a memory's text.

mod backup;
mod edit;
mod export;
mod forget;
mod import;
mod look;
mod namespaces;
mod output;
mod passphrase;
mod receipt;
mod recipients;
mod restore;
mod store;
mod target;

use std::process::ExitCode;

use clap::Subcommand;

use crate::{memory::Failure, options::Options, signals};

/// What the owner can do at a terminal or in a script.
#[derive(Clone, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Show a file or folder of the memory tree, or another memory's text
    View(look::View),
    /// Find the memories that answer a question
    Recall(look::Recall),
    /// List memories by name
    List(look::List),
    /// List the namespaces that have a store
    Namespaces(namespaces::List),
    /// Change a memory in your editor ($VISUAL or $EDITOR)
    Edit(edit::Edit),
    /// Forget memories for good
    Forget(forget::Forget),
    /// Take Markdown and text files into the memory tree
    Import(import::Import),
    /// Write all memories of the namespace to a folder or file that others can read
    Export(export::Export),
    /// Write all memories of the namespace to one sealed file
    Backup(backup::Backup),
    /// Put the memories of a backup back
    Restore(restore::Restore),
    /// Say who may open the store, and change that
    #[command(subcommand)]
    Recipients(recipients::Recipients),
    /// Show and check receipts for what was forgotten
    #[command(subcommand)]
    Receipt(receipt::Receipts),
    /// Set, change or remove a passphrase that opens the store
    #[command(subcommand)]
    Passphrase(passphrase::Passphrases),
}

impl Command {
    /// Whether it may change a store.
    fn writes(&self) -> bool {
        match self {
            Self::View(_)
            | Self::Recall(_)
            | Self::List(_)
            | Self::Namespaces(_)
            | Self::Export(_)
            | Self::Backup(_)
            | Self::Receipt(_) => false,
            Self::Edit(_) | Self::Forget(_) => true,
            Self::Recipients(recipients) => recipients.writes(),
            Self::Passphrase(_) => true,
            Self::Import(import) => !import.dry_run,
            Self::Restore(restore) => !restore.dry_run,
        }
    }
}

/// Why a command ended early.
pub enum Stop {
    /// For a person to read: what happened, then what to do next.
    Said(String),
    /// Whoever reads stdout has stopped reading.
    Unheard,
}

impl From<String> for Stop {
    fn from(problem: String) -> Self {
        Self::Said(problem)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Said(failure.message)
    }
}

/// How a command ends.
pub type Done = Result<ExitCode, Stop>;

/// Runs a command to its end.
pub fn run(command: &Command, options: &Options) -> ExitCode {
    signals::survive_full_files();
    if options.offer.read_only && command.writes() {
        output::note(
            "warm-mcp: --read-only (WARM_MCP_READ_ONLY) forbids this command, which would write: leave it out.",
        );
        return ExitCode::FAILURE;
    }
    let done = match command {
        Command::View(view) => view.run(options),
        Command::Recall(recall) => recall.run(options),
        Command::List(list) => list.run(options),
        Command::Namespaces(list) => list.run(options),
        Command::Edit(edit) => edit.run(options),
        Command::Forget(forget) => forget.run(options),
        Command::Import(import) => import.run(options),
        Command::Export(export) => export.run(options),
        Command::Backup(backup) => backup.run(options),
        Command::Restore(restore) => restore.run(options),
        Command::Recipients(recipients) => recipients.run(options),
        Command::Passphrase(passphrases) => passphrases.run(options),
        Command::Receipt(receipts) => receipts.run(options),
    };
    match done {
        Ok(code) => code,
        Err(Stop::Unheard) => ExitCode::SUCCESS,
        Err(Stop::Said(problem)) => {
            output::note(format_args!("warm-mcp: {problem}"));
            ExitCode::FAILURE
        }
    }
}
