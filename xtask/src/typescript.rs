//! The stages of the TypeScript package, in a copy of it below `target`: the source tree stays as it is.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Outcome, npm, pass,
    rust::{cargo, target},
};

const PACKAGE: &str = "integrations/claude-memory-tool/typescript";
/// What a program or an earlier run leaves beside the sources.
const MADE: [&str; 3] = ["node_modules", "dist", "build"];

/// Builds the server that the tests talk to, copies the package, and installs what it and its tests need.
pub fn set_up(root: &Path) -> Outcome {
    let package = root.join(PACKAGE);
    if !package.is_dir() {
        return Outcome::Skipped(format!("{PACKAGE} is not there"));
    }
    if let Some(lack) = npm::lack() {
        return Outcome::Skipped(lack);
    }
    let built = pass(cargo(root).args(["build", "--locked", "--bin", "warm-mcp"]));
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    let copy = copy(root);
    if let Err(error) = refresh(&package, &copy) {
        return Outcome::Failed(format!("{PACKAGE} could not be copied: {error}"));
    }
    npm::install(&copy)
}

pub fn lints(root: &Path) -> Outcome {
    run(root, &["run", "--silent", "lint"])
}

/// The build checks the types of the package, for both module systems; then come those of its tests.
pub fn types(root: &Path) -> Outcome {
    match run(root, &["run", "--silent", "build"]) {
        Outcome::Passed => run(root, &["run", "--silent", "types"]),
        other => other,
    }
}

pub fn tests(root: &Path) -> Outcome {
    run(root, &["test", "--silent"])
}

fn run(root: &Path, arguments: &[&str]) -> Outcome {
    if let Some(lack) = npm::lack() {
        return Outcome::Skipped(lack);
    }
    let copy = copy(root);
    if !npm::is_installed(&copy) {
        return Outcome::Skipped("its packages are not installed, see typescript set-up".to_owned());
    }
    let server = target(root).join("debug/warm-mcp");
    pass(Command::new("npm").args(arguments).current_dir(copy).env("WARM_MCP_BIN", server))
}

fn copy(root: &Path) -> PathBuf {
    target(root).join("typescript")
}

/// Makes `to` hold what `from` holds; what is installed there stays.
fn refresh(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if entry.file_name() == "node_modules" {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    copy_folder(from, to, &MADE)
}

fn copy_folder(from: &Path, to: &Path, except: &[&str]) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if except.iter().any(|made| name == *made) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to.join(name), &[])?;
        } else {
            fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}
