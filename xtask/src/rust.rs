//! The stages that cargo runs.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Outcome, pass, succeeds};

/// cargo, at the repository's root.
pub fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Where cargo builds.
pub fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |target| root.join(target))
}

pub fn format(root: &Path) -> Outcome {
    if !succeeds(cargo(root).args(["fmt", "--version"])) {
        return Outcome::Skipped("rustfmt is not installed: rustup component add rustfmt".to_owned());
    }
    pass(cargo(root).args(["fmt", "--all", "--check"]))
}

pub fn lints(root: &Path) -> Outcome {
    if !succeeds(cargo(root).args(["clippy", "--version"])) {
        return Outcome::Skipped("clippy is not installed: rustup component add clippy".to_owned());
    }
    pass(cargo(root).args(["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]))
}

pub fn tests(root: &Path) -> Outcome {
    let mut cargo_test = cargo(root);
    if succeeds(cargo(root).args(["nextest", "--version"])) {
        cargo_test.args(["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]);
    } else {
        cargo_test.args(["test", "--workspace", "--locked", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    }
    pass(&mut cargo_test)
}

pub fn doc_tests(root: &Path) -> Outcome {
    pass(cargo(root).args(["test", "--workspace", "--locked", "--doc"]))
}
