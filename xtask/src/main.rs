//! The project's chores. `cargo xtask test` does all the set-up and runs every test.
#![forbid(unsafe_code)]

mod conformance;
mod emulated;
mod licences;
mod npm;
mod python;
mod receipts;
mod rust;
mod typescript;

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

/// What became of a stage.
pub enum Outcome {
    /// It ran and found nothing wrong.
    Passed,
    /// Why, in a line.
    Failed(String),
    /// What this machine lacks, in a line.
    Skipped(String),
}

/// A step of the whole test.
struct Stage {
    name: &'static str,
    run: fn(&Path) -> Outcome,
}

/// Cheap ones first. A stage that fails does not keep the others from running.
const TEST: [Stage; 17] = [
    Stage { name: "rust format", run: rust::format },
    Stage { name: "rust lints", run: rust::lints },
    Stage { name: "licences", run: licences::check },
    Stage { name: "rust tests", run: rust::tests },
    Stage { name: "rust doc tests", run: rust::doc_tests },
    Stage { name: "receipt check", run: receipts::check },
    Stage { name: "kernels on neon", run: emulated::neon },
    Stage { name: "without avx", run: emulated::without_avx },
    Stage { name: "python set-up", run: python::set_up },
    Stage { name: "python lints", run: python::lints },
    Stage { name: "python types", run: python::types },
    Stage { name: "python tests", run: python::tests },
    Stage { name: "typescript set-up", run: typescript::set_up },
    Stage { name: "typescript lints", run: typescript::lints },
    Stage { name: "typescript types", run: typescript::types },
    Stage { name: "typescript tests", run: typescript::tests },
    Stage { name: "mcp conformance", run: conformance::run },
];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("test" | "ci") => {
            let wanted: Vec<String> = words.collect();
            let is_wanted = |stage: &&Stage| {
                wanted.is_empty() || wanted.iter().any(|word| stage.name.contains(word.as_str()))
            };
            let stages: Vec<&Stage> = TEST.iter().filter(is_wanted).collect();
            if stages.is_empty() {
                let names = TEST.map(|stage| stage.name).join(", ");
                eprintln!("no stage is called so. There are: {names}");
                return ExitCode::from(2);
            }
            run(&stages)
        }
        _ => {
            eprintln!(
                "usage: cargo xtask test [WORD ...]\n\nDoes all the set-up and runs every test; with words only the \
                 stages whose name has one of them."
            );
            ExitCode::from(2)
        }
    }
}

fn run(stages: &[&Stage]) -> ExitCode {
    let root = root();
    let mut done: Vec<(&str, Outcome, Duration)> = Vec::new();
    for stage in stages {
        println!("\n=== {}", stage.name);
        let started = Instant::now();
        let outcome = (stage.run)(&root);
        if let Outcome::Failed(reason) | Outcome::Skipped(reason) = &outcome {
            println!("{reason}");
        }
        done.push((stage.name, outcome, started.elapsed()));
    }
    println!("\n=== summary");
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, outcome, took) in &done {
        let (count, word, reason) = match outcome {
            Outcome::Passed => (&mut passed, "passed", ""),
            Outcome::Failed(reason) => (&mut failed, "FAILED", reason.as_str()),
            Outcome::Skipped(reason) => (&mut skipped, "SKIPPED", reason.as_str()),
        };
        *count += 1;
        println!("{word:<8} {name:<17} {:>6.1} s  {reason}", took.as_secs_f64());
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The repository's root, wherever the command was started.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Runs a command whose failure is the stage's.
pub fn pass(command: &mut Command) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Outcome::Passed,
        Ok(status) => Outcome::Failed(format!("{} ended with {status}", shown(command))),
        Err(error) => Outcome::Failed(format!("{} could not be started: {error}", shown(command))),
    }
}

/// Whether a command is there and succeeds, without showing what it prints.
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
