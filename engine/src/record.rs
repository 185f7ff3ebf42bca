//! One memory as it is sealed, and what is kept of it in memory.
//!
//! Everything that tells something about a memory, its name and times included, is inside the
//! seal. The encoding is postcard's (<https://postcard.jamesmunns.com/wire-format>).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::contract::Listed;
use crate::path::is_tree_key;
use crate::sealed::{RecordId, random};
use crate::store::{Snapshot, StoreError};
use crate::time::rfc3339;
use crate::vault::{RecordKey, encode};

/// The tag that every file of the memory tree carries. It follows from the name and is not stored.
pub(crate) const FILE_TAG: &str = "memory-file";

const MALFORMED: &str = "its contents are malformed";

/// A memory, whole. Wiped when dropped; `Debug` is not derived.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Record {
    pub(crate) key: String,
    /// Whether the key was made up, so that its characters mean nothing.
    pub(crate) key_made_up: bool,
    pub(crate) title: Option<String>,
    /// Without [`FILE_TAG`].
    pub(crate) tags: Vec<String>,
    /// A JSON object.
    pub(crate) metadata: Option<String>,
    /// Milliseconds since 1970, UTC.
    pub(crate) created_at: u64,
    /// Milliseconds from then to this version; a small number, which is encoded in few bytes.
    age: u64,
    /// A random number that the memory keeps through all its versions and in copies, and by which one that was
    /// forgotten is known again.
    pub(crate) origin: u64,
    pub(crate) text: String,
}

impl Record {
    /// A memory that is new, or replaces another of its name.
    pub(crate) fn new(key: String, text: String, created_at: u64, now: u64) -> Self {
        Self {
            key,
            key_made_up: false,
            title: None,
            tags: Vec::new(),
            metadata: None,
            created_at,
            age: now.saturating_sub(created_at),
            origin: u64::from_le_bytes(random()),
            text,
        }
    }

    /// When this version was written, in milliseconds since 1970, UTC.
    pub(crate) fn updated_at(&self) -> u64 {
        self.created_at.saturating_add(self.age)
    }

    fn touch(&mut self, now: u64) {
        self.age = self.age.max(now.saturating_sub(self.created_at));
    }

    /// The same memory with another text.
    pub(crate) fn edited(&self, text: String, now: u64) -> Self {
        let mut edited = self.clone();
        edited.text.zeroize();
        edited.text = text;
        edited.touch(now);
        edited
    }

    /// The same memory under another name.
    pub(crate) fn renamed(&self, key: String, now: u64) -> Self {
        let mut renamed = self.clone();
        renamed.key.zeroize();
        renamed.key = key;
        renamed.touch(now);
        renamed
    }

    /// Seals this version under its key.
    pub(crate) fn seal(&self, key: &RecordKey, id: &RecordId, epoch: u64) -> Result<Vec<u8>, StoreError> {
        let refused = |reason: &str| StoreError::Record { id: id.to_string().into(), reason: reason.into() };
        let payload = encode(self).ok_or_else(|| refused("it can't be encoded"))?;
        key.seal(id, epoch, &payload).ok_or_else(|| refused("it is 4 GiB or longer"))
    }

    /// Reads the version of an entry, or `None` if the snapshot does not have it.
    pub(crate) fn read(snapshot: &dyn Snapshot, entry: &Entry) -> Result<Option<Self>, StoreError> {
        let Some(sealed) = snapshot.record(&entry.id)? else {
            return Ok(None);
        };
        let refused =
            |reason: String| StoreError::Record { id: entry.id.to_string().into(), reason: reason.into() };
        let payload = entry.version_key.unseal(&entry.id, &sealed).map_err(|e| refused(e.to_string()))?;
        postcard::from_bytes(&payload).map(Some).map_err(|_| refused(MALFORMED.into()))
    }
}

/// What is kept in memory of the current version of a memory: everything but the text.
pub(crate) struct Entry {
    pub(crate) id: RecordId,
    /// Where the version's key lies in the key tree, and the key.
    pub(crate) place: u64,
    pub(crate) version_key: RecordKey,
    pub(crate) key: Arc<str>,
    pub(crate) title: Option<String>,
    pub(crate) tags: Vec<String>,
    /// The JSON that the record holds. To look through it when a filter asks takes a tenth of reading the record
    /// or less, and to keep it parsed would take several times its length.
    metadata: Option<Box<str>>,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
    pub(crate) origin: u64,
    pub(crate) bytes: u64,
}

/// A [`Record`] as it is encoded, looked through without a copy.
#[derive(Deserialize)]
struct Glance<'a> {
    key: &'a str,
    _key_made_up: bool,
    title: Option<&'a str>,
    #[serde(borrow)]
    tags: Vec<&'a str>,
    metadata: Option<&'a str>,
    created_at: u64,
    age: u64,
    origin: u64,
    text: &'a str,
}

impl Entry {
    /// The entry of a sealed record, or why it does not open.
    pub(crate) fn unseal(id: RecordId, place: u64, key: RecordKey, sealed: &[u8]) -> Result<Self, String> {
        let payload = key.unseal(&id, sealed).map_err(|error| error.to_string())?;
        let glance: Glance<'_> = postcard::from_bytes(&payload).map_err(|_| MALFORMED.to_owned())?;
        let implied = is_tree_key(glance.key).then_some(FILE_TAG);
        Ok(Self {
            id,
            place,
            version_key: key,
            key: glance.key.into(),
            title: glance.title.map(Into::into),
            tags: glance.tags.into_iter().chain(implied).map(Into::into).collect(),
            metadata: glance.metadata.map(Into::into),
            created_at: glance.created_at,
            updated_at: glance.created_at.saturating_add(glance.age),
            origin: glance.origin,
            bytes: glance.text.len() as u64,
        })
    }

    /// The entry of a new version, under a fresh key.
    pub(crate) fn of(id: RecordId, place: u64, record: &Record) -> Self {
        let implied = is_tree_key(&record.key).then(|| FILE_TAG.to_owned());
        Self {
            id,
            place,
            version_key: RecordKey::random(),
            key: record.key.as_str().into(),
            title: record.title.clone(),
            tags: record.tags.iter().cloned().chain(implied).collect(),
            metadata: record.metadata.as_deref().map(Into::into),
            created_at: record.created_at,
            updated_at: record.updated_at(),
            origin: record.origin,
            bytes: record.text.len() as u64,
        }
    }

    /// An entry of nothing but a name and a size.
    #[cfg(test)]
    pub(crate) fn named(key: &str, bytes: u64) -> Self {
        Self { bytes, ..Self::of(RecordId::random(), 0, &Record::new(key.into(), String::new(), 0, 0)) }
    }

    pub(crate) fn is_file(&self) -> bool {
        is_tree_key(&self.key)
    }

    /// What a filter looks at: a JSON object.
    pub(crate) fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }

    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    pub(crate) fn listed(&self) -> Listed {
        Listed {
            key: self.key.to_string(),
            title: self.title.clone(),
            tags: self.tags.clone(),
            version: self.id.version(),
            created_at: rfc3339(self.created_at),
            updated_at: rfc3339(self.updated_at),
            bytes: self.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_read_at_a_glance_equals_that_of_the_whole_record() {
        let plain = Record::new("/memories/a.md".into(), "text".into(), 5, 9);
        let mut full = Record::new("key".into(), String::new(), u64::MAX, 1);
        full.key_made_up = true;
        full.title = Some("Title \u{1f511}".into());
        full.tags = vec!["a".into(), "b".into()];
        full.metadata = Some("{\"a\":1}".into());
        for record in [plain, full] {
            let id = RecordId::random();
            let whole = Entry::of(id, 7, &record);
            let key = || whole.version_key.clone();
            let sealed = record.seal(&key(), &id, 3).unwrap();
            let glance = Entry::unseal(id, 7, key(), &sealed).unwrap();
            assert!(glance.listed() == whole.listed());
            assert_eq!(glance.metadata, whole.metadata);
            assert_eq!((glance.created_at, glance.updated_at), (whole.created_at, whole.updated_at));
            assert_eq!(glance.origin, whole.origin);
            let mut broken = sealed.clone();
            broken[20] ^= 1;
            assert!(Entry::unseal(id, 7, key(), &broken).is_err());
        }
    }
}
