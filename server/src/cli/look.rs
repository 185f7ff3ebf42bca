//! `warm-mcp view`, `recall` and `list`: what is there. They change nothing and make no store.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Map, Value};
use warm_engine::contract::{self, CommandLimits, Get, Recalled};

use super::{
    Done, Stop,
    output::Output,
    store::{Access, open, other_answer},
};
use crate::{
    memory::{Reply, Request},
    options::Options,
};

/// How many memories are asked for at once, unless the limits are lower.
const PAGE: u64 = 200;

/// What to show.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct View {
    /// A path below /memories, or the key of another memory
    #[arg(value_name = "PATH", default_value = "/memories")]
    path: String,
    /// Begin at this line of a file
    #[arg(long, value_name = "LINE", value_parser = clap::value_parser!(i64).range(1..))]
    from: Option<i64>,
    /// Instead of the text: title, tags, metadata, times and version of a memory, as one JSON object
    #[arg(long, conflicts_with = "from")]
    details: bool,
}

impl View {
    pub fn run(&self, options: &Options) -> Done {
        let memory = open(options, Access::Existing)?;
        let mut out = Output::new();
        if self.details {
            let Reply::Get(stored) = memory.call(Request::Get(Get { key: self.path.clone() }))? else {
                return Err(other_answer().into());
            };
            let mut details = serde_json::json!(stored);
            if let Some(fields) = details.as_object_mut() {
                fields.remove("text");
            }
            out.line(json(&details)?)?;
        } else if is_tree_path(&self.path) {
            let path = self.path.trim_end_matches('/').to_owned();
            let view_range = self.from.map(|from| vec![from, -1]);
            let view = contract::Command::View { path, view_range };
            let Reply::Command(told) = memory.call(Request::Command(view, CommandLimits::default()))? else {
                return Err(other_answer().into());
            };
            out.line(told.result)?;
        } else {
            let Reply::Get(stored) = memory.call(Request::Get(Get { key: self.path.clone() }))? else {
                return Err(other_answer().into());
            };
            let skipped = usize::try_from(self.from.unwrap_or(1) - 1).unwrap_or(usize::MAX);
            stored.text.split_inclusive('\n').skip(skipped).try_for_each(|line| out.text(line))?;
            if out.is_terminal() && !stored.text.ends_with('\n') {
                out.line("")?;
            }
        }
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether this names something in the memory tree.
pub fn is_tree_path(path: &str) -> bool {
    path.strip_prefix("/memories").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What to find.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Recall {
    /// A question in plain words
    #[arg(value_name = "QUERY", required = true)]
    query: Vec<String>,
    /// How many memories to show at most [default: 5]
    #[arg(short, value_name = "N")]
    k: Option<u64>,
    /// Only memories at or below this path
    #[arg(long, value_name = "PATH")]
    under: Option<String>,
    /// Only memories with this tag; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Only memories changed at this time (2026-01-31, 2026-01-31T12:00:00Z) or later
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only memories changed before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only memories whose metadata fits, as in '{"team": "ops", "n": {"gte": 1}}'
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// Most characters of all excerpts together
    #[arg(long, value_name = "N")]
    max_chars: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Recall {
    pub fn run(&self, options: &Options) -> Done {
        let memory = open(options, Access::Existing)?;
        let request = contract::Recall {
            query: self.query.join(" "),
            k: self.k,
            under: self.under.clone(),
            tags: self.tags.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            filter: self.filter.as_deref().map(filter).transpose()?,
            max_chars: self.max_chars,
            ..contract::Recall::default()
        };
        let Reply::Recall(found) = memory.call(Request::Recall(request))? else {
            return Err(other_answer().into());
        };
        let mut out = Output::new();
        if self.json {
            out.line(json(&found)?)?;
        } else {
            show(&found, &mut out)?;
        }
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }
}

fn show(found: &Recalled, out: &mut Output) -> Result<(), Stop> {
    if found.results.is_empty() {
        return out.line("Nothing was found: none of these words is in a memory that was searched.");
    }
    for (place, hit) in found.results.iter().enumerate() {
        let [first, last] = hit.lines;
        let lines = if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
        if place > 0 {
            out.line("")?;
        }
        out.line(format_args!("{}. {} (score {}, {lines})", place + 1, hit.key, hit.score))?;
        if let Some(title) = &hit.title {
            out.line(format_args!("   {title}"))?;
        }
        if !hit.tags.is_empty() {
            out.line(format_args!("   tags: {}", hit.tags.join(", ")))?;
        }
        for line in hit.excerpt.lines() {
            out.line(format_args!("   {line}"))?;
        }
    }
    if found.truncated {
        out.line(format_args!("\n{} of {} that match; -k shows more.", found.returned, found.total))?;
    }
    Ok(())
}

/// What to list.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct List {
    /// Only names that start with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Only memories with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only memories changed at this time (2026-01-31, 2026-01-31T12:00:00Z) or later
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only memories changed before this time
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only memories whose metadata fits, as in '{"team": "ops", "n": {"gte": 1}}'
    #[arg(long, value_name = "JSON")]
    filter: Option<String>,
    /// Show title and tags too
    #[arg(long, conflicts_with = "json")]
    long: bool,
    /// The last changed first, instead of by name
    #[arg(long)]
    recent: bool,
    /// Print a JSON object a line
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self, options: &Options) -> Done {
        let memory = open(options, Access::Existing)?;
        let mut out = Output::new();
        let filter = self.filter.as_deref().map(filter).transpose()?;
        let mut cursor = None;
        loop {
            let page = contract::List {
                prefix: self.prefix.clone(),
                tag: self.tag.clone(),
                since: self.since.clone(),
                until: self.until.clone(),
                filter: filter.clone(),
                order: self.recent.then_some(contract::ListOrder::Recent),
                limit: Some(PAGE.min(options.limits().max_page)),
                cursor,
            };
            let Reply::List(page) = memory.call(Request::List(page))? else {
                return Err(other_answer().into());
            };
            for listed in &page.memories {
                if self.json {
                    out.line(json(listed)?)?;
                } else {
                    out.line(format_args!("{:<24} {:>8} {}", listed.updated_at, listed.bytes, listed.key))?;
                    if self.long {
                        for line in [listed.title.clone(), Some(listed.tags.join(", "))].into_iter().flatten()
                        {
                            if !line.is_empty() {
                                out.line(format_args!("{:34}{line}", ""))?;
                            }
                        }
                    }
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A filter as it was typed.
fn filter(text: &str) -> Result<Map<String, Value>, Stop> {
    serde_json::from_str(text).map_err(|error| {
        Stop::Said(format!(
            "--filter takes a JSON object, such as '{{\"team\": \"ops\"}}': {error}. Put it in single quotes."
        ))
    })
}

/// A value as one line of JSON.
pub fn json(value: &impl Serialize) -> Result<String, Stop> {
    serde_json::to_string(value).map_err(|_| Stop::Said("the answer can't be written as JSON.".into()))
}
