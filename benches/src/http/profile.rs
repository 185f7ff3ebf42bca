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

    /// The kind of a client's request, by how many it made before: every hundred of them holds the mix, well stirred,
    /// and no two clients go through it in step.
    fn of(client: usize, turn: usize) -> Self {
        // 37 and 100 have no common divisor, so each place of the hundred is met once.
        let place = (turn * 37 + client * 7) % 100;
        let mut upto = 0;
        let found = MIX.iter().find(|(_, share)| {
            upto += share;
            place < upto
        });
        found.map_or(Self::Recall, |(kind, _)| *kind)
    }
}

/// Files of a client that are there before it begins, so that there is always one to forget.
const AHEAD: usize = 5;

/// What one client did so far, as far as its next calls depend on it.
pub struct Hand {
    client: usize,
    memories: usize,
    turns: usize,
    edits: usize,
    /// Those that are still there, the oldest first.
    created: VecDeque<String>,
    next: usize,
}

/// A call to be made.
pub struct Call {
    pub kind: Kind,
    pub tool: &'static str,
    pub arguments: Value,
}

impl Hand {
    /// A client on a store of so many memories.
    pub fn new(client: usize, memories: usize) -> Self {
        Self { client, memories: memories.max(1), turns: 0, edits: 0, created: VecDeque::new(), next: 0 }
    }

    /// What is to be done before the client begins.
    pub fn beginning(&mut self) -> Vec<(&'static str, Value)> {
        let text = format!("Notes of client {}.\nEdits: 0.\n", self.client);
        let own = ("memory", json!({"command": "create", "path": self.path(), "file_text": text}));
        let ahead: Vec<_> = (0..AHEAD).map(|n| self.create(n)).collect();
        std::iter::once(own).chain(ahead).collect()
    }

    /// The client's next call. It is to be made, and made in this order.
    pub fn call(&mut self, request: usize) -> Call {
        let kind = Kind::of(self.client, self.turns);
        self.turns += 1;
        let (tool, arguments) = self.of(kind, request);
        Call { kind, tool, arguments }
    }

    fn of(&mut self, kind: Kind, request: usize) -> (&'static str, Value) {
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
            Kind::Create => self.create(request),
            Kind::Forget => {
                let path = self.created.pop_front().unwrap_or_default();
                ("forget", json!({"key": path}))
            }
        }
    }

    fn create(&mut self, n: usize) -> (&'static str, Value) {
        let path = format!("/memories/load/{}/{}.md", self.client, self.next);
        self.next += 1;
        self.created.push_back(path.clone());
        ("memory", json!({"command": "create", "path": path, "file_text": note(n)}))
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
    fn every_hundred_requests_of_a_client_hold_the_mix() {
        assert_eq!(MIX.iter().map(|(_, share)| share).sum::<usize>(), 100);
        for client in [0, 1, 7, 199] {
            for (kind, share) in MIX {
                let made = (300..400).filter(|turn| Kind::of(client, *turn) == kind).count();
                assert_eq!(made, share, "{kind:?}");
            }
        }
    }

    #[test]
    fn there_is_always_something_to_forget_and_the_store_does_not_grow() {
        for client in 0..100 {
            let mut hand = Hand::new(client, 10);
            assert_eq!(hand.beginning().len(), 1 + AHEAD);
            for request in 0..1_000 {
                let call = hand.call(request);
                assert_ne!(call.arguments["key"], "", "request {request} of client {client}");
                assert!(hand.created.len() <= 2 * AHEAD);
            }
            assert_eq!(hand.created.len(), AHEAD);
        }
    }
}
