//! Search: the postings of every level, scored and grouped by document.
//!
//! Owns the order of results. Statistics are counted over the postings that are alive at that
//! moment, in all levels together, so that they are exact whatever was removed or flushed.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::DocumentId;
use super::bm25::{Bm25Params, Scorer};
use super::memory_level::Posting;
use super::query::QueryTerm;
use super::roster::{Roster, Totals};

/// A document that matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Which one.
    pub id: DocumentId,
    /// The score of its best passage; above 0.
    pub score: f64,
    /// Where that passage lies in the text, in bytes.
    pub passage: Range<usize>,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The best first; of equal ones that which was inserted first.
    pub hits: Vec<Hit>,
    /// How many documents matched, with those that are not in `hits`.
    pub matched: u64,
}

/// What narrows a search.
pub(super) struct Wanted<'a> {
    pub k: usize,
    pub min_score: Option<f64>,
    pub allowed: Option<&'a dyn Fn(&DocumentId) -> bool>,
}

/// One level as the search sees it.
pub(super) trait Searched {
    fn roster(&self) -> &Roster;
    /// The live postings of a term, ordered by passage.
    fn live_postings(&self, term: &str) -> Cow<'_, [Posting]>;
}

pub(super) fn search(
    levels: &[&dyn Searched],
    totals: &Totals,
    params: Bm25Params,
    terms: &[QueryTerm],
    wanted: &Wanted<'_>,
) -> Found {
    let scorer = Scorer::new(params, totals);
    let mut scores: Vec<Vec<f64>> = levels.iter().map(|_| Vec::new()).collect();
    for (term, times) in terms {
        let postings: Vec<_> = levels.iter().map(|level| level.live_postings(term)).collect();
        let df = postings.iter().map(|postings| postings.len() as u64).sum();
        let weight = scorer.weight(df) * times;
        for ((level, postings), scores) in levels.iter().zip(&postings).zip(&mut scores) {
            let passages = level.roster().passages();
            if scores.is_empty() && !postings.is_empty() {
                *scores = vec![0.0; passages.len()];
            }
            for posting in postings.iter() {
                let at = posting.passage as usize;
                if let (Some(score), Some(passage)) = (scores.get_mut(at), passages.get(at)) {
                    *score += scorer.score(weight, posting.body, posting.head, passage);
                }
            }
        }
    }
    let mut best = Best { k: wanted.k, heap: BinaryHeap::new() };
    let mut matched = 0;
    for (level, scores) in levels.iter().zip(&scores) {
        matched += collect(level.roster(), scores, wanted, &mut best);
    }
    Found { hits: best.into_hits(), matched }
}

/// Offers the best passage of every document that matched; returns how many did.
fn collect(roster: &Roster, scores: &[f64], wanted: &Wanted<'_>, best: &mut Best) -> u64 {
    let mut matched = 0;
    // The passages of a document are neighbours.
    let mut pending: Option<(u32, usize, f64)> = None;
    let mut settle = |(document, passage, score): (u32, usize, f64)| {
        let Some(entry) = roster.entries().get(document as usize) else {
            return;
        };
        if wanted.min_score.is_some_and(|least| score < least)
            || wanted.allowed.is_some_and(|allowed| !allowed(&entry.id))
        {
            return;
        }
        matched += 1;
        let range = roster.passages().get(passage).map_or(0..0, |p| p.start as usize..p.end as usize);
        best.offer(Candidate { score, sequence: entry.sequence, id: entry.id, passage: range });
    };
    for (number, (&score, passage)) in scores.iter().zip(roster.passages()).enumerate() {
        if score <= 0.0 {
            continue;
        }
        pending = match pending {
            Some((document, _, highest)) if document == passage.document && score <= highest => pending,
            Some(other) if other.0 != passage.document => {
                settle(other);
                Some((passage.document, number, score))
            }
            _ => Some((passage.document, number, score)),
        };
    }
    pending.into_iter().for_each(&mut settle);
    matched
}

/// The k best so far, the worst of them on top.
struct Best {
    k: usize,
    heap: BinaryHeap<Candidate>,
}

impl Best {
    fn offer(&mut self, candidate: Candidate) {
        if self.heap.len() < self.k {
            self.heap.push(candidate);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
    }

    fn into_hits(self) -> Vec<Hit> {
        let hit = |c: Candidate| Hit { id: c.id, score: c.score, passage: c.passage };
        self.heap.into_sorted_vec().into_iter().map(hit).collect()
    }
}

/// Ordered so that the better is the lesser.
struct Candidate {
    score: f64,
    sequence: u64,
    id: DocumentId,
    passage: Range<usize>,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.sequence.cmp(&other.sequence))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}
