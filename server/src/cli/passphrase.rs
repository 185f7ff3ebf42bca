//! `warm-mcp passphrase`: a passphrase that opens the store.
//!
//! Owns what is typed and what is said. A passphrase stands in a variable whose name is given, never on the
//! command line, where other users of the machine see it.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use warm_engine::Passphrase;

use super::{
    Done,
    output::Output,
    recipients::{described, hold, new_secret, say_removed},
};
use crate::options::{self, Options};

/// What to do.
#[derive(Clone, PartialEq, Eq, Subcommand)]
pub enum Passphrases {
    /// Let one more passphrase open the store
    Add(New),
    /// Put another passphrase in the place of one, and make a new store secret
    Change(Swap),
    /// Let a passphrase open the store no more, and make a new store secret
    Remove(Remove),
}

/// The new passphrase.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct New {
    /// Name of the environment variable that holds the new passphrase, of at least 8 characters
    #[arg(long, value_name = "VAR")]
    new_passphrase_env: String,
}

/// Which passphrase becomes which.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Swap {
    /// The passphrase to replace, where there are several [default: the one that opens the store]
    #[arg(value_name = "passphrase-N")]
    name: Option<String>,
    #[command(flatten)]
    new: New,
}

/// Which passphrase to remove.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Remove {
    /// The passphrase to remove, where there are several
    #[arg(value_name = "passphrase-N")]
    name: Option<String>,
    /// Also when it is what opens the store now
    #[arg(long)]
    yes: bool,
}

impl New {
    fn passphrase(&self) -> Result<Passphrase, String> {
        options::passphrase("--new-passphrase-env", &self.new_passphrase_env)
    }
}

impl Passphrases {
    pub fn run(&self, options: &Options) -> Done {
        match self {
            Self::Add(new) => {
                let passphrase = new.passphrase()?;
                let added = hold(options)?.add_passphrase(&passphrase)?;
                let mut out = Output::new();
                out.line(format_args!(
                    "Added {}. It opens the store from now on: --passphrase-env VAR. No memory was rewritten.\n\
                     Backups and exports made before stay sealed as they are; one that is made with --passphrase-env \
                     is sealed to that passphrase alone.",
                    described(&added)
                ))?;
                out.end()?;
            }
            Self::Change(Swap { name, new }) => {
                let passphrase = new.passphrase()?;
                let changed = hold(options)?.change_passphrase(name.as_deref(), &passphrase)?;
                let mut out = Output::new();
                out.line(format_args!("The passphrase is changed: the new one is {}.", described(&changed)))?;
                out.line(new_secret())?;
                out.line("Put the new passphrase in the variable that the clients' --passphrase-env names.")?;
                out.end()?;
            }
            Self::Remove(Remove { name, yes }) => {
                let mut keys = hold(options)?;
                let removed = keys.remove_passphrase(name.as_deref(), *yes)?;
                say_removed(&removed, keys.vault())?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
