//! The commands that change the tree: create, str_replace, insert, delete and rename.
//!
//! Each works on a [`Draft`] and either changes it completely or returns an error, upon which the
//! draft is put back; so every command is atomic.

use std::fmt::Write;
use std::sync::Arc;

use super::CommandError;
use super::lines::{line_of, lines, numbered};
use crate::contract::{Command, Limits, OperationId};
use crate::draft::{Draft, Ticket};
use crate::operations::{Done, NAMED_TWICE};
use crate::path::{ROOT, check_path, echo};
use crate::progress::Progress;
use crate::record::{Entry, Record};
use crate::store::StoreError;

/// Lines shown before and behind a replaced text.
const CONTEXT: usize = 2;
/// How much of a text that was looked for a message echoes, in characters.
const LONGEST_ECHO: usize = 16_000;
/// Line numbers named for a text that occurs too often; enough to see where.
const MOST_NUMBERS: usize = 100;

/// What bounds one call.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Longest view or snippet, in characters.
    pub(crate) max_view_chars: u64,
    /// Largest file, in bytes.
    pub(crate) max_file_bytes: u64,
}

/// Runs a command that changes the tree; returns its exact result string, and for `delete` what the receipt comes
/// by. Under the name of an operation that was made before, it changes nothing and returns the same again.
///
/// `view` changes nothing and never comes here: [`view`](super::view()) serves it from a state.
pub(crate) fn edit(
    draft: &mut Draft<'_>,
    command: Command,
    limits: &Limits,
    bounds: Bounds,
    operation: Option<OperationId>,
) -> Result<(String, Option<Ticket>), CommandError> {
    match draft.made(operation) {
        Some(Done::Command { line, receipt }) => {
            return Ok((retell(draft, &command, line, bounds)?, receipt.map(Ticket::of)));
        }
        Some(_) => return Err(StoreError::Fault(NAMED_TWICE).into()),
        None => {}
    }
    let Ran { told, line, ticket } = run(draft, command, limits, bounds)?;
    draft.note(operation, Done::Command { line, receipt: ticket.as_ref().map(Ticket::index) });
    Ok((told, ticket))
}

/// What a command did.
struct Ran {
    told: String,
    /// The line that it changed, where that is shown.
    line: Option<u64>,
    ticket: Option<Ticket>,
}

/// What a command that was made says, from its own words and what is there now.
fn retell(
    draft: &Draft<'_>,
    command: &Command,
    line: Option<u64>,
    bounds: Bounds,
) -> Result<String, CommandError> {
    Ok(match command {
        Command::View { path, .. } => return Err(CommandError::NotAFile(path.clone())),
        Command::Create { path, .. } => created(path),
        Command::Insert { path, .. } => inserted(path),
        Command::Delete { path } => deleted(path),
        Command::Rename { old_path, new_path } => renamed(old_path, new_path),
        Command::StrReplace { path, .. } => {
            // The file may have gone on changing; if it is gone, there is nothing to show.
            let changed = line.and_then(|line| usize::try_from(line).ok()).unwrap_or_default();
            let text = file(draft, path).map(|record| record.text.clone()).unwrap_or_default();
            replaced(&snippet(&text, changed, bounds.max_view_chars))
        }
    })
}

fn created(path: &str) -> String {
    format!("File created successfully at: {path}")
}

fn replaced(snippet: &str) -> String {
    format!(
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
    )
}

fn inserted(path: &str) -> String {
    format!("The file {path} has been edited.")
}

fn deleted(path: &str) -> String {
    format!("Successfully deleted {path}")
}

fn renamed(old: &str, new: &str) -> String {
    format!("Successfully renamed {old} to {new}")
}

fn run(
    draft: &mut Draft<'_>,
    command: Command,
    limits: &Limits,
    bounds: Bounds,
) -> Result<Ran, CommandError> {
    let max_file_bytes = bounds.max_file_bytes;
    let told = match command {
        Command::View { path, .. } => Err(CommandError::NotAFile(path)),
        Command::Create { path, file_text } => create(draft, path, file_text, limits, max_file_bytes),
        Command::StrReplace { path, old_str, new_str } => {
            check_path(&path, limits)?;
            let new = new_str.as_deref().unwrap_or_default();
            let (told, line) = str_replace(draft, &path, &old_str, new, bounds)?;
            return Ok(Ran { told, line: Some(line as u64), ticket: None });
        }
        Command::Insert { path, insert_line, insert_text } => {
            check_path(&path, limits)?;
            insert(draft, &path, insert_line, &insert_text, max_file_bytes)
        }
        Command::Delete { path } => {
            check_path(&path, limits)?;
            let ticket = delete(draft, &path)?;
            return Ok(Ran { told: deleted(&path), line: None, ticket });
        }
        Command::Rename { old_path, new_path } => {
            check_path(&old_path, limits)?;
            check_path(&new_path, limits)?;
            rename(draft, &old_path, &new_path, limits)
        }
    };
    Ok(Ran { told: told?, line: None, ticket: None })
}

fn create(
    draft: &mut Draft<'_>,
    path: String,
    text: String,
    limits: &Limits,
    max_bytes: u64,
) -> Result<String, CommandError> {
    check_path(&path, limits)?;
    check_size(&path, text.len(), max_bytes)?;
    if draft.names.get(&path).is_some() || draft.names.is_dir(&path) {
        return Err(CommandError::FileExists(path));
    }
    check_not_under_a_file(draft, &path)?;
    let done = created(&path);
    draft.put(Record::new(path, text, draft.now(), draft.now()));
    Ok(done)
}

fn str_replace(
    draft: &mut Draft<'_>,
    path: &str,
    old: &str,
    new: &str,
    bounds: Bounds,
) -> Result<(String, usize), CommandError> {
    let record = file(draft, path)?;
    if old.is_empty() {
        return Err(CommandError::EmptyOldStr(path.into()));
    }
    let text = &record.text;
    let Some(at) = text.find(old) else {
        return Err(CommandError::NoMatch { old_str: echo(old, LONGEST_ECHO), path: path.into() });
    };
    if text[at + old.len()..].contains(old) {
        return Err(CommandError::ManyMatches {
            old_str: echo(old, LONGEST_ECHO),
            lines: match_lines(text, old),
        });
    }
    let edited = [&text[..at], new, &text[at + old.len()..]].concat();
    check_size(path, edited.len(), bounds.max_file_bytes)?;
    let changed = line_of(text, at) - 1;
    let told = replaced(&snippet(&edited, changed, bounds.max_view_chars));
    draft.put(record.edited(edited, draft.now()));
    Ok((told, changed))
}

/// The line of each occurrence, overlapping ones too, as the SDK counts them.
fn match_lines(text: &str, old: &str) -> String {
    let first_char = old.chars().next().map_or(1, char::len_utf8);
    let (mut from, mut numbers) = (0, Vec::new());
    while let Some(found) = text.get(from..).and_then(|rest| rest.find(old)) {
        if numbers.len() == MOST_NUMBERS {
            numbers.push("…".to_owned());
            break;
        }
        let at = from + found;
        numbers.push(line_of(text, at).to_string());
        from = at + first_char;
    }
    numbers.join(", ")
}

/// The changed line and its neighbours. Split as the SDK does, the line behind a final LF included.
fn snippet(text: &str, changed: usize, max_chars: u64) -> String {
    let first = changed.saturating_sub(CONTEXT);
    let shown: Vec<_> = text
        .split('\n')
        .enumerate()
        .skip(first)
        .take(changed + CONTEXT + 1 - first)
        .map(|(index, line)| numbered(index + 1, line))
        .collect();
    let mut out = shown.join("\n");
    let limit = usize::try_from(max_chars).unwrap_or(usize::MAX);
    if let Some((at, _)) = out.char_indices().nth(limit) {
        out.truncate(at);
        let _ = write!(out, "\n\n[The snippet was cut after {limit} characters.]");
    }
    out
}

fn insert(
    draft: &mut Draft<'_>,
    path: &str,
    line: i64,
    text: &str,
    max_bytes: u64,
) -> Result<String, CommandError> {
    let record = file(draft, path)?;
    let mut lines = lines(&record.text);
    let at = usize::try_from(line)
        .ok()
        .filter(|&at| at <= lines.len())
        .ok_or(CommandError::InsertLine { line, lines: lines.len() })?;
    lines.insert(at, text.trim_end_matches('\n'));
    let mut edited = lines.join("\n");
    if !edited.ends_with('\n') {
        edited.push('\n');
    }
    check_size(path, edited.len(), max_bytes)?;
    draft.put(record.edited(edited, draft.now()));
    Ok(inserted(path))
}

fn delete(draft: &mut Draft<'_>, path: &str) -> Result<Option<Ticket>, CommandError> {
    if path == ROOT {
        return Err(CommandError::Root("delete"));
    }
    let doomed = at_or_under(draft, path);
    if doomed.is_empty() {
        return Err(CommandError::Missing(path.into()));
    }
    Ok(draft.erase(doomed, &Progress::default()))
}

fn rename(draft: &mut Draft<'_>, old: &str, new: &str, limits: &Limits) -> Result<String, CommandError> {
    if old == ROOT {
        return Err(CommandError::Root("rename"));
    }
    if draft.names.get(new).is_some() || draft.names.is_dir(new) {
        return Err(CommandError::DestinationExists(new.into()));
    }
    let moved = at_or_under(draft, old);
    if moved.is_empty() {
        return Err(CommandError::Missing(old.into()));
    }
    if new.strip_prefix(old).is_some_and(|rest| rest.starts_with('/')) {
        return Err(CommandError::IntoItself { old_path: old.into(), new_path: new.into() });
    }
    check_not_under_a_file(draft, new)?;
    for entry in moved {
        let key = format!("{new}{}", &entry.key[old.len()..]);
        check_path(&key, limits)?;
        let record = draft.read(&entry)?.ok_or(StoreError::Fault("a file could not be moved"))?;
        draft.remove(&entry.key);
        draft.put(record.renamed(key, draft.now()));
    }
    Ok(renamed(old, new))
}

/// The file at `path`, for editing.
fn file(draft: &Draft<'_>, path: &str) -> Result<Arc<Record>, CommandError> {
    let nothing = || CommandError::NothingThere(path.into());
    match draft.names.get(path) {
        Some(entry) => draft.read(entry)?.ok_or_else(nothing),
        None if draft.names.is_dir(path) => Err(CommandError::NotAFile(path.into())),
        None => Err(nothing()),
    }
}

fn at_or_under(draft: &Draft<'_>, path: &str) -> Vec<Arc<Entry>> {
    draft.names.get(path).into_iter().chain(draft.names.under(path)).cloned().collect()
}

/// A file can't be a directory too.
fn check_not_under_a_file(draft: &Draft<'_>, path: &str) -> Result<(), CommandError> {
    match draft.names.file_above(path) {
        Some(file) => Err(CommandError::UnderAFile { path: path.into(), file: file.into() }),
        None => Ok(()),
    }
}

fn check_size(path: &str, bytes: usize, limit: u64) -> Result<(), CommandError> {
    let bytes = bytes as u64;
    if bytes > limit {
        return Err(CommandError::TooLarge { path: path.into(), bytes, limit });
    }
    Ok(())
}
