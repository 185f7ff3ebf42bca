//! Measures of a ranking with binary relevance.
//!
//! Owns recall, hit rate and nDCG (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
//! techniques", TOIS 2002), all cut at [`DEPTH`].

use std::collections::BTreeSet;

use serde::Serialize;

/// How many results count.
pub const DEPTH: usize = 10;

/// The measures of one ranking, or their mean over several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Scores {
    /// The share of the relevant texts that were found.
    #[serde(rename = "recall@10")]
    pub recall: f64,
    /// Whether any was found.
    #[serde(rename = "hit@10")]
    pub hit: f64,
    /// How far up they were found, against the best possible order.
    #[serde(rename = "ndcg@10")]
    pub ndcg: f64,
}

impl Scores {
    /// Scores one ranking; `lacking` relevant texts are not there to be found.
    pub fn of(ranked: &[usize], relevant: &BTreeSet<usize>, lacking: usize) -> Self {
        let all = relevant.len() + lacking;
        if all == 0 {
            return Self::default();
        }
        let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
        let found: Vec<usize> = ranked
            .iter()
            .take(DEPTH)
            .enumerate()
            .filter_map(|(rank, text)| relevant.contains(text).then_some(rank))
            .collect();
        let ideal: f64 = (0..all.min(DEPTH)).map(gain).sum();
        Self {
            recall: found.len() as f64 / all as f64,
            hit: if found.is_empty() { 0.0 } else { 1.0 },
            ndcg: found.iter().map(|&rank| gain(rank)).sum::<f64>() / ideal,
        }
    }

    /// The mean of each measure; zero for none.
    pub fn mean(scores: &[Self]) -> Self {
        let count = scores.len().max(1) as f64;
        let mean = |measure: fn(&Self) -> f64| scores.iter().map(measure).sum::<f64>() / count;
        Self { recall: mean(|s| s.recall), hit: mean(|s| s.hit), ndcg: mean(|s| s.ndcg) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_agree_with_hand_worked_ones() {
        let scores = Scores::of(&[4, 1, 7], &BTreeSet::from([1, 2]), 0);
        assert_eq!((scores.recall, scores.hit), (0.5, 1.0));
        assert!((scores.ndcg - 0.6309 / 1.6309).abs() < 1e-3);
        assert_eq!(Scores::of(&[1, 2], &BTreeSet::from([1, 2]), 0).ndcg, 1.0);
        assert_eq!(Scores::of(&[], &BTreeSet::from([1]), 1), Scores::default());
        assert_eq!(Scores::of(&[1], &BTreeSet::from([1]), 1).recall, 0.5);
    }
}
