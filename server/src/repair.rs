//! `warm-mcp doctor --repair`: what it would do, and doing it when told.
//!
//! Owns the plan, the question and the order. What is wrong is found by the [`doctor`](crate::doctor) and
//! the engine. Nothing is touched without `--yes` or a y at a terminal, nor while a server has a store open.

use std::{
    fmt,
    io::{self, BufRead, IsTerminal, Write},
    path::PathBuf,
};

use warm_engine::{
    Vault,
    repair::{self, Flaw},
};

use crate::{
    greeting::{program, shell_word},
    options::Options,
};

/// One thing to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Close a file or folder to other users.
    Close {
        path: PathBuf,
        mode: u32,
    },
    Mend {
        flaw: Flaw,
        namespace: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Close { path, mode } => {
                write!(f, "close {} to other users of this machine (mode {mode:03o})", path.display())
            }
            Self::Mend { flaw, .. } => f.write_str(&flaw.remedy()),
        }
    }
}

impl Step {
    fn run(&self, vault: &Vault) -> Result<(), String> {
        match self {
            Self::Close { path, mode } => close(path, *mode).map_err(|error| error.to_string()),
            Self::Mend { flaw, namespace } => flaw.mend(vault, namespace).map_err(|error| error.to_string()),
        }
    }

    /// Whether memories are missing once it is done.
    fn calls_for_a_backup(&self) -> bool {
        matches!(self, Self::Mend { flaw: Flaw::DamagedStore(_) | Flaw::LostStore(_), .. })
    }
}

#[cfg(unix)]
fn close(path: &std::path::Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn close(_path: &std::path::Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Shows the plan, and carries it out when told. Returns whether anything was touched.
pub fn offer(steps: &[Step], vault: &Vault, options: &Options, yes: bool) -> bool {
    match repair::in_use(vault) {
        Ok(false) => {}
        Ok(true) => {
            println!(
                "\nA running warm-mcp has a store in {} open, so nothing is touched.\n\
                 Close the clients that use it, then run this again.",
                vault.data_dir().display()
            );
            return false;
        }
        Err(error) => {
            println!("\nNothing is touched: {error}");
            return false;
        }
    }
    println!("\nTo repair it would, in this order:");
    for (number, step) in (1..).zip(steps) {
        println!("{number}. {step}");
    }
    if !yes && !told_to("\nDo it?") {
        println!(
            "\nNothing was changed. To have it done:\n  {}",
            command_line("doctor --repair --yes", options)
        );
        return false;
    }
    println!();
    for (number, step) in (1..).zip(steps) {
        match step.run(vault) {
            Ok(()) if step.calls_for_a_backup() => println!(
                "{number}. done; now put a backup back, or an empty store is made at the next start:\n   {}",
                command_line("restore FILE", options)
            ),
            Ok(()) => println!("{number}. done"),
            Err(problem) => println!("{number}. not done: {problem}"),
        }
    }
    true
}

/// A command of this program on the store that the options name, for a shell.
pub fn command_line(command: &str, options: &Options) -> String {
    let arguments = options.store_arguments();
    let arguments: String = arguments.iter().map(|argument| format!(" {}", shell_word(argument))).collect();
    format!("{} {command}{arguments}", shell_word(&program()))
}

/// Asks, where there is someone to ask.
pub fn told_to(question: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return false;
    }
    print!("{question} [y/N] ");
    let mut answer = String::new();
    let asked = io::stdout().flush().and_then(|()| io::stdin().lock().read_line(&mut answer));
    asked.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
