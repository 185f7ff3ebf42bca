//! `warm-mcp namespaces`: which namespaces have a store, and how much is in each.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use warm_engine::{Namespaces, OpenError, Vault};

use super::{
    Done, Stop,
    backup::counted,
    output::{Output, note},
    store::{open_if_there, stats},
};
use crate::options::Options;

/// How to list them.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct List {
    /// Print a JSON object a line
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self, options: &Options) -> Done {
        let mut out = Output::new();
        let mut failed = false;
        for name in all(options)? {
            let looked = open_if_there(options, &name).and_then(|memory| match memory {
                Some(memory) => stats(&*memory).map(Some).map_err(|failure| failure.message),
                None => Ok(None),
            });
            match looked {
                Ok(Some(stats)) if self.json => out.line(json!({
                    "namespace": name, "memories": stats.memories, "files": stats.files,
                    "text_bytes": stats.text_bytes, "store_bytes": stats.store_bytes,
                }))?,
                Ok(Some(stats)) => out.line(format_args!(
                    "{:>14} {:>12} bytes of text {:>12} on disk  {name}",
                    counted(stats.memories),
                    stats.text_bytes,
                    stats.store_bytes
                ))?,
                Ok(None) => {}
                Err(problem) => {
                    failed = true;
                    note(format_args!("warm-mcp: namespace {name}: {problem}"));
                }
            }
        }
        out.end()?;
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// The names of all namespaces that have a store; says on stderr when there are more.
pub fn all(options: &Options) -> Result<Vec<String>, Stop> {
    let vault = match Vault::open_existing(&options.vault()?) {
        Err(OpenError::NoStore(_)) => return Ok(Vec::new()),
        opened => opened.map_err(|error| Stop::Said(error.to_string()))?,
    };
    let found = Namespaces::of(&vault).map_err(|error| Stop::Said(error.to_string()))?;
    if found.nameless > 0 {
        note(format_args!(
            "warm-mcp: {} more can't be named: their names are written down when they are next served, with \
             --namespace NAME.",
            found.nameless
        ));
    }
    Ok(found.names)
}
