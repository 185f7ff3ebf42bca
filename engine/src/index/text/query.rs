//! Queries: what to look up for a piece of plain language.
//!
//! Owns what a query leaves out. There is no query syntax, so no text is an error.

use std::collections::HashMap;

use super::analyser::{Origin, each_term};

/// Words that tell nothing of what is asked for: articles, pronouns, prepositions, conjunctions,
/// auxiliaries and the words that questions begin with. They count only in a query that has no others.
#[rustfmt::skip]
const FUNCTION_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "anybody", "anyone", "anything", "are", "arent", "as",
    "at", "be", "because", "been", "being", "between", "both", "but", "by", "can", "cant", "could",
    "couldnt", "did", "didnt", "do", "does", "doesnt", "doing", "dont", "during", "each", "either", "else",
    "ever", "every", "everyone", "everything", "for", "from", "had", "hadnt", "has", "hasnt", "have",
    "havent", "having", "he", "her", "hers", "him", "his", "how", "i", "if", "im", "in", "into", "is",
    "isnt", "it", "its", "ive", "just", "me", "might", "more", "most", "much", "must", "my", "neither",
    "no", "nor", "not", "now", "of", "off", "on", "once", "only", "or", "other", "others", "ought", "our",
    "ours", "out", "over", "own", "rather", "s", "same", "shall", "she", "should", "shouldnt", "since",
    "so", "some", "somebody", "someone", "something", "still", "such", "t", "than", "that", "thats", "the",
    "their", "them", "then", "there", "theres", "these", "they", "theyre", "theyve", "this", "those", "to",
    "too", "under", "until", "up", "upon", "very", "via", "was", "wasnt", "we", "were", "werent", "weve",
    "what", "whats", "when", "where", "whether", "which", "while", "who", "whom", "whose", "why", "will",
    "with", "within", "without", "wont", "would", "wouldnt", "yes", "yet", "you", "your", "youre", "yours",
    "youve",
];

/// A term to look up, and how often the query has it.
pub(super) type QueryTerm = (Box<str>, f64);

/// A query, analysed. Every text is one; one without any word finds nothing. `Debug` is not derived:
/// it holds words.
#[derive(Default)]
pub struct Query {
    /// The distinct terms, in the order of their first occurrence.
    terms: Vec<QueryTerm>,
    places: HashMap<Box<str>, usize>,
}

impl Query {
    /// Analyses plain language. Linear in the length of the text.
    pub fn new(text: &str) -> Self {
        let mut telling = Self::default();
        let mut others = Self::default();
        each_term(text, |term| {
            // One kana or syllable out of many tells little; the pairs find the words.
            let tells = match term.origin {
                Origin::Single => false,
                _ => FUNCTION_WORDS.binary_search(&term.word).is_err(),
            };
            if tells { telling.add(term.term) } else { others.add(term.term) }
        });
        if telling.terms.is_empty() { others } else { telling }
    }

    pub(super) fn terms(&self) -> &[QueryTerm] {
        &self.terms
    }

    /// Which of the terms this one is.
    pub(super) fn place(&self, term: &str) -> Option<usize> {
        self.places.get(term).copied()
    }

    fn add(&mut self, term: &str) {
        match self.place(term).and_then(|place| self.terms.get_mut(place)) {
            Some((_, times)) => *times += 1.0,
            None => {
                self.places.insert(term.into(), self.terms.len());
                self.terms.push((term.into(), 1.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(query: &str) -> Vec<String> {
        Query::new(query).terms.into_iter().map(|(term, _)| term.into()).collect()
    }

    #[test]
    fn function_words_are_in_order_for_the_search() {
        assert!(FUNCTION_WORDS.is_sorted());
    }

    #[test]
    fn function_words_count_only_when_there_is_nothing_else() {
        assert_eq!(words("What did the dog do?"), ["dog"]);
        assert_eq!(words("to be or not to be"), ["to", "be", "or", "not"]);
        assert_eq!(words("who is it"), ["who", "is", "it"]);
        assert_eq!(words("の"), ["の"]);
        assert_eq!(words("집 앞 cafe"), ["집", "앞", "cafe"]);
        assert_eq!(words("猫です"), ["猫", "猫で", "です"]);
        assert_eq!(words("?! ..."), Vec::<String>::new());
    }
}
