//! The stages of the Python package, in a virtual environment below `target`.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    Outcome, pass,
    rust::{cargo, target},
    succeeds,
};

const PACKAGE: &str = "integrations/claude-memory-tool/python";

/// Builds the server that the tests talk to, and installs the package with what tests it.
pub fn set_up(root: &Path) -> Outcome {
    if !root.join(PACKAGE).is_dir() {
        return Outcome::Skipped(format!("{PACKAGE} is not there"));
    }
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 10))";
    if !succeeds(Command::new("python3").args(["-c", new_enough])) {
        return Outcome::Skipped("Python 3.10 or newer is not installed as python3".to_owned());
    }
    let built = pass(cargo(root).args(["build", "--locked", "--bin", "warm-mcp"]));
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    if !tool(root, "pip").is_file()
        && !succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(environment(root)))
    {
        return Outcome::Skipped(
            "python3 can't make a virtual environment (package python3-venv)".to_owned(),
        );
    }
    let package = format!("{}[lint,test]", root.join(PACKAGE).display());
    let installed = Command::new(tool(root, "pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--editable", &package])
        .output();
    match installed {
        Ok(output) if output.status.success() => Outcome::Passed,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if unreachable(&said) {
                Outcome::Skipped(format!("pip can't reach its package index:\n{said}"))
            } else {
                Outcome::Failed(format!("pip could not install {PACKAGE}:\n{said}"))
            }
        }
        Err(error) => Outcome::Failed(format!("pip could not be started: {error}")),
    }
}

pub fn lints(root: &Path) -> Outcome {
    match run(root, "ruff", &["check", "."]) {
        Outcome::Passed => run(root, "ruff", &["format", "--check", "."]),
        other => other,
    }
}

pub fn types(root: &Path) -> Outcome {
    run(root, "mypy", &[])
}

pub fn tests(root: &Path) -> Outcome {
    run(root, "pytest", &["-q"])
}

fn run(root: &Path, name: &str, arguments: &[&str]) -> Outcome {
    let program = tool(root, name);
    if !program.is_file() {
        return Outcome::Skipped(format!("{name} is not installed, see python set-up"));
    }
    let server = target(root).join("debug/warm-mcp");
    pass(Command::new(program).args(arguments).current_dir(root.join(PACKAGE)).env("WARM_MCP_BIN", server))
}

fn tool(root: &Path, name: &str) -> PathBuf {
    environment(root).join("bin").join(name)
}

fn environment(root: &Path) -> PathBuf {
    target(root).join("python")
}

/// Whether pip failed for want of a network, which is no fault of the package.
fn unreachable(said: &str) -> bool {
    ["Failed to establish a new connection", "Temporary failure in name resolution", "Read timed out"]
        .iter()
        .any(|sign| said.contains(sign))
}
