//! The stages of the TypeScript package, in a copy of it below `target`: the source tree stays as it is.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Outcome, pass,
    rust::{cargo, target},
    succeeds,
};

const PACKAGE: &str = "integrations/claude-memory-tool/typescript";
const LOCK: &str = "package-lock.json";
/// What a program or an earlier run leaves beside the sources.
const MADE: [&str; 3] = ["node_modules", "dist", "build"];

/// Builds the server that the tests talk to, copies the package, and installs what it and its tests need.
pub fn set_up(root: &Path) -> Outcome {
    let package = root.join(PACKAGE);
    if !package.is_dir() {
        return Outcome::Skipped(format!("{PACKAGE} is not there"));
    }
    if let Some(lack) = lack() {
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
    // npm leaves this file when it is done: a run that was cut short, or another lock, installs anew.
    let installed = copy.join("node_modules").join(LOCK);
    if let (Ok(old), Ok(new)) = (fs::read(&installed), fs::read(copy.join(LOCK)))
        && old == new
    {
        return Outcome::Passed;
    }
    install(&copy, &installed)
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

/// What this machine lacks for any of the stages.
fn lack() -> Option<String> {
    lacks_node().or_else(|| {
        let npm = succeeds(Command::new("npm").arg("--version"));
        (!npm).then(|| "npm is not installed".to_owned())
    })
}

/// Says so if this machine has no Node that is new enough.
pub fn lacks_node() -> Option<String> {
    let new_enough = "process.exit(Number(process.versions.node.split('.')[0]) < 20 ? 1 : 0)";
    let node = succeeds(Command::new("node").args(["-e", new_enough]));
    (!node).then(|| "Node 20 or newer is not installed as node".to_owned())
}

fn install(copy: &Path, stamp: &Path) -> Outcome {
    match Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(copy).output() {
        Ok(output) if output.status.success() => match fs::copy(copy.join(LOCK), stamp) {
            Ok(_) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{} could not be written: {error}", stamp.display())),
        },
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if unreachable(&said) {
                Outcome::Skipped(format!("npm can't reach its registry:\n{said}"))
            } else {
                Outcome::Failed(format!("npm could not install what {PACKAGE} needs:\n{said}"))
            }
        }
        Err(error) => Outcome::Failed(format!("npm could not be started: {error}")),
    }
}

fn run(root: &Path, arguments: &[&str]) -> Outcome {
    if let Some(lack) = lack() {
        return Outcome::Skipped(lack);
    }
    let copy = copy(root);
    if !copy.join("node_modules").join(LOCK).is_file() {
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

/// Whether npm failed for want of a network, which is no fault of the package.
fn unreachable(said: &str) -> bool {
    ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT"]
        .iter()
        .any(|sign| said.contains(sign))
}
