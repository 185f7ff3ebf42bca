//! The memory level: an inverted index in plain collections.
//!
//! Owns recent passages. Insertion and removal take effect at once and leave nothing behind: a
//! removed document's postings are taken out, and a term that no passage holds any more is dropped.

use std::sync::Arc;

use hashbrown::HashMap;

use super::DocumentId;
use super::passages::Analysed;
use super::roster::{Entry, Passage, Roster, Totals};

/// How many numbers of removed passages may stay taken beyond the number of live documents.
const SPARE_HOLES: usize = 1_024;

/// Where and how often a term occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Posting {
    pub passage: u32,
    pub body: u16,
    pub head: u16,
}

/// A small index that changes in place.
#[derive(Default)]
pub(super) struct MemoryLevel {
    roster: Roster,
    totals: Totals,
    dictionary: HashMap<Arc<str>, u32>,
    lists: Vec<List>,
    /// Lists without a term, for reuse.
    free: Vec<u32>,
    /// The lists that each passage is in.
    forward: Vec<Box<[u32]>>,
}

struct List {
    term: Arc<str>,
    /// Ordered by passage.
    postings: Vec<Posting>,
}

impl MemoryLevel {
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    pub fn postings(&self, term: &str) -> &[Posting] {
        self.dictionary
            .get(term)
            .and_then(|&list| self.lists.get(list as usize))
            .map_or(&[], |list| &list.postings)
    }

    /// The terms of one passage, with their counts.
    pub fn terms_of(&self, passage: u32) -> impl Iterator<Item = (&str, Posting)> {
        let lists = self.forward.get(passage as usize).map_or(&[][..], |lists| lists);
        lists.iter().filter_map(move |&list| {
            let list = self.lists.get(list as usize)?;
            let at = list.postings.binary_search_by_key(&passage, |posting| posting.passage).ok()?;
            Some((&*list.term, *list.postings.get(at)?))
        })
    }

    /// Adds a document, which must not be in the level yet.
    pub fn insert(&mut self, document: Analysed, sequence: u64) {
        let passages = document.passages.iter().map(|passage| Passage {
            document: 0,
            start: passage.range.start,
            end: passage.range.end,
            body: passage.body,
            head: passage.head,
        });
        let Some(entry) = self.roster.push(document.id, sequence, passages) else {
            return;
        };
        let lists: Vec<u32> = document.terms.iter().map(|term| self.list(term)).collect();
        for (number, passage) in entry.passages().zip(document.passages) {
            let mut forward = Vec::with_capacity(passage.counts.len());
            for count in passage.counts {
                let Some(&number_of_list) = lists.get(count.term as usize) else {
                    continue;
                };
                let Some(list) = self.lists.get_mut(number_of_list as usize) else {
                    continue;
                };
                // Numbers only grow, so that pushing keeps the order.
                list.postings.push(Posting { passage: number, body: count.body, head: count.head });
                forward.push(number_of_list);
            }
            self.forward.push(forward.into());
        }
        self.totals.add(&self.roster.share(&entry));
    }

    /// Removes a document with everything that only it held.
    pub fn remove(&mut self, id: &DocumentId) -> bool {
        let Some(entry) = self.roster.forget(id) else {
            return false;
        };
        self.totals.subtract(&self.roster.share(&entry));
        for passage in entry.passages() {
            let lists = self.forward.get_mut(passage as usize).map(std::mem::take).unwrap_or_default();
            for number in lists {
                let Some(list) = self.lists.get_mut(number as usize) else {
                    continue;
                };
                if let Ok(at) = list.postings.binary_search_by_key(&passage, |posting| posting.passage) {
                    list.postings.remove(at);
                }
                if list.postings.is_empty() {
                    self.dictionary.remove(&list.term);
                    *list = List { term: "".into(), postings: Vec::new() };
                    self.free.push(number);
                }
            }
        }
        let holes = self.roster.passages().len() as u64 - self.totals.passages;
        if holes > self.totals.passages + SPARE_HOLES as u64 {
            self.close_holes();
        }
        true
    }

    fn list(&mut self, term: &str) -> u32 {
        if let Some(&list) = self.dictionary.get(term) {
            return list;
        }
        let term: Arc<str> = term.into();
        let list = List { term: term.clone(), postings: Vec::new() };
        let reused = self.free.pop().filter(|&number| (number as usize) < self.lists.len());
        let number = match reused {
            Some(number) => {
                if let Some(place) = self.lists.get_mut(number as usize) {
                    *place = list;
                }
                number
            }
            None => {
                self.lists.push(list);
                (self.lists.len() - 1) as u32
            }
        };
        self.dictionary.insert(term, number);
        number
    }

    /// Numbers the live passages anew, so that a memory that is rewritten for ever takes no more
    /// room than one that is written once.
    fn close_holes(&mut self) {
        let old = std::mem::take(&mut self.roster);
        let forward = std::mem::take(&mut self.forward);
        let mut renumbered = vec![None; old.passages().len()];
        let live = |entry: &&Entry| old.is_known(entry);
        for entry in old.entries().iter().filter(live) {
            let passages = old.passages_of(entry).iter().copied();
            let Some(new) = self.roster.push(entry.id, entry.sequence, passages) else {
                continue;
            };
            for (from, to) in entry.passages().zip(new.passages()) {
                if let Some(place) = renumbered.get_mut(from as usize) {
                    *place = Some(to);
                }
            }
        }
        for list in &mut self.lists {
            list.postings.retain_mut(|posting| {
                let number = renumbered.get(posting.passage as usize).copied().flatten();
                posting.passage = number.unwrap_or_default();
                number.is_some()
            });
            list.postings.shrink_to_fit();
        }
        self.forward =
            forward.into_iter().zip(renumbered).filter_map(|(lists, new)| new.map(|_| lists)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::super::passages::{Document, analyse};
    use super::*;

    fn document(id: u8, text: &str) -> Analysed {
        analyse(&Document { id: [id; 16], name: "", title: None, tags: &[], text })
    }

    #[test]
    fn a_removed_document_leaves_no_term_behind() {
        let mut level = MemoryLevel::default();
        level.insert(document(1, "alpha beta"), 1);
        level.insert(document(2, "beta gamma"), 2);
        assert!(level.remove(&[1; 16]));
        assert!(!level.remove(&[1; 16]));
        assert!(!level.dictionary.contains_key("alpha"));
        assert!(level.lists.iter().all(|list| &*list.term != "alpha"));
        assert_eq!(level.postings("beta").len(), 1);
        assert_eq!(level.totals(), &level.roster().totals());
    }

    #[test]
    fn rewriting_for_ever_does_not_grow_the_level() {
        let mut level = MemoryLevel::default();
        level.insert(document(1, "stays put"), 0);
        for i in 0..10_000 {
            level.insert(document(2, &format!("draft number {i}")), i + 1);
            assert!(level.remove(&[2; 16]));
        }
        assert!(level.roster().passages().len() < 4_000);
        assert!(level.lists.len() < 100);
        assert_eq!(level.postings("put").len(), 1);
        assert_eq!(level.terms_of(0).count(), 2);
    }
}
