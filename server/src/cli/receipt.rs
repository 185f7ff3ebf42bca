//! `warm-mcp receipt`: what the store signed when it forgot.
//!
//! Owns what is typed and what is said. Checking a receipt needs no store; that is the engine's, and
//! `docs/deletion.md` says what it shows.

use std::{fs::File, io, io::Read, path::PathBuf, process::ExitCode};

use clap::{Args, Subcommand};
use warm_engine::{
    contract::{AskReceipts, CopyKind, Receipt, ReceiptFile},
    receipt::verify,
};

use super::{
    Done, Stop,
    backup::counted,
    look::json,
    output::Output,
    store::{Access, open, other_answer},
};
use crate::{
    memory::{Reply, Request},
    options::Options,
    repair::command_line,
};

/// Longest file that is read as a receipt: more than one for a million memories takes.
const LONGEST: u64 = 1 << 30;

/// What to do.
#[derive(Clone, PartialEq, Eq, Subcommand)]
pub enum Receipts {
    /// List receipts, the latest first, and the public key that they are checked with
    List(List),
    /// Print a receipt with its proofs, to keep or to give away
    Show(Show),
    /// Check a receipt that was printed; needs no store
    Verify(Verify),
}

/// How to list them.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct List {
    /// Most receipts
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u64,
    /// Only those before this number in the log
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
    /// Print a JSON object a line
    #[arg(long)]
    json: bool,
}

/// Which to show.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Show {
    /// Its id, the first eight or more digits of it, or its number in the log
    #[arg(value_name = "ID")]
    id: String,
}

/// What to check, and against what.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Verify {
    /// A receipt as `receipt show` prints it; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The store's public key, as `receipt list` and `stats` show it; without it the receipt is only checked against
    /// the key that it names itself
    #[arg(long, value_name = "HEX")]
    public_key: Option<String>,
}

impl Receipts {
    pub fn run(&self, options: &Options) -> Done {
        match self {
            Self::List(list) => list.run(options),
            Self::Show(show) => show.run(options),
            Self::Verify(verify) => verify.run(),
        }
    }
}

impl List {
    fn run(&self, options: &Options) -> Done {
        let memory = open(options, Access::Existing)?;
        let ask = AskReceipts::List { before: self.before, limit: self.limit };
        let Reply::Receipts(found) = memory.call(Request::Receipts(ask))? else {
            return Err(other_answer().into());
        };
        let mut out = Output::new();
        for receipt in &found.receipts {
            if self.json {
                out.line(json(receipt)?)?;
            } else {
                out.line(format_args!(
                    "{:>6}  {}  {}  {} forgotten{}",
                    receipt.log_index,
                    receipt.erased_at,
                    &receipt.id[..16],
                    counted(receipt.count),
                    match receipt.copies.len() {
                        0 => String::new(),
                        1 => ", 1 copy may still hold them".to_owned(),
                        several => format!(", {several} copies may still hold them"),
                    }
                ))?;
            }
        }
        if !self.json {
            let shown = found.receipts.len();
            out.line(format_args!("{shown} of {} receipts. Public key: {}", found.total, found.public_key))?;
        }
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    fn run(&self, options: &Options) -> Done {
        let memory = open(options, Access::Existing)?;
        let ask = AskReceipts::One(self.id.clone());
        let Reply::Receipt(file) = memory.call(Request::Receipts(ask))? else {
            return Err(other_answer().into());
        };
        let mut out = Output::new();
        out.line(serde_json::to_string_pretty(&file).map_err(|error| Stop::Said(error.to_string()))?)?;
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Verify {
    fn run(&self) -> Done {
        let file = self.read()?;
        let refused = |why: &dyn std::fmt::Display| {
            Stop::Said(format!("{}: this receipt is not good: {why}.", self.file.display()))
        };
        verify(&file, self.public_key.as_deref()).map_err(|why| refused(&why))?;
        let receipt = &file.receipt;
        let mut out = Output::new();
        out.line(format_args!(
            "Good: at {} the store with the public key {} forgot {}.",
            receipt.erased_at,
            file.public_key,
            counted(receipt.count)
        ))?;
        let proven = file.proof.versions.len();
        out.line(format_args!(
            "It shows that {proven} stored {} in the tree of versions before, and {} in the one after.",
            if proven == 1 { "version was" } else { "versions were" },
            if proven == 1 { "is not" } else { "are not" },
        ))?;
        for version in &file.proof.versions {
            out.line(format_args!("  version {} at place {}", version.id, version.place))?;
        }
        out.line(format_args!("It is number {} in the store's log.", receipt.log_index))?;
        if (proven as u64) < receipt.count {
            out.line("The others were written and forgotten in one commit, and never stored.")?;
        }
        copies(&mut out, receipt)?;
        if self.public_key.is_none() {
            out.line(
                "Compare the public key with the one that you know: anyone can sign with a key of their own.",
            )?;
        }
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }

    fn read(&self) -> Result<ReceiptFile, Stop> {
        let said = |why: &dyn std::fmt::Display| {
            Stop::Said(format!(
                "{} can't be read as a receipt: {why}. Give a file that `warm-mcp receipt show` printed.",
                self.file.display()
            ))
        };
        let mut text = String::new();
        let source: Result<Box<dyn Read>, io::Error> = match self.file.to_str() {
            Some("-") => Ok(Box::new(io::stdin().lock())),
            _ => File::open(&self.file).map(|file| Box::new(file) as Box<dyn Read>),
        };
        let read = source.and_then(|source| source.take(LONGEST).read_to_string(&mut text));
        read.map_err(|error| said(&error))?;
        serde_json::from_str(&text).map_err(|error| said(&error))
    }
}

/// Says what the owner should know of a receipt that was just made.
pub fn say(out: &mut Output, receipt: &Receipt, options: &Options) -> Result<(), Stop> {
    let show = command_line(&format!("receipt show {}", &receipt.id[..16]), options);
    out.line(format_args!(
        "Receipt {}. To see its proofs:
  {show}",
        receipt.id
    ))?;
    copies(out, receipt)
}

fn copies(out: &mut Output, receipt: &Receipt) -> Result<(), Stop> {
    if receipt.copies.is_empty() {
        return Ok(());
    }
    out.line("Copies that were made before and may still hold it:")?;
    for copy in &receipt.copies {
        let kind = match copy.kind {
            CopyKind::Backup => "backup",
            CopyKind::Export => "export",
            CopyKind::Quarantine => "set aside by a repair",
        };
        out.line(format_args!("  {} {kind}: {}", copy.made_at, copy.place))?;
    }
    Ok(())
}
