//! `warm-mcp demo`: the main job, shown to someone who has no client yet.
//!
//! Owns the session that is played and how it is printed. The calls go the way that a client's calls
//! go, on a fresh sealed store in a temporary folder that is gone at the end.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use warm_engine::{Vault, VaultOptions, contract::Limits};

use crate::{
    greeting,
    load::Load,
    memory::Caller,
    namespaces::{Namespaces, options::Namespace},
    service::Service,
    tools::{Answer, Call, Offer, Tool},
};

const WIDTH: usize = 78;
const NOTE: &str = "/memories/customers/acme.md";
/// Words that the session stores and that must not be readable on disk.
const SECRETS: [&str; 3] = ["Acme Corp", "follow-ups", "Priya"];

/// Plays the session on `out`.
pub fn run(out: &mut impl Write) -> Result<(), String> {
    let folder = tempfile::Builder::new()
        .prefix("warm-demo-")
        .tempdir()
        .map_err(|error| format!("the demo needs a temporary folder: {error}"))?;
    let colour =
        io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let mut stage = Stage { out, colour, step: 0 };
    let played = play(&mut stage, &folder.path().join("store"));
    folder.close().map_err(|error| format!("the demo's folder could not be removed: {error}"))?;
    match played {
        Err(Stop::Said(problem)) => Err(problem),
        // Whoever reads the demo may stop reading.
        Err(Stop::Unheard) => Ok(()),
        Ok(()) => stage.next_steps().or(Ok(())),
    }
}

/// Why the session ended early.
enum Stop {
    Said(String),
    Unheard,
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Unheard
    }
}

fn play<W: Write>(stage: &mut Stage<'_, W>, folder: &Path) -> Result<(), Stop> {
    let started = Instant::now();
    let said = |error: warm_engine::OpenError| Stop::Said(error.to_string());
    let key = VaultOptions { data_dir: folder.to_owned(), identity: None, passphrase: None };
    let vault = Vault::open(&key).map_err(said)?;
    let namespaces = Namespaces::alone(vault, Limits::default(), Namespace::named("demo")).map_err(said)?;
    let service = Service::new(namespaces, key, Offer::default(), Load::default());
    stage.title(folder, started.elapsed())?;

    let mut play = |heading: &str, tool, arguments: &[_]| stage.call(&service, heading, tool, arguments);
    play(
        "A new agent looks at its memory",
        Tool::Memory,
        &[("command", json!("view")), ("path", json!("/memories"))],
    )?;
    play(
        "It takes a note",
        Tool::Memory,
        &[
            ("command", json!("create")),
            ("path", json!(NOTE)),
            ("file_text", json!("# Acme Corp\n- Contact: Priya\n- Wants follow-ups by phone\n")),
        ],
    )?;
    play(
        "It learns better, and edits the note",
        Tool::Memory,
        &[
            ("command", json!("str_replace")),
            ("path", json!(NOTE)),
            ("old_str", json!("by phone")),
            ("new_str", json!("by email, never on Mondays")),
        ],
    )?;
    play(
        "It remembers a single fact",
        Tool::Remember,
        &[("text", json!("The team ships releases on Thursdays.")), ("key", json!("release-day"))],
    )?;
    let question = [("query", json!("how does Acme want its follow-ups?")), ("k", json!(1))];
    play("Days later, in another conversation, it asks", Tool::Recall, &question)?;
    stage.on_disk(folder)?;
    let mut play = |heading: &str, tool, arguments: &[_]| stage.call(&service, heading, tool, arguments);
    play("The user asks it to forget the customer", Tool::Forget, &[("key", json!(NOTE))])?;
    play("It is gone", Tool::Recall, &question)
}

/// Where the session is shown.
struct Stage<'a, W> {
    out: &'a mut W,
    colour: bool,
    step: usize,
}

impl<W: Write> Stage<'_, W> {
    fn title(&mut self, folder: &Path, took: Duration) -> io::Result<()> {
        let title = self.styled("1", "WARM: an agent's memory, sealed on your own machine");
        writeln!(self.out, "{title}\n")?;
        let made = format!("A fresh store and its key, made in {}", shown_time(took));
        writeln!(self.out, "{made}:\n{}", folder.display())
    }

    /// Makes one call and shows what was asked, what came back and how long it took.
    fn call(
        &mut self,
        service: &Service,
        heading: &str,
        tool: Tool,
        arguments: &[(&str, Value)],
    ) -> Result<(), Stop> {
        let asked: Vec<String> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let asked = format!("{} {}", tool.name(), asked.join("\n  "));
        let arguments: Map<String, Value> =
            arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let started = Instant::now();
        let mut caller = Caller { waits: &mut || {}, progress: Arc::default() };
        let outcome = Call::new(service, tool, arguments).and_then(|call| call.serve(service, &mut caller));
        let took = started.elapsed();
        let answer = outcome.map_err(|failure| Stop::Said(failure.message))?;
        self.heading(heading, &shown_time(took))?;
        self.lines("  > ", &asked, "36")?;
        self.lines("    ", &shown_answer(tool, answer), "")?;
        Ok(())
    }

    /// Looks for the session's words in every byte that was written.
    fn on_disk(&mut self, folder: &Path) -> Result<(), Stop> {
        let started = Instant::now();
        let found = search(folder).map_err(|error| Stop::Said(error.to_string()))?;
        self.heading(
            "What someone who copies the store without its key can read",
            &shown_time(started.elapsed()),
        )?;
        let words = SECRETS.map(|word| format!("\"{word}\"")).join(", ");
        let asked = format!("search {} files, {} KB, for {words}", found.files, found.bytes / 1024);
        self.lines("  > ", &asked, "36")?;
        let verdict = match found.readable {
            0 => "Nothing: none of these words is in any file.".to_owned(),
            files => {
                return Err(Stop::Said(format!(
                    "{files} files of the store hold readable text. Report this as a fault."
                )));
            }
        };
        self.lines("    ", &verdict, "")?;
        Ok(())
    }

    fn next_steps(&mut self) -> io::Result<()> {
        let title = self.styled("1", "Next");
        let program = greeting::shell_word(&greeting::program());
        writeln!(
            self.out,
            "\n{title}\n  \
             The demo's folder is removed. A memory that stays, for Claude Code:\n    \
             claude mcp add --scope user warm -- {program}\n  \
             For other clients, start it in a terminal without a command:\n    \
             {program}\n  \
             To check the store at any time:\n    \
             {program} doctor"
        )
    }

    fn heading(&mut self, heading: &str, took: &str) -> io::Result<()> {
        self.step += 1;
        let left = format!("{}. {heading}", self.step);
        let gap = WIDTH.saturating_sub(left.chars().count() + took.chars().count());
        let left = self.styled("1", &left);
        let took = self.styled("2", took);
        writeln!(self.out, "\n{left}{}{took}", " ".repeat(gap.max(1)))
    }

    /// Each line of `text` behind `lead`, broken where it is too wide.
    fn lines(&mut self, lead: &str, text: &str, style: &str) -> io::Result<()> {
        let mut lead = lead;
        for line in text.lines() {
            for part in broken(line, WIDTH - lead.len()) {
                let part = self.styled(style, &part);
                writeln!(self.out, "{lead}{part}")?;
                lead = "    ";
            }
        }
        Ok(())
    }

    fn styled(&self, style: &str, text: &str) -> String {
        if self.colour && !style.is_empty() { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// What an agent reads of an answer, in a few lines.
fn shown_answer(tool: Tool, answer: Answer) -> String {
    let Some(results) = answer.structured.get("results").and_then(Value::as_array) else {
        return match (tool, answer.structured) {
            (Tool::Memory, _) => answer.text.replace('\t', "  "),
            (_, Value::Object(fields)) => {
                let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
                fields.collect::<Vec<_>>().join("  ")
            }
            _ => answer.text,
        };
    };
    if results.is_empty() {
        return "No results.".to_owned();
    }
    let shown = results.iter().map(|hit| {
        let text = |name: &str| hit.get(name).and_then(Value::as_str).unwrap_or_default();
        let score = hit.get("score").and_then(Value::as_f64).unwrap_or_default();
        format!("{} (score {score:.2})\n{}", text("key"), text("excerpt"))
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// `line` in parts of at most `width` characters, broken at spaces where there are any.
fn broken(line: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > width {
        let space = rest[..width].iter().rposition(|character| *character == ' ');
        let cut = space.filter(|place| *place > width / 2).map_or(width, |place| place + 1);
        let after = rest.split_off(cut);
        parts.push(rest.into_iter().collect::<String>().trim_end().to_owned());
        rest = after;
    }
    parts.push(rest.into_iter().collect());
    parts
}

fn shown_time(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1_000.0)
}

/// What was seen on disk.
#[derive(Default)]
struct Found {
    files: usize,
    bytes: usize,
    /// Files in which one of the words could be read.
    readable: usize,
}

fn search(folder: &Path) -> io::Result<Found> {
    let mut found = Found::default();
    let mut ahead = vec![folder.to_owned()];
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                ahead.push(path);
                continue;
            }
            // The key that opens the store is not part of it.
            if path.ends_with("identity.txt") {
                continue;
            }
            let bytes = fs::read(path)?;
            found.files += 1;
            found.bytes += bytes.len();
            let readable = |word: &str| bytes.windows(word.len()).any(|part| part == word.as_bytes());
            found.readable += usize::from(SECRETS.into_iter().any(readable));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_of_the_disk_finds_what_is_not_sealed() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        fs::create_dir(folder.path().join("a")).unwrap_or_else(|error| panic!("{error}"));
        let file = folder.path().join("a/f");
        fs::write(file, "\0\0Priya\0").unwrap_or_else(|error| panic!("{error}"));
        let found = search(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((found.files, found.bytes, found.readable), (1, 8, 1));
    }

    #[test]
    fn lines_are_broken_at_spaces_and_never_inside_a_character() {
        assert_eq!(broken("one two three", 9), ["one two", "three"]);
        assert_eq!(broken("ééééé", 2), ["éé", "éé", "é"]);
        assert_eq!(broken("", 9), [""]);
    }
}
