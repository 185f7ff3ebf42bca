//! `warm-mcp doctor`: what is there, and what is wrong with it.
//!
//! Owns the checks and their report. It makes and changes nothing: of a store that a running server has
//! open, that server is asked. Putting things right is [`repair`](crate::repair)'s.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use warm_engine::{
    Engine, Namespaces, OpenError, Vault,
    contract::{Recall, Stats},
    repair::{Flaw, find},
};

use crate::{
    greeting::shell_word,
    medium,
    memory::{Memory, Reply, Request},
    options::{Doctor, Options},
    repair::{self, Step},
    shared::SharedMemory,
};

/// Prints the report, and with `--repair` the plan. Fails when something is wrong in the end.
pub fn run(options: &Options, how: Doctor) -> ExitCode {
    if how.repair && options.offer.read_only {
        eprintln!("warm-mcp: --read-only (WARM_MCP_READ_ONLY) forbids --repair: leave one of the two out.");
        return ExitCode::FAILURE;
    }
    let (mut report, vault) = examine(options);
    print!("{}", report.text());
    match (&vault, report.steps.is_empty()) {
        (Some(vault), false) if how.repair => {
            if repair::offer(&report.steps, vault, options, how.yes) {
                report = examine(options).0;
                print!("\n{}", report.verdict());
            }
        }
        (_, true) if how.repair => println!("\nThere is nothing here that --repair can put right."),
        (_, true) => {}
        (_, false) => {
            println!("\nTo see how --repair would put things right, add it; it asks before it acts.")
        }
    }
    if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What was found, in the order in which it is shown.
#[derive(Default)]
struct Report {
    facts: Vec<(&'static str, String)>,
    /// Each says what is wrong and what to do next.
    problems: Vec<String>,
    /// What can be done about some of them.
    steps: Vec<Step>,
}

impl Report {
    fn fact(&mut self, name: &'static str, value: impl Into<String>) {
        self.facts.push((name, value.into()));
    }

    fn problem(&mut self, problem: impl Into<String>) {
        self.problems.push(problem.into());
    }

    fn text(&self) -> String {
        let mut text = String::from("warm-mcp doctor\n\n");
        for (name, value) in &self.facts {
            text += &format!("{name:<11} {}\n", value.replace('\n', "\n            "));
        }
        text.push('\n');
        text + &self.verdict()
    }

    fn verdict(&self) -> String {
        let mut text = String::new();
        match self.problems.len() {
            0 => text += "Nothing is wrong.\n",
            1 => text += "One thing is wrong:\n",
            several => text += &format!("{several} things are wrong:\n"),
        }
        for problem in &self.problems {
            text += &format!("- {}\n", problem.replace('\n', "\n  "));
        }
        text
    }
}

fn examine(options: &Options) -> (Report, Option<Vault>) {
    let mut report = Report::default();
    let vault = examine_vault(options, &mut report);
    (report, vault)
}

/// Examines everything; returns the vault if it opens.
fn examine_vault(options: &Options, report: &mut Report) -> Option<Vault> {
    report.fact("version", env!("CARGO_PKG_VERSION"));
    let vault_options = match options.vault() {
        Ok(vault_options) => vault_options,
        Err(problem) => {
            report.problem(problem);
            return None;
        }
    };
    report.fact("data folder", vault_options.data_dir.display().to_string());
    let vault = match Vault::open_existing(&vault_options) {
        Ok(vault) => vault,
        Err(OpenError::NoStore(_)) => {
            report.fact("store", "nothing is set up yet: it is made when a client first starts warm-mcp");
            return None;
        }
        Err(error) => {
            report.problem(error.to_string());
            return None;
        }
    };
    check_privacy(&vault_options.data_dir, report);
    let alone = vault.recipients().len() == 1;
    match vault.identity_path() {
        Some(identity) => {
            let advice =
                if alone { "Keep a copy in a safe place: without it the memories are lost." } else { "" };
            let shown = format!("{}\n{advice}", identity.display());
            report.fact("identity", shown.trim_end());
            if !identity.starts_with(vault.data_dir()) {
                check_privacy(&identity, report);
            }
        }
        None if alone => report.fact("passphrase", "It is the only key: without it the memories are lost."),
        None => {}
    }
    if !alone {
        let several = vault.recipients().len();
        report.fact(
            "recipients",
            format!("{several} can open the memories: `warm-mcp recipients list` shows them"),
        );
    }
    for recipient in vault.recipients() {
        match vault.missing_file(recipient) {
            Ok(None) => {}
            Ok(Some(file)) => report.problem(format!(
                "{} is missing, and its passphrase opens nothing.\n\
                 Put it back from a copy, or remove the passphrase: {}",
                file.display(),
                repair::command_line(&format!("recipients remove {}", recipient.name()), options)
            )),
            Err(error) => report.problem(error.to_string()),
        }
    }
    if vault.has_unfinished_change() {
        report.problem(format!(
            "A change of the keys was cut short: what was there before it may still open with the old keys.\n\
             Close the clients, then finish it: {}",
            repair::command_line("recipients list", options)
        ));
    }
    examine_stores(&vault, options, report);
    Some(vault)
}

/// Examines the namespace that was chosen, or else all.
fn examine_stores(vault: &Vault, options: &Options, report: &mut Report) {
    let found = Namespaces::of(vault).unwrap_or_else(|error| {
        report.problem(error.to_string());
        Namespaces::default()
    });
    let chosen = options.namespace();
    let mut looked_at = if chosen.is_chosen() { Vec::new() } else { found.names.clone() };
    // A store that can't be named yet may be the default's.
    if !looked_at.contains(&chosen.name) && (looked_at.is_empty() || found.nameless > 0) {
        looked_at.insert(0, chosen.name.clone());
    }
    let count = found.names.len() + found.nameless;
    let mut said = count.to_string();
    if chosen.is_chosen() && count > 1 {
        said += ", of which one is looked into; without naming one, all are";
    }
    if found.nameless > 0 {
        said += &format!(
            "\n{} of them can't be named until they are next served, with --namespace NAME",
            found.nameless
        );
    }
    report.fact("namespaces", said);
    report.fact("namespace", format!("{} ({})", chosen.name, chosen.why()));
    for namespace in &looked_at {
        Examined { vault, namespace, options }.store(report);
    }
}

/// A namespace that is examined.
struct Examined<'a> {
    vault: &'a Vault,
    namespace: &'a str,
    options: &'a Options,
}

impl Examined<'_> {
    fn store(&self, report: &mut Report) {
        let Self { vault, namespace, options } = self;
        // What stands in the way of finding flaws is named when the store is opened.
        for flaw in find(vault, namespace).unwrap_or_default() {
            let known = |step: &Step| matches!(step, Step::Mend { flaw: known, .. } if *known == flaw);
            // What lies beside the stores is found with each of them.
            if report.steps.iter().any(known) {
                continue;
            }
            // Records are named one by one, and a store that does not open below, with the reason.
            if !matches!(
                flaw,
                Flaw::Records { .. } | Flaw::DamagedStore(_) | Flaw::Keyless(_) | Flaw::LostStore(_)
            ) {
                report.problem(format!("{flaw}."));
            }
            report.steps.push(Step::Mend { flaw, namespace: (*namespace).to_owned() });
        }
        match Engine::open_existing(vault, namespace, options.limits()) {
            Ok(engine) => {
                // The answer is of no interest; once there is one, the index is filled.
                if let Err(error) = engine.recall(&Recall::default()) {
                    report.problem(error.to_string());
                }
                self.describe(&engine.stats(), engine.damaged(), report);
                match engine.check_receipts() {
                    Ok(receipts) => {
                        report.fact("receipts", format!("{receipts}, all signed and in their places"))
                    }
                    Err(error) => report.problem(error.to_string()),
                }
            }
            Err(OpenError::NoStore(_)) => {
                report.fact("store", format!("namespace {namespace}: nothing is stored yet"));
            }
            Err(OpenError::InUse(_)) => match self.ask_owner() {
                Ok((stats, damaged)) => {
                    report.fact("open in", "a running warm-mcp, which was asked");
                    self.describe(&stats, &damaged, report);
                }
                Err(problem) => report.problem(problem),
            },
            // It is among the flaws.
            Err(OpenError::Unfinished(_)) => {}
            Err(OpenError::StoreDamaged { path, reason }) => {
                report.problem(lost(&format!("{} is damaged ({reason})", path.display()), options));
            }
            Err(OpenError::StoreMissing(path)) => {
                report.problem(lost(&format!("{} is missing although it was made", path.display()), options));
            }
            Err(error @ (OpenError::SlotMissing { .. } | OpenError::SlotDamaged { .. })) => {
                report.problem(lost(&error.to_string(), options));
            }
            Err(error) => report.problem(error.to_string()),
        }
    }

    /// What the process that has the store open says of it.
    fn ask_owner(&self) -> Result<(Stats, Vec<String>), String> {
        let memory = SharedMemory::visit(self.vault, self.namespace, self.options.limits());
        let memory = memory.map_err(|error| error.to_string())?;
        let ask = |request| memory.call(request).map_err(|failure| failure.message);
        match (ask(Request::Stats)?, ask(Request::Damaged)?) {
            (Reply::Stats(stats), Reply::Damaged(damaged)) => Ok((*stats, damaged)),
            _ => Err("the warm-mcp that has the store open gave the answer to another request".to_owned()),
        }
    }

    fn describe(&self, stats: &Stats, damaged: &[String], report: &mut Report) {
        report.problems.extend(stats.refuses_writes.iter().cloned());
        for record in damaged {
            report.problem(format!(
                "{record}; the other memories are served without it.\n\
                 Restore the store from a backup to have it back."
            ));
        }
        report.fact(
            "store",
            format!(
                "namespace {}: {} memories ({} of them files), {} of text in {} on disk",
                stats.namespace,
                stats.memories,
                stats.files,
                size(stats.text_bytes),
                size(stats.store_bytes),
            ),
        );
        report.fact("damaged", stats.damaged_records.to_string());
        // What is the same for all is told of the first.
        let first = report.facts.iter().all(|(name, _)| *name != "encryption");
        if first {
            report.fact(
                "encryption",
                format!(
                    "{}, format {}, opened with the {}",
                    stats.encryption.cipher, stats.encryption.format, stats.encryption.opened_with
                ),
            );
        }
        report.fact(
            "recall",
            format!(
                "{:?}, {} passages, index {}",
                stats.recall.mode,
                stats.recall.passages,
                if stats.recall.ready { "ready" } else { "being rebuilt" }
            )
            .to_lowercase(),
        );
        if first {
            report.fact("erasing", medium::described(self.vault.data_dir()));
            report.fact("device", format!("{}, {} kernel", stats.device, stats.kernel));
        }
    }
}

/// What can be done about a store that only a backup brings back.
fn lost(what: &str, options: &Options) -> String {
    format!(
        "{what}.\nOnly a backup brings the memories back. Set aside what is left of the store, which destroys \
         nothing:\n  {}\nThen put the backup back:\n  {}",
        repair::command_line("doctor --repair --yes", options),
        repair::command_line("restore FILE", options),
    )
}

/// Bytes as a person reads them.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} bytes"),
        1_024..1_048_576 => format!("{:.1} KB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_048_576.0),
    }
}

/// Reports every file and folder at or below `path` that others than its owner may read or change.
#[cfg(unix)]
fn check_privacy(path: &Path, report: &mut Report) {
    use std::os::unix::fs::PermissionsExt;
    let mut open: Vec<(PathBuf, u32)> = Vec::new();
    let mut ahead = vec![path.to_owned()];
    while let Some(path) = ahead.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_symlink() {
            continue;
        }
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            open.push((path.clone(), mode));
        }
        if metadata.is_dir()
            && let Ok(entries) = fs::read_dir(&path)
        {
            ahead.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    open.sort();
    for (path, mode) in open {
        let shown = path.display();
        let own = if path.is_dir() { 0o700 } else { 0o600 };
        report.problem(format!(
            "{shown} is open to other users of this machine (mode {mode:03o}).\n\
             Close it: chmod {own:03o} {}",
            shell_word(&path.to_string_lossy())
        ));
        report.steps.push(Step::Close { path, mode: own });
    }
}

#[cfg(not(unix))]
fn check_privacy(_path: &Path, _report: &mut Report) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_what_is_wrong_and_indents_what_follows() {
        let mut report = Report::default();
        report.fact("version", "1");
        assert_eq!(report.text(), "warm-mcp doctor\n\nversion     1\n\nNothing is wrong.\n");
        report.problem("first\nnext step");
        report.problem("second");
        assert_eq!(
            report.text(),
            "warm-mcp doctor\n\nversion     1\n\n2 things are wrong:\n- first\n  next step\n- second\n"
        );
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!(size(1_023), "1023 bytes");
        assert_eq!(size(1_024), "1.0 KB");
        assert_eq!(size(3 * 1_048_576 / 2), "1.5 MB");
    }
}
