//! The promises of the index as a whole: what is found, in what order, and that neither flushing nor
//! merging nor removing changes it.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::sample::Index as Pick;
use tantivy::collector::TopDocs;
use tantivy::directory::RamDirectory;
use tantivy::query::{BooleanQuery, Occur, Query as TantivyQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{Index, SingleSegmentIndexWriter, TantivyDocument, Term};

use super::analyser::each_term;
use super::*;

fn id(number: usize) -> DocumentId {
    (number as u128).to_be_bytes()
}

fn number(id: &DocumentId) -> usize {
    u128::from_be_bytes(*id) as usize
}

fn analysed(number: usize, text: &str) -> Analysed {
    analyse(&Document { id: id(number), name: "", title: None, tags: &[], text })
}

fn index_of(texts: &[&str]) -> TextIndex {
    let mut index = TextIndex::default();
    for (number, text) in texts.iter().enumerate() {
        index.insert(analysed(number, text));
    }
    index
}

fn found(index: &TextIndex, query: &str) -> Vec<usize> {
    index.search(&Query::new(query), 10, None, None).hits.iter().map(|hit| number(&hit.id)).collect()
}

fn run_all(index: &mut TextIndex, due: impl Fn(&TextIndex) -> Option<FlushJob>) {
    while let Some(job) = due(index) {
        index.install(job.run().expect("tantivy writes to memory"));
    }
}

/// Moves everything into segments.
fn flush(index: &mut TextIndex) {
    index.set_aside();
    run_all(index, TextIndex::flush_due);
}

#[test]
fn a_write_is_found_by_the_next_search_and_a_removal_by_none() {
    let mut index = index_of(&["the quick fox", "a lazy dog"]);
    assert_eq!(found(&index, "foxes"), [0]);
    index.insert(analysed(7, "another fox"));
    assert_eq!(found(&index, "fox"), [7, 0]);
    assert!(index.remove(&id(0)) && !index.remove(&id(0)));
    assert_eq!(found(&index, "fox"), [7]);
    assert_eq!((index.documents(), index.passages(), index.segments()), (2, 2, 0));
}

#[test]
fn inserting_the_same_id_again_replaces_the_document() {
    let mut index = index_of(&["old words"]);
    flush(&mut index);
    index.insert(analysed(0, "new words"));
    assert_eq!((found(&index, "old"), found(&index, "words")), (vec![], vec![0]));
    assert_eq!(index.documents(), 1);
}

#[test]
fn long_tokens_that_differ_in_the_last_character_stay_apart() {
    let token = |last: &str| format!("{}{last}", "k3Xv".repeat(50));
    let index = index_of(&[&token("a"), &token("b")]);
    assert_eq!(found(&index, &token("a")).first(), Some(&0));
    assert_eq!(found(&index, &token("b")).first(), Some(&1));
    let huge = "z".repeat(70_000);
    let index = index_of(&["a small one", &huge]);
    assert_eq!(found(&index, &huge), [1]);
}

#[test]
fn an_emoji_alone_finds_its_memory() {
    let index = index_of(&["deploy 🚀 friday", "deploy 🐢 monday", "family 👩\u{200D}👩\u{200D}👧 trip"]);
    assert_eq!(found(&index, "🚀"), [0]);
    assert_eq!(found(&index, "🐢"), [1]);
    assert_eq!(found(&index, "👧"), [2]);
}

#[test]
fn no_query_is_an_error() {
    let index = index_of(&["plain words", "AND OR NOT"]);
    for query in
        ["", " ", "!?.,", "\"", "(", "a:b", "+", "-", "*", "AND", "NOT (", "[1 TO", "🦀🦀", "\0", "~^"]
    {
        let found = index.search(&Query::new(query), 5, None, None);
        assert_eq!(found.hits.len() as u64, found.matched, "{query}");
    }
    assert_eq!(found(&index, "not"), [1]);
}

#[test]
fn codes_rank_before_words_that_look_like_them() {
    let index = index_of(&[
        "GBs of old logs",
        "link runs at 12 GB/s",
        "release v1.2.3 is out",
        "release v1.2.4 is out",
    ]);
    assert_eq!(found(&index, "GB/s").first(), Some(&1));
    assert_eq!(found(&index, "v1.2.3").first(), Some(&2));
    assert_eq!(found(&index, "v1.2.4").first(), Some(&3));
    let index =
        index_of(&["call parseHttpHeader first", "see src/net/http_header.rs", "ask ann@example.com"]);
    assert_eq!(found(&index, "header").len(), 2);
    assert_eq!(found(&index, "parsehttpheader"), [0]);
    assert_eq!(found(&index, "http_header.rs").first(), Some(&1));
    assert_eq!(found(&index, "example"), [2]);
}

#[test]
fn scripts_without_spaces_are_searched_inside() {
    let index = index_of(&["東京都庁に行く", "京都の寺", "서울에서 만나요", "ฉันรักประเทศไทย", "我喜欢喝绿茶"]);
    assert_eq!(found(&index, "東京").first(), Some(&0));
    assert_eq!(found(&index, "京都").first(), Some(&1));
    assert_eq!(found(&index, "서울"), [2]);
    assert_eq!(found(&index, "ประเทศ"), [3]);
    assert_eq!(found(&index, "你喝茶吗"), [4]);
    assert_eq!(found(&index, "茶"), [4]);
}

#[test]
fn spelling_of_case_and_diacritics_does_not_matter() {
    let index = index_of(&["Café Müller", "cafe\u{301} muller", "Съёмка"]);
    assert_eq!(found(&index, "CAFE MÜLLER"), [0, 1]);
    assert_eq!(found(&index, "съемка"), [2]);
}

#[test]
fn title_name_and_tags_are_found_but_weigh_less_than_the_text() {
    let mut index = TextIndex::default();
    let tags = ["urgent".to_owned()];
    let headed =
        Document { id: id(0), name: "zebra.md", title: Some("Okapi"), tags: &tags, text: "some animal" };
    index.insert(analyse(&headed));
    index.insert(analysed(1, "zebra notes"));
    assert_eq!(found(&index, "zebra"), [1, 0]);
    assert_eq!(found(&index, "okapi"), [0]);
    assert_eq!(found(&index, "urgent"), [0]);
}

#[test]
fn a_long_memory_is_one_result_with_its_best_passage() {
    let text = format!("{}the secret needle {}", "hay ".repeat(900), "straw ".repeat(900));
    let index = index_of(&["needle", &text]);
    let found = index.search(&Query::new("needle"), 10, None, None);
    assert_eq!((found.matched, found.hits.len()), (2, 2));
    let passage = found.hits.iter().find(|hit| number(&hit.id) == 1).map(|hit| hit.passage.clone());
    let passage = passage.and_then(|range| text.get(range)).unwrap_or_default();
    assert!(passage.contains("needle") && passage.split(' ').count() < 300);
}

#[test]
fn equal_scores_are_in_the_order_of_insertion() {
    let mut index = TextIndex { large_level: 3, ..TextIndex::default() };
    for number in [5, 3, 9, 1, 7] {
        index.insert(analysed(number, "same words"));
        run_all(&mut index, TextIndex::flush_due);
    }
    assert_eq!(found(&index, "words"), [5, 3, 9, 1, 7]);
    assert_eq!(index.search(&Query::new("words"), 2, None, None).hits.len(), 2);
}

#[test]
fn matched_counts_what_the_filters_let_pass() {
    let index = index_of(&["apple pie", "apple", "banana", "apple apple tart with cream and sugar on top"]);
    let even = |id: &DocumentId| number(id).is_multiple_of(2);
    let all = index.search(&Query::new("apple"), 1, None, None);
    assert_eq!((all.matched, all.hits.len()), (3, 1));
    assert_eq!(index.search(&Query::new("apple"), 10, None, Some(&even)).matched, 1);
    assert_eq!(index.search(&Query::new("apple"), 0, None, None).matched, 3);
    let best = all.hits.first().map(|hit| hit.score);
    assert_eq!(index.search(&Query::new("apple"), 10, best, None).matched, 1);
    let asked = Cell::new(0);
    let count = |_: &DocumentId| {
        asked.set(asked.get() + 1);
        true
    };
    index.search(&Query::new("banana"), 10, None, Some(&count));
    assert_eq!(asked.get(), 1);
}

#[test]
fn small_stores_never_start_a_writer() {
    let mut index = TextIndex::default();
    for number in 0..5_000 {
        index.insert(analysed(number, "short memory"));
    }
    assert!(index.flush_due().is_none() && index.erase_due().is_none());
}

#[test]
fn segments_are_merged_and_worn_ones_rewritten() {
    let mut index = TextIndex { large_level: 10, ..TextIndex::default() };
    for number in 0..400 {
        index.insert(analysed(number, "several short memories"));
        run_all(&mut index, TextIndex::flush_due);
    }
    assert!((1..=10).contains(&index.segments()), "{}", index.segments());
    for number in 0..390 {
        assert!(index.remove(&id(number)));
    }
    run_all(&mut index, TextIndex::flush_due);
    let held: usize = index.settled.iter().map(|level| level.level.roster().passages().len()).sum();
    assert!(held < 20, "{held}");
    assert_eq!(index.documents(), 10);
}

#[test]
fn erasing_leaves_no_term_of_a_removed_document() {
    let mut index = index_of(&["alpha", "beta", "gamma"]);
    flush(&mut index);
    index.insert(analysed(3, "delta"));
    index.insert(analysed(4, "epsilon"));
    index.set_aside();
    assert!(index.remove(&id(1)) && index.remove(&id(3)));
    run_all(&mut index, TextIndex::erase_due);
    for level in &index.settled {
        assert!(level.mask.is_empty());
        assert!(level.live_postings("beta").is_empty() && level.live_postings("delta").is_empty());
    }
    assert_eq!(found(&index, "alpha epsilon gamma").len(), 3);
}

#[test]
fn jobs_and_analysed_documents_can_cross_threads() {
    fn sendable<T: Send>() {}
    fn shareable<T: Send + Sync>() {}
    sendable::<Analysed>();
    sendable::<FlushJob>();
    sendable::<FlushedSegment>();
    sendable::<Retired>();
    shareable::<TextIndex>();
}

#[test]
fn a_job_that_ran_twice_is_installed_once() {
    let mut index = index_of(&["alpha", "beta"]);
    index.set_aside();
    let jobs = [index.flush_due(), index.flush_due()];
    for job in jobs.into_iter().flatten() {
        index.install(job.run().expect("tantivy writes to memory"));
    }
    assert_eq!((index.documents(), index.segments(), found(&index, "alpha")), (2, 1, vec![0]));
}

/// tantivy's own index and scorer over the same terms.
fn oracle(texts: &[String], query: &str) -> Vec<(usize, f32)> {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(true)
        .set_index_option(IndexRecordOption::WithFreqs);
    let mut schema = Schema::builder();
    let field: Field = schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing));
    let mut writer: SingleSegmentIndexWriter = Index::builder()
        .schema(schema.build())
        .single_segment_index_writer(RamDirectory::create(), 16 << 20)
        .expect("an index in memory");
    for text in texts {
        let mut tokens = Vec::new();
        each_term(text, |term| {
            tokens.push(Token { text: term.term.to_owned(), position: 0, ..Token::default() })
        });
        let mut document = TantivyDocument::default();
        document.add_pre_tokenized_text(field, PreTokenizedString { text: String::new(), tokens });
        writer.add_document(document).expect("a document");
    }
    let index = writer.finalize().expect("a segment");
    let mut clauses: Vec<(Occur, Box<dyn TantivyQuery>)> = Vec::new();
    for (term, times) in Query::new(query).terms() {
        for _ in 0..*times as usize {
            let term = TermQuery::new(Term::from_field_text(field, term), IndexRecordOption::WithFreqs);
            clauses.push((Occur::Should, Box::new(term)));
        }
    }
    let searcher = index.reader().expect("a reader").searcher();
    let top = TopDocs::with_limit(texts.len()).order_by_score();
    let top = searcher.search(&BooleanQuery::new(clauses), &top).expect("a search");
    top.into_iter().map(|(score, address)| (address.doc_id as usize, score)).collect()
}

fn words(most: usize) -> impl Strategy<Value = String> {
    let word =
        prop::sample::select(vec!["ape", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "yak", "zho"]);
    prop::collection::vec(word, 1..most).prop_map(|words| words.join(" "))
}

#[derive(Clone, Debug)]
enum Step {
    Insert(String),
    Remove(Pick),
    SetAside,
    Flush,
    Erase,
    /// Removals between the start and the end of a job.
    FlushMeanwhile(Pick, String),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => words(12).prop_map(Step::Insert),
        1 => words(700).prop_map(Step::Insert),
        3 => any::<Pick>().prop_map(Step::Remove),
        1 => Just(Step::SetAside),
        1 => Just(Step::Flush),
        1 => Just(Step::Erase),
        1 => (any::<Pick>(), words(12)).prop_map(|(pick, text)| Step::FlushMeanwhile(pick, text)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn scores_and_order_are_those_of_tantivy(
        texts in prop::collection::vec(words(40), 1..30), query in words(5)
    ) {
        let mut index = TextIndex::new(Bm25Params { k1: 1.2, b: 0.75, head_weight: 0.5 });
        for (number, text) in texts.iter().enumerate() {
            index.insert(analysed(number, text));
        }
        let expected = oracle(&texts, &query);
        for flushed in [false, true] {
            if flushed {
                flush(&mut index);
            }
            let ours = index.search(&Query::new(&query), texts.len(), None, None).hits;
            prop_assert_eq!(ours.len(), expected.len());
            for (rank, hit) in ours.iter().enumerate() {
                let same = expected.iter().find(|(other, _)| *other == number(&hit.id)).map(|&(_, score)| score);
                let same = f64::from(same.unwrap_or_default());
                prop_assert!((hit.score - same).abs() <= 1e-3 * same, "{} is not {}", hit.score, same);
                let at_rank = expected.get(rank).map_or(0.0, |&(_, score)| f64::from(score));
                prop_assert!((hit.score - at_rank).abs() <= 1e-3 * at_rank, "another order at {}", rank);
            }
        }
    }

    #[test]
    fn any_history_answers_as_if_the_survivors_had_been_indexed_afresh(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut index = TextIndex { large_level: 4, ..TextIndex::default() };
        let mut model: Vec<(usize, String)> = Vec::new();
        let remove = |index: &mut TextIndex, model: &mut Vec<(usize, String)>, pick: Pick| {
            if !model.is_empty() {
                let (number, _) = model.remove(pick.index(model.len()));
                assert!(index.remove(&id(number)));
            }
        };
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(text) => {
                    index.insert(analysed(number, &text));
                    model.push((number, text));
                }
                Step::Remove(pick) => remove(&mut index, &mut model, pick),
                Step::SetAside => index.set_aside(),
                Step::Flush => run_all(&mut index, TextIndex::flush_due),
                Step::Erase => run_all(&mut index, TextIndex::erase_due),
                Step::FlushMeanwhile(pick, text) => {
                    let job = index.flush_due();
                    remove(&mut index, &mut model, pick);
                    index.insert(analysed(number, &text));
                    model.push((number, text));
                    if let Some(job) = job {
                        let written = job.run().expect("tantivy writes to memory");
                        remove(&mut index, &mut model, pick);
                        index.install(written);
                    }
                }
            }
        }
        let mut fresh = TextIndex::default();
        for (number, text) in &model {
            fresh.insert(analysed(*number, text));
        }
        prop_assert_eq!(index.totals, fresh.totals);
        for query in ["ape", "bee cat", "dog elk fox", "yak zho gnu hen"] {
            prop_assert_eq!(index.search(&Query::new(query), 7, None, None), fresh.search(&Query::new(query), 7, None, None));
        }
    }
}
