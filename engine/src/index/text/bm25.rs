//! The one scorer: BM25 over passages.
//!
//! Owns the formula and its parameters. Where the counts come from is the business of the levels.
//!
//! BM25 is as in Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
//! (2009), with the always positive inverse document frequency that Lucene and tantivy use; the two
//! fields are combined before saturation as in Robertson, Zaragoza and Taylor, "Simple BM25
//! extension to multiple weighted fields" (CIKM 2004).

use super::roster::{Passage, Totals};

/// What can be set about the scorer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25Params {
    /// How slowly repetitions of a word saturate; at least 0.
    pub k1: f64,
    /// How much long passages are discounted; 0 (not at all) to 1 (fully).
    pub b: f64,
    /// What an occurrence in the head (title, name, tags) counts, where one in the text counts 1;
    /// at least 0, and 0 ignores the head.
    pub head_weight: f64,
}

impl Default for Bm25Params {
    fn default() -> Self {
        // Memories are short: their length says less about them than that of articles does.
        Self { k1: 1.2, b: 0.3, head_weight: 0.5 }
    }
}

impl Bm25Params {
    /// The same parameters, with values that have no meaning replaced by the nearest that has one.
    pub(super) fn sane(self) -> Self {
        let or_default = |value: f64, default: f64| if value.is_finite() { value } else { default };
        let default = Self::default();
        Self {
            k1: or_default(self.k1, default.k1).max(0.0),
            b: or_default(self.b, default.b).clamp(0.0, 1.0),
            head_weight: or_default(self.head_weight, default.head_weight).max(0.0),
        }
    }
}

/// The scorer of one search: parameters and what the whole index looks like at that moment.
pub(super) struct Scorer {
    params: Bm25Params,
    passages: f64,
    /// `k1 * (1 - b)` and `k1 * b / average length`: what is left to do per passage.
    fixed: f64,
    per_length: f64,
}

impl Scorer {
    pub fn new(params: Bm25Params, totals: &Totals) -> Self {
        let passages = totals.passages as f64;
        let length = totals.body as f64 + params.head_weight * totals.head as f64;
        let average = if length > 0.0 { length / passages } else { 1.0 };
        Self {
            params,
            passages,
            fixed: params.k1 * (1.0 - params.b),
            per_length: params.k1 * params.b / average,
        }
    }

    /// The weight of a term that `df` passages hold.
    pub fn weight(&self, df: u64) -> f64 {
        let df = df as f64;
        let idf = (1.0 + (self.passages - df + 0.5) / (df + 0.5)).ln();
        idf * (1.0 + self.params.k1)
    }

    /// What an occurrence count of `body` and `head` in `passage` makes of a term's weight.
    pub fn score(&self, weight: f64, body: u16, head: u16, passage: &Passage) -> f64 {
        let frequency = f64::from(body) + self.params.head_weight * f64::from(head);
        let length = f64::from(passage.body) + self.params.head_weight * f64::from(passage.head);
        let norm = self.fixed + self.per_length * length;
        // Zero only where k1 is 0 and the head does not count.
        if frequency > 0.0 { weight * frequency / (frequency + norm) } else { 0.0 }
    }
}
