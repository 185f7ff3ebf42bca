//! `warm-mcp recipients`: who may open the store.
//!
//! Owns what is typed and what is said. The change itself, and that it can be cut short, is the engine's. Every
//! command finishes a change first that was cut short, unless it may only read.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Subcommand};
use serde::Serialize;
use warm_engine::{
    Vault,
    recipients::{Keys, Recipient, RecipientError, RecipientKind},
};

use super::{
    Done, Stop,
    look::json,
    output::{Output, note},
};
use crate::options::Options;

/// What to do.
#[derive(Clone, PartialEq, Eq, Subcommand)]
pub enum Recipients {
    /// List who may open the store, with their public keys
    List(List),
    /// Let another age identity open the store
    Add(Add),
    /// Let one no more, and make a new store secret
    Remove(Remove),
}

/// How to list them.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct List {
    /// Print a JSON object a line
    #[arg(long)]
    json: bool,
}

/// A recipient, for a script.
#[derive(Serialize)]
struct Listed {
    name: String,
    kind: &'static str,
    public_key: String,
    label: String,
    added_at: String,
    /// Whether it opened the store for this listing.
    opened: bool,
    /// Whether the file that its passphrase opens is not there.
    file_missing: bool,
}

/// Whom to add, and how to call it.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Add {
    #[command(flatten)]
    who: Who,
    /// What to call it
    #[arg(long, value_name = "LABEL", default_value = "", hide_default_value = true)]
    label: String,
}

/// One of these.
#[derive(Args, Clone, PartialEq, Eq)]
#[group(required = true, multiple = false)]
struct Who {
    /// A public key, as age-keygen shows it
    #[arg(value_name = "AGE1...")]
    key: Option<String>,
    /// Take the public keys from this identity file
    #[arg(long, value_name = "FILE")]
    identity_file: Option<PathBuf>,
    /// Make an identity file here, and add it
    #[arg(long, value_name = "FILE")]
    new_identity: Option<PathBuf>,
}

/// Whom to remove.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Remove {
    /// Its label, its public key, or passphrase-N
    #[arg(value_name = "NAME")]
    name: String,
    /// Also when it is what opens the store now
    #[arg(long)]
    yes: bool,
}

impl Recipients {
    /// Whether it changes who may open the store.
    pub fn writes(&self) -> bool {
        !matches!(self, Self::List(_))
    }

    pub fn run(&self, options: &Options) -> Done {
        let mut keys = hold(options)?;
        match self {
            Self::List(list) => list.run(keys.vault())?,
            Self::Add(add) => add.run(&mut keys)?,
            Self::Remove(remove) => {
                let removed = keys.remove(&remove.name, remove.yes)?;
                say_removed(&removed, keys.vault())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Add {
    fn run(&self, keys: &mut Keys) -> Result<(), Stop> {
        let Who { key, identity_file, new_identity } = &self.who;
        let (added, file) = match (key, identity_file, new_identity) {
            (Some(key), ..) => (vec![keys.add(key, &self.label)?], None),
            (_, Some(file), _) => (keys.add_file(&full(file)?, &self.label)?, Some(file)),
            (_, _, Some(file)) => (keys.add_new_file(&full(file)?, &self.label)?, Some(file)),
            (None, None, None) => return Err(RecipientError::NotAKey.into()),
        };
        let mut out = Output::new();
        if let Some(file) = new_identity {
            out.line(format_args!(
                "Made the identity file {}: keep a copy of it in a safe place.",
                shown(file)
            ))?;
        }
        for recipient in &added {
            out.line(format_args!("Added {}.", described(recipient)))?;
        }
        let file = file.map_or_else(|| "FILE".to_owned(), shown);
        out.line(format_args!(
            "It opens the store from now on: --identity {file}. No memory was rewritten.\n\
             Backups and exports made before stay sealed to the identities of that time: for this one to open them \
             too, make new ones."
        ))?;
        out.end()
    }
}

/// The keys of the store that the options name, held by this process.
pub fn hold(options: &Options) -> Result<Keys, Stop> {
    let vault = Vault::open_existing(&options.vault()?).map_err(|error| error.to_string())?;
    let mut keys = Keys::hold(&vault)?;
    if options.offer.read_only {
        return Ok(keys);
    }
    match keys.finish() {
        Ok(false) => {}
        Ok(true) => note("A change of the keys that was cut short is finished now."),
        // What is asked for may be done all the same, or else says the same.
        Err(error) if keys.vault().has_unfinished_change() => note(format_args!(
            "warm-mcp: a change of the keys was cut short and is still to be finished: {error}"
        )),
        Err(error) => note(format_args!("warm-mcp: {error}")),
    }
    Ok(keys)
}

impl List {
    fn run(&self, vault: &Vault) -> Result<(), Stop> {
        let mut out = Output::new();
        for recipient in vault.recipients() {
            let missing = vault.missing_file(recipient).map_err(|error| error.to_string())?;
            let listed = Listed {
                name: recipient.name(),
                kind: match recipient.kind() {
                    RecipientKind::Identity => "identity",
                    RecipientKind::Passphrase(_) => "passphrase",
                },
                public_key: recipient.public_key(),
                label: recipient.label().to_owned(),
                added_at: recipient.added_at(),
                opened: vault.opened_by() == Some(recipient),
                file_missing: missing.is_some(),
            };
            out.line(if self.json { json(&listed)? } else { listed.line() })?;
        }
        out.end()
    }
}

impl Listed {
    fn line(&self) -> String {
        let what = if self.kind == "identity" { self.kind } else { &self.name };
        let label = if self.label.is_empty() { "-" } else { &self.label };
        let opened = if self.opened { "  (opened the store now)" } else { "" };
        let missing = if self.file_missing { "  (opens nothing: its file is missing)" } else { "" };
        let (key, added) = (&self.public_key, self.added_at.get(..10).unwrap_or(&self.added_at));
        format!("{what:<12}  {key}  {added}  {label}{opened}{missing}")
    }
}

/// Says what the removal of a recipient means and what to do next.
pub fn say_removed(removed: &Recipient, vault: &Vault) -> Result<(), Stop> {
    let mut out = Output::new();
    out.line(format_args!("Removed {}.", described(removed)))?;
    out.line(new_secret())?;
    let names: Vec<_> =
        vault.recipients().iter().map(|recipient| format!("  {}", recipient.name())).collect();
    out.line(format_args!("The store opens with:\n{}", names.join("\n")))?;
    if vault.opened_by().is_none() {
        out.line("What opened it just now does so no more: give the clients --identity FILE or --passphrase-env VAR.")?;
    }
    out.end()
}

/// A file by its whole name, so that it has a folder.
fn full(file: &Path) -> Result<PathBuf, Stop> {
    std::path::absolute(file).map_err(|error| Stop::Said(format!("{}: {error}", file.display())))
}

/// What a change of the store secret means.
pub fn new_secret() -> &'static str {
    "The store has a new secret, and no memory was rewritten. A copy of the folder `keys` made before opens nothing \
     that is kept or written from now on.\n\
     Backups and exports made before stay sealed to whoever could open the store then, and so does a copy of the whole \
     data folder: make a new backup, and delete those."
}

/// A recipient in words.
pub fn described(recipient: &Recipient) -> String {
    let (name, key) = (recipient.name(), recipient.public_key());
    if name == key { key } else { format!("{name} ({key})") }
}

fn shown(file: &PathBuf) -> String {
    std::path::absolute(file).unwrap_or_else(|_| file.clone()).display().to_string()
}

impl From<RecipientError> for Stop {
    fn from(error: RecipientError) -> Self {
        Self::Said(error.to_string())
    }
}
