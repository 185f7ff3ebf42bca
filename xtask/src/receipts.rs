//! Checks receipts of the engine with a verifier that shares no code with it.

use std::{fs, path::Path, process::Command};

use crate::{
    Outcome, npm, pass,
    rust::{cargo, target},
};

const CHECK: &str = "integrations/receipt-check/verify.test.mjs";

pub fn check(root: &Path) -> Outcome {
    if let Some(lack) = npm::lacks_node() {
        return Outcome::Skipped(lack);
    }
    let printed =
        cargo(root).args(["run", "--locked", "-q", "-p", "warm-engine", "--example", "receipt"]).output();
    let printed = match printed {
        Ok(printed) if printed.status.success() => printed.stdout,
        Ok(printed) => {
            let said = String::from_utf8_lossy(&printed.stderr);
            return Outcome::Failed(format!("the example that makes receipts failed:\n{said}"));
        }
        Err(error) => return Outcome::Failed(format!("cargo could not be started: {error}")),
    };
    let receipts = target(root).join("receipts.jsonl");
    if let Err(error) = fs::write(&receipts, printed) {
        return Outcome::Failed(format!("{} could not be written: {error}", receipts.display()));
    }
    pass(Command::new("node").current_dir(root).args(["--test", CHECK]).env("WARM_RECEIPTS", receipts))
}
