//! Retrieval collections: texts, queries, and which texts answer which query.
//!
//! Owns the formats of LoCoMo (one JSON file for each conversation) and of Cranfield (its three
//! original files). Knows nothing of searching.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Texts and the queries asked of them.
pub struct Collection {
    pub name: String,
    pub texts: Vec<String>,
    pub queries: Vec<Query>,
}

/// A query, and the positions in [`Collection::texts`] of those that answer it.
pub struct Query {
    pub text: String,
    pub relevant: BTreeSet<usize>,
    /// Relevant texts that the collection lacks; they can never be found.
    pub lacking: usize,
}

/// A collection could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CollectionError {
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, #[source] std::io::Error),
    #[error("{0} is not a LoCoMo conversation: {1}")]
    Conversation(PathBuf, #[source] serde_json::Error),
    #[error("{0} holds no collection")]
    Empty(PathBuf),
}

#[derive(Deserialize)]
struct Conversation {
    turns: Vec<Turn>,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Turn {
    id: String,
    speaker: String,
    text: String,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    evidence: Vec<String>,
}

/// LoCoMo: a text for each turn, a query for each question; the turns that hold the evidence are
/// relevant. One collection for each conversation, in the order of their names.
pub fn locomo(folder: &Path) -> Result<Vec<Collection>, CollectionError> {
    let unreadable = |error| CollectionError::Read(folder.to_owned(), error);
    let mut files = Vec::new();
    for file in fs::read_dir(folder).map_err(unreadable)? {
        files.push(file.map_err(unreadable)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    if files.is_empty() {
        return Err(CollectionError::Empty(folder.to_owned()));
    }
    files.iter().map(|file| conversation(file)).collect()
}

fn conversation(file: &Path) -> Result<Collection, CollectionError> {
    let bytes = fs::read(file).map_err(|error| CollectionError::Read(file.to_owned(), error))?;
    let conversation: Conversation = serde_json::from_slice(&bytes)
        .map_err(|error| CollectionError::Conversation(file.to_owned(), error))?;
    let places: BTreeMap<&str, usize> =
        conversation.turns.iter().enumerate().map(|(place, turn)| (turn.id.as_str(), place)).collect();
    let queries = conversation.questions.iter().map(|question| {
        let evidence: BTreeSet<&str> = question.evidence.iter().map(String::as_str).collect();
        let relevant: BTreeSet<usize> = evidence.iter().filter_map(|id| places.get(id).copied()).collect();
        let lacking = evidence.len() - relevant.len();
        Query { text: question.question.clone(), relevant, lacking }
    });
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Collection {
        name: format!("locomo/{stem}"),
        queries: queries.collect(),
        texts: conversation.turns.iter().map(|turn| format!("{}: {}", turn.speaker, turn.text)).collect(),
    })
}

/// Cranfield: a text (title and abstract) for each document, and the queries whose number leaves
/// `remainder` when divided by 2; documents judged 1 to 4 are relevant.
pub fn cranfield(folder: &Path, remainder: usize) -> Result<Collection, CollectionError> {
    let read = |name: &str| {
        let file = folder.join(name);
        fs::read(&file)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|error| CollectionError::Read(file, error))
    };
    let texts: Vec<String> =
        records(&read("cran.all.1400")?).map(|record| record.text(&['T', 'W'])).collect();
    let mut judged: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for line in read("cranqrel")?.lines() {
        let mut numbers = line.split_whitespace().map(str::parse::<usize>);
        let (Some(Ok(query)), Some(Ok(document)), Some(Ok(1..=4))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            continue;
        };
        if (1..=texts.len()).contains(&document) {
            judged.entry(query).or_default().insert(document - 1);
        }
    }
    // The judgements number the queries as they stand in the file, whatever their own number says.
    let queries: Vec<Query> = records(&read("cran.qry")?)
        .enumerate()
        .map(|(place, record)| (place + 1, record))
        .filter(|(number, _)| number % 2 == remainder)
        .filter_map(|(number, record)| {
            let relevant = judged.get(&number)?.clone();
            Some(Query { text: record.text(&['W']), relevant, lacking: 0 })
        })
        .collect();
    if texts.is_empty() || queries.is_empty() {
        return Err(CollectionError::Empty(folder.to_owned()));
    }
    Ok(Collection { name: "cranfield".to_owned(), texts, queries })
}

/// A record of a Cranfield file: its sections by their letter.
struct Record<'a>(Vec<(char, Vec<&'a str>)>);

impl Record<'_> {
    /// The words of some sections, parted by single spaces.
    fn text(&self, sections: &[char]) -> String {
        let lines = sections.iter().flat_map(|wanted| self.0.iter().filter(move |(name, _)| name == wanted));
        let words = lines.flat_map(|(_, lines)| lines).flat_map(|line| line.split_whitespace());
        words.collect::<Vec<_>>().join(" ")
    }
}

fn records(file: &str) -> impl Iterator<Item = Record<'_>> {
    let mut lines = file.lines().peekable();
    std::iter::from_fn(move || {
        lines.find(|line| line.starts_with(".I "))?;
        let mut sections: Vec<(char, Vec<&str>)> = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with(".I ")) {
            match line {
                ".T" | ".A" | ".B" | ".W" => {
                    sections.push((line.chars().nth(1).unwrap_or_default(), Vec::new()))
                }
                _ => sections.last_mut().into_iter().for_each(|(_, lines)| lines.push(line)),
            }
        }
        Some(Record(sections))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cranfield_records_are_read_by_section() {
        let file = ".I 1\n.T\na title\n.A\nsomeone\n.W\nfirst line\nsecond .W line\n.I 7\n.W\nother\n";
        let texts: Vec<String> = records(file).map(|record| record.text(&['T', 'W'])).collect();
        assert_eq!(texts, ["a title first line second .W line", "other"]);
    }
}
