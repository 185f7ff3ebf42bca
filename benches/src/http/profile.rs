//! What the clients do: a mix of every kind of call that agents make, which leaves the store as large as it was.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::engine::note;

/// A kind of call, and how many in a hundred are of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Recall,
    Get,
    View,
    List,
    Remember,
    StrReplace,
    Create,
    Forget,
}

/// In a hundred. As many files are forgotten as are created.
pub const MIX: [(Kind, usize); 8] = [
    (Kind::Recall, 30),
    (Kind::Get, 20),
    (Kind::View, 15),
    (Kind::List, 10),
    (Kind::Remember, 10),
    (Kind::StrReplace, 5),
    (Kind::Create, 5),
    (Kind::Forget, 5),
];

/// Keys that `remember` writes, again and again.
const KEYS: usize = 500;

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Recall => "recall",
            Self::Get => "get",
            Self::View => "memory view",
            Self::List => "list",
            Self::Remember => "remember",
            Self::StrReplace => "memory str_replace",
            Self::Create => "memory create",
            Self::Forget => "forget",
        }
    }

    /// The kind of a request by its number: every hundred of them holds the mix, well stirred.
    pub fn of(request: usize) -> Self {
        // 37 and 100 have no common divisor, so each place of the hundred is met once.
        let place = (request * 37 + request / 100) % 100;
        let mut upto = 0;
        let found = MIX.iter().find(|(_, share)| {
            upto += share;
            place < upto
        });
        found.map_or(Kind::Recall, |(kind, _)| *kind)
    }
}

/// What one client did so far, as far as its next calls depend on it.
pub struct Hand {
    client: usize,
    memories: usize,
    edits: usize,
    created: VecDeque<String>,
    next: usize,
}

impl Hand {
    /// A client on a store of so many memories.
    pub fn new(client: usize, memories: usize) -> Self {
        Self { client, memories: memories.max(1), edits: 0, created: VecDeque::new(), next: 0 }
    }

    /// The file that the client edits, to be made before it begins.
    pub fn file(&self) -> (&'static str, Value) {
        let text = format!("Notes of client {}.\nEdits: 0.\n", self.client);
        ("memory", json!({"command": "create", "path": self.path(), "file_text": text}))
    }

    /// Tool and arguments of a call of a kind. It is to be made, and made in this order.
    pub fn call(&mut self, kind: Kind, request: usize) -> (&'static str, Value) {
        // One of the memories that were there at first.
        let n = request.wrapping_mul(7_919) % self.memories;
        let note_path = format!("/memories/topic-{}/note-{n}.md", n % 50);
        match kind {
            Kind::Recall => (
                "recall",
                json!({"query": format!("what did {} say before release {}?", first_words(n), n % 13)}),
            ),
            Kind::Get => ("get", json!({"key": note_path})),
            Kind::View => ("memory", json!({"command": "view", "path": note_path})),
            Kind::List => ("list", json!({"limit": 20, "prefix": format!("/memories/topic-{}/", n % 50)})),
            Kind::Remember => {
                ("remember", json!({"key": format!("fact {}", request % KEYS), "text": note(request)}))
            }
            Kind::StrReplace => {
                let (old, new) = (format!("Edits: {}.", self.edits), format!("Edits: {}.", self.edits + 1));
                self.edits += 1;
                (
                    "memory",
                    json!({"command": "str_replace", "path": self.path(), "old_str": old, "new_str": new}),
                )
            }
            // One that has nothing to forget makes something.
            Kind::Forget if !self.created.is_empty() => {
                let path = self.created.pop_front().unwrap_or_default();
                ("forget", json!({"key": path}))
            }
            Kind::Create | Kind::Forget => {
                let path = format!("/memories/load/{}/{}.md", self.client, self.next);
                self.next += 1;
                self.created.push_back(path.clone());
                ("memory", json!({"command": "create", "path": path, "file_text": note(request)}))
            }
        }
    }

    fn path(&self) -> String {
        format!("/memories/clients/{}.md", self.client)
    }
}

/// Who a note is about, and what.
fn first_words(n: usize) -> String {
    let note = note(n);
    note.split_whitespace()
        .take(1)
        .chain(note.split_whitespace().skip(7).take(3))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hundred_requests_hold_the_mix() {
        assert_eq!(MIX.iter().map(|(_, share)| share).sum::<usize>(), 100);
        for hundred in [0, 1, 7, 1_234] {
            for (kind, share) in MIX {
                let made = (0..100).filter(|n| Kind::of(hundred * 100 + n) == kind).count();
                assert_eq!(made, share, "{kind:?}");
            }
        }
    }
}
