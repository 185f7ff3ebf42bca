//! The options and their environment.
//!
//! Owns what can be chosen and how each choice is found: an option, else its `WARM_MCP_*`
//! variable, else a default. Opens nothing and makes nothing.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, ValueEnum};
use warm_engine::{Passphrase, VaultOptions, contract::Limits};

use crate::{
    http::options::HttpOptions,
    limits::LimitOptions,
    namespaces::options::{Namespace, NamespaceOptions},
    tools::OfferOptions,
};

/// What the doctor is to do beyond looking.
#[derive(Clone, Copy, PartialEq, Eq, Args)]
pub struct Doctor {
    /// Say how what is wrong would be put right, and do it once told
    #[arg(long)]
    pub repair: bool,

    /// With --repair: do it without asking
    #[arg(long, requires = "repair")]
    pub yes: bool,
}

/// Where the store is, what opens it, and how the server behaves.
#[derive(Args)]
#[command(next_help_heading = "Store and server")]
pub struct Options {
    /// Folder of the store [default: the user's data folder, in `warm`]
    #[arg(long, global = true, value_name = "DIR", env = "WARM_MCP_DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// age identity file that opens the store [default: the one made with the store]
    #[arg(long, global = true, value_name = "FILE", env = "WARM_MCP_IDENTITY")]
    pub identity: Option<PathBuf>,

    /// Name of the environment variable that holds the store's passphrase
    #[arg(long, global = true, value_name = "VAR", env = "WARM_MCP_PASSPHRASE_ENV")]
    pub passphrase_env: Option<String>,

    #[command(flatten)]
    pub namespaces: NamespaceOptions,

    /// What they come to; see [`Options::settle`].
    #[arg(skip)]
    namespace: Namespace,

    #[command(flatten)]
    pub http: HttpOptions,

    /// What to log on stderr: off, error, warn, info, debug or trace; never memory text [default: warn]
    #[arg(long, global = true, value_name = "LEVEL", env = "WARM_MCP_LOG", value_parser = or_empty(log_level))]
    log: Option<Chosen<LogLevel>>,

    #[command(flatten)]
    pub offer: OfferOptions,

    #[command(flatten)]
    limits: LimitOptions,
}

/// A client's set-up form may leave a variable set but empty, which means that nothing was chosen.
pub type Chosen<T> = Option<T>;

pub fn or_empty<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<Chosen<T>, String> + Clone + Send + Sync + 'static {
    move |text| if text.is_empty() { Ok(None) } else { parse(text).map(Some) }
}

/// Reads a whole number within bounds.
pub fn within(least: u64, most: u64) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("give a whole number from {least} to {most}"))
    }
}

fn log_level(text: &str) -> Result<LogLevel, String> {
    LogLevel::from_str(text, false).map_err(|_| "give off, error, warn, info, debug or trace".to_owned())
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Options {
    /// Finds out which namespace is meant. Errors when the options contradict each other.
    pub fn settle(self) -> Result<Self, String> {
        Ok(Self { namespace: self.namespaces.namespace()?, ..self })
    }

    /// The store's folder, as a full path. Errors when none was named and the user has no home folder.
    pub fn data_dir(&self) -> Result<PathBuf, String> {
        if let Some(dir) = named(&self.data_dir) {
            return full(dir);
        }
        default_data_dir(|name| std::env::var_os(name)).ok_or_else(|| {
            "there is no folder to keep the store in, since HOME is not set.\n\
             Name one with --data-dir DIR or WARM_MCP_DATA_DIR."
                .to_owned()
        })
    }

    /// What opens the vault. Errors when the passphrase's variable is not set.
    pub fn vault(&self) -> Result<VaultOptions, String> {
        let passphrase = match self.passphrase_env.as_deref() {
            None | Some("") => None,
            Some(name) => Some(passphrase("--passphrase-env", name)?),
        };
        let identity = named(&self.identity).map(full).transpose()?;
        Ok(VaultOptions { data_dir: self.data_dir()?, identity, passphrase })
    }

    /// How much is logged.
    pub fn log(&self) -> LogLevel {
        self.log.flatten().unwrap_or(LogLevel::Warn)
    }

    /// The options that say which store is meant, as they were given.
    pub fn store_arguments(&self) -> Vec<String> {
        let path =
            |path: &Option<PathBuf>| named(path).map(|path| full(path).unwrap_or_else(|_| path.clone()));
        let shown = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("--data-dir", path(&self.data_dir).map(shown)),
            ("--identity", path(&self.identity).map(shown)),
            ("--passphrase-env", self.passphrase_env.clone().filter(|name| is_variable(name))),
        ]
        .into_iter()
        .filter_map(|(option, value)| Some([option.to_owned(), value?]))
        .flatten()
        .chain(self.namespace.arguments())
        .collect()
    }

    /// The namespace of a call that names none, and why it is this one.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The limits of every namespace.
    pub fn limits(&self) -> Limits {
        self.limits.limits()
    }
}

/// The path that was named, unless it is empty.
fn named(path: &Option<PathBuf>) -> Option<&PathBuf> {
    path.as_ref().filter(|path| !path.as_os_str().is_empty())
}

/// A full path says where something is whatever folder a client starts the server in.
fn full(path: &PathBuf) -> Result<PathBuf, String> {
    std::path::absolute(path)
        .map_err(|error| format!("the folder of {} is not known: {error}.", path.display()))
}

/// The passphrase in the variable that an option names.
pub fn passphrase(option: &str, name: &str) -> Result<Passphrase, String> {
    if !is_variable(name) {
        // It may be the passphrase itself: say nothing of it.
        return Err(format!(
            "{option} takes the name of an environment variable, not the passphrase.\n\
             Put the passphrase in a variable and give that variable's name."
        ));
    }
    let problem = match std::env::var(name) {
        Ok(value) if !value.is_empty() => return Ok(Passphrase::new(value)),
        Ok(_) => "is empty",
        Err(std::env::VarError::NotPresent) => "is not set",
        Err(std::env::VarError::NotUnicode(_)) => "is not UTF-8 text",
    };
    Err(format!(
        "{option} names the variable {name}, which {problem}.\n\
         Set {name} to the passphrase in the environment that starts warm-mcp."
    ))
}

fn is_variable(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn default_data_dir(env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = if cfg!(windows) {
        folder("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        folder("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        folder("XDG_DATA_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("warm"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parsed(line: &[&str]) -> Options {
        use clap::Parser;
        Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}")).options
    }

    #[cfg(all(unix, not(target_os = "macos")))]
    #[test]
    fn data_folder_follows_xdg_then_home_and_ignores_relative_ones() {
        let with = |xdg: Option<&'static str>, home: Option<&'static str>| {
            default_data_dir(move |name| match name {
                "XDG_DATA_HOME" => xdg.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            })
        };
        assert_eq!(with(Some("/data"), Some("/home/ann")), Some("/data/warm".into()));
        assert_eq!(with(Some("data"), Some("/home/ann")), Some("/home/ann/.local/share/warm".into()));
        assert_eq!(with(None, Some("/home/ann")), Some("/home/ann/.local/share/warm".into()));
        assert_eq!(with(None, None), None);
    }

    #[test]
    fn what_is_set_but_empty_was_not_chosen() {
        let line =
            ["warm-mcp", "--log", "", "--max-text-bytes", "", "--namespace", "", "--passphrase-env", ""];
        let options = parsed(&line);
        assert_eq!(options.log(), LogLevel::Warn);
        assert_eq!(options.limits(), Limits::default());
        assert_eq!(options.namespaces.namespace(), Ok(Namespace::default()));
        assert!(options.vault().is_ok_and(|vault| vault.passphrase.is_none()));
    }

    #[test]
    fn a_passphrase_in_place_of_a_variables_name_is_not_repeated() {
        let line = ["warm-mcp", "--data-dir", "d", "--passphrase-env", "correct horse"];
        let options = parsed(&line);
        let refused = options.vault().err().unwrap_or_default();
        assert!(refused.contains("not the passphrase") && !refused.contains("horse"), "{refused}");
        assert!(options.store_arguments().iter().all(|argument| !argument.contains("horse")));
    }
}
