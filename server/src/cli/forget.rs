//! `warm-mcp forget`: memories that are to be gone for good.
//!
//! Nothing is forgotten before its owner was told what, and said yes.

use std::process::ExitCode;

use clap::Args;
use warm_engine::contract::{self, ErrorCode, Get, List};

use super::{
    Done, Stop,
    backup::counted,
    output::Output,
    receipt,
    store::{Access, open, other_answer},
};
use crate::{
    memory::{Memory, Reply, Request},
    options::Options,
    repair::told_to,
};

/// What to forget.
#[derive(Args, Clone, PartialEq, Eq)]
#[command(
    after_help = "A path that is a folder is forgotten with --prefix PATH/. Backups and exports that were made before still \
                  hold what is forgotten; the receipt names those that are known."
)]
pub struct Forget {
    /// Keys of memories, and paths of files below /memories
    #[arg(value_name = "KEY", required_unless_present = "prefix", conflicts_with = "prefix")]
    keys: Vec<String>,
    /// Every memory whose name starts with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Do it without asking
    #[arg(long)]
    yes: bool,
}

impl Forget {
    pub fn run(&self, options: &Options) -> Done {
        let memory = open(options, Access::Existing)?;
        let mut out = Output::new();
        let (found, what) = match &self.prefix {
            Some(prefix) => {
                let found = count(&*memory, prefix)?;
                (found, format!("{} whose name starts with {prefix}", counted(found)))
            }
            None => {
                let missing = self.missing(&*memory)?;
                if let Some(key) = missing.first() {
                    return Err(Stop::Said(format!(
                        "there is no memory {key}: nothing was forgotten. See `warm-mcp list`; a folder goes with \
                         --prefix."
                    )));
                }
                (self.keys.len() as u64, self.keys.join(", "))
            }
        };
        if found == 0 {
            out.line(format_args!("There is none: {what}. Nothing was forgotten."))?;
            out.end()?;
            return Ok(ExitCode::SUCCESS);
        }
        if !self.yes && !told_to(&format!("Forget {what} for good?")) {
            return Err(Stop::Said(format!(
                "{what}: nothing was forgotten. To forget them for good, add --yes."
            )));
        }
        let request = contract::Forget {
            keys: self.prefix.is_none().then(|| self.keys.clone()),
            prefix: self.prefix.clone(),
            confirm: self.prefix.is_some(),
            ..contract::Forget::default()
        };
        let Reply::Forget(done) = memory.call(Request::Forget(request))? else {
            return Err(other_answer().into());
        };
        out.line(format_args!("Forgotten: {}.", counted(done.forgotten)))?;
        if let Some(receipt) = &done.receipt {
            receipt::say(&mut out, receipt, options)?;
        }
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }

    fn missing(&self, memory: &dyn Memory) -> Result<Vec<&String>, Stop> {
        let mut missing = Vec::new();
        for key in &self.keys {
            match memory.call(Request::Get(Get { key: key.clone() })) {
                Ok(_) => {}
                Err(failure) if failure.code == ErrorCode::NotFound => missing.push(key),
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(missing)
    }
}

fn count(memory: &dyn Memory, prefix: &str) -> Result<u64, Stop> {
    let list = List { prefix: Some(prefix.to_owned()), limit: Some(1), ..List::default() };
    match memory.call(Request::List(list))? {
        Reply::List(listing) => Ok(listing.total),
        _ => Err(other_answer().into()),
    }
}
