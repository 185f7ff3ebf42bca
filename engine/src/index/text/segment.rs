//! Segments: passages in the compressed form of tantivy, in memory.
//!
//! Owns the translation between our postings and a tantivy index in a `RamDirectory`: writing one
//! from a memory level, merging several without their removed passages, and reading the postings of
//! a term. Of tantivy's search only the dictionary and the postings are used; scores, lengths and
//! removals are ours.

use std::sync::Arc;

use tantivy::directory::{OwnedBytes, RamDirectory};
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::index::{InvertedIndexReader, SegmentReader};
use tantivy::indexer::merge_filtered_segments;
use tantivy::postings::Postings;
use tantivy::schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{
    BitSet, DocSet, Index, IndexSettings, SingleSegmentIndexWriter, TERMINATED, TantivyDocument, Term,
};

use super::memory_level::{MemoryLevel, Posting};
use super::roster::{Entry, Mask, Passage, Roster, Totals};

/// What tantivy's writer may use for its hash tables, in bytes.
const WRITER_MEMORY: usize = 32 << 20;

const BODY: Field = Field::from_field_id(0);
const HEAD: Field = Field::from_field_id(1);

/// An unchanging index of many passages.
pub(super) struct Segment {
    roster: Roster,
    totals: Totals,
    stored: tantivy::Segment,
    body: Arc<InvertedIndexReader>,
    head: Arc<InvertedIndexReader>,
}

impl Segment {
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The postings of `term` that `mask` does not hide, ordered by passage.
    pub fn postings(&self, term: &str, mask: &Mask) -> Vec<Posting> {
        let read = |index, field| {
            read(index, field, term).unwrap_or_else(|error| {
                // In memory there is nothing that could fail; the other levels still answer.
                tracing::error!(%error, "a segment of the text index could not be read");
                Vec::new()
            })
        };
        let body = read(&self.body, BODY);
        let head = read(&self.head, HEAD);
        let mut merged = Vec::with_capacity(body.len() + head.len());
        let mut heads = head.into_iter().peekable();
        let in_head = |(passage, count)| Posting { passage, body: 0, head: count };
        for (passage, count) in body {
            while let Some(before) = heads.next_if(|&(number, _)| number < passage) {
                merged.push(in_head(before));
            }
            let head = heads.next_if(|&(number, _)| number == passage).map_or(0, |(_, count)| count);
            merged.push(Posting { passage, body: count, head });
        }
        merged.extend(heads.map(in_head));
        if !mask.is_empty() {
            merged.retain(|posting| !mask.hides(posting.passage));
        }
        merged
    }

    /// Writes what `mask` does not hide of a memory level. None if nothing is left.
    pub fn write(level: &MemoryLevel, mask: &Mask) -> tantivy::Result<Option<Self>> {
        let mut roster = Roster::default();
        let mut writer: SingleSegmentIndexWriter = Index::builder()
            .schema(schema())
            .single_segment_index_writer(RamDirectory::create(), WRITER_MEMORY)?;
        for entry in survivors(level.roster(), mask) {
            copy(level.roster(), entry, &mut roster);
            for passage in entry.passages() {
                writer.add_document(tokens(level.terms_of(passage)))?;
            }
        }
        if roster.entries().is_empty() {
            return Ok(None);
        }
        Self::open(&writer.finalize()?, roster).map(Some)
    }

    /// Merges what the masks do not hide of several segments. None if nothing is left.
    pub fn merge(sources: &[(&Segment, &Mask)]) -> tantivy::Result<Option<Self>> {
        let mut roster = Roster::default();
        let mut stored = Vec::with_capacity(sources.len());
        let mut alive = Vec::with_capacity(sources.len());
        for (segment, mask) in sources {
            // tantivy numbers the survivors as they come, segment after segment, and so do we.
            for entry in survivors(&segment.roster, mask) {
                copy(&segment.roster, entry, &mut roster);
            }
            stored.push(segment.stored.clone());
            alive.push((!mask.is_empty()).then(|| survivors_bits(&segment.roster, mask)).transpose()?);
        }
        if roster.entries().is_empty() {
            return Ok(None);
        }
        let index =
            merge_filtered_segments(&stored, IndexSettings::default(), alive, RamDirectory::create())?;
        Self::open(&index, roster).map(Some)
    }

    fn open(index: &Index, roster: Roster) -> tantivy::Result<Self> {
        let broken = |what: &str| tantivy::TantivyError::InternalError(what.to_owned());
        let stored = index.searchable_segments()?.pop().ok_or_else(|| broken("no segment was written"))?;
        let reader = SegmentReader::open(&stored)?;
        if reader.max_doc() as usize != roster.passages().len() {
            return Err(broken("the segment and its roster disagree"));
        }
        let (body, head) = (reader.inverted_index(BODY)?, reader.inverted_index(HEAD)?);
        Ok(Self { totals: roster.totals(), roster, stored, body, head })
    }
}

/// The documents that `mask` does not hide, in their order.
pub(super) fn survivors<'a>(roster: &'a Roster, mask: &'a Mask) -> impl Iterator<Item = &'a Entry> {
    roster.entries().iter().filter(move |entry| roster.is_known(entry) && !mask.hides_document(entry))
}

fn copy(from: &Roster, entry: &Entry, to: &mut Roster) {
    let passages: Vec<Passage> = from.passages_of(entry).to_vec();
    to.push(entry.id, entry.sequence, passages);
}

fn survivors_bits(roster: &Roster, mask: &Mask) -> tantivy::Result<AliveBitSet> {
    let passages = roster.passages().len() as u32;
    let mut bits = BitSet::with_max_value(passages);
    for passage in (0..passages).filter(|&passage| !mask.hides(passage)) {
        bits.insert(passage);
    }
    let mut bytes = Vec::new();
    write_alive_bitset(&bits, &mut bytes)?;
    Ok(AliveBitSet::open(OwnedBytes::new(bytes)))
}

fn schema() -> Schema {
    // Lengths are kept exactly in the roster, so tantivy need not keep its rounded ones.
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::WithFreqs);
    let options = TextOptions::default().set_indexing_options(indexing);
    let mut schema = Schema::builder();
    schema.add_text_field("body", options.clone());
    schema.add_text_field("head", options);
    schema.build()
}

fn tokens<'a>(terms: impl Iterator<Item = (&'a str, Posting)>) -> TantivyDocument {
    let mut body = PreTokenizedString { text: String::new(), tokens: Vec::new() };
    let mut head = body.clone();
    for (term, posting) in terms {
        // The default position is the largest number, on which tantivy would overflow.
        let token = Token { text: term.to_owned(), position: 0, ..Token::default() };
        body.tokens.extend(std::iter::repeat_n(token.clone(), posting.body.into()));
        head.tokens.extend(std::iter::repeat_n(token, posting.head.into()));
    }
    let mut document = TantivyDocument::default();
    document.add_pre_tokenized_text(BODY, body);
    document.add_pre_tokenized_text(HEAD, head);
    document
}

fn read(index: &InvertedIndexReader, field: Field, term: &str) -> tantivy::Result<Vec<(u32, u16)>> {
    let term = Term::from_field_text(field, term);
    let Some(mut postings) = index.read_postings(&term, IndexRecordOption::WithFreqs)? else {
        return Ok(Vec::new());
    };
    let mut found = Vec::with_capacity(postings.size_hint() as usize);
    let mut passage = postings.doc();
    while passage != TERMINATED {
        found.push((passage, u16::try_from(postings.term_freq()).unwrap_or(u16::MAX)));
        passage = postings.advance();
    }
    Ok(found)
}
