//! Whom the keyring is wrapped for: the list that it carries itself.
//!
//! Owns what a recipient is, what it may be called and how it is written down. Does not change the list on
//! disk (that is `change.rs`), and holds no secret: a recipient is known by its public key.

use std::fmt;

use age::x25519;
use serde::{Deserialize, Serialize};

/// Most recipients that one keyring has.
pub(crate) const MOST: usize = 100;
/// Most passphrases that one keyring has: each may cost a start a second of work.
pub(crate) const MOST_PASSPHRASES: usize = 8;
/// The numbers that a passphrase may have. One more than there may be, since a new one is made before the one
/// that it replaces goes.
pub(super) const NUMBERS: std::ops::RangeInclusive<u8> = 1..=MOST_PASSPHRASES as u8 + 1;
/// Longest label, in bytes.
const LONGEST_LABEL: usize = 64;

/// What a recipient needs to open the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecipientKind {
    /// An age identity file.
    Identity,
    /// The passphrase that opens `keys/passphrase-N.age`.
    Passphrase(u8),
}

/// One who may open the store.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient {
    pub(super) kind: RecipientKind,
    pub(super) key: x25519::Recipient,
    pub(super) label: String,
    pub(super) added_at: u64,
}

impl Recipient {
    /// A recipient that is added now.
    pub(crate) fn new(kind: RecipientKind, key: x25519::Recipient, label: String) -> Self {
        Self { kind, key, label, added_at: crate::time::now() }
    }

    /// What it needs.
    pub fn kind(&self) -> RecipientKind {
        self.kind
    }

    /// Its public key, as the age tool writes it.
    pub fn public_key(&self) -> String {
        self.key.to_string()
    }

    /// What its owner calls it; empty if nothing.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// When it was added, as RFC 3339.
    pub fn added_at(&self) -> String {
        crate::time::rfc3339(self.added_at)
    }

    /// The shortest name that it goes by: `passphrase-N`, its label, or its public key.
    pub fn name(&self) -> String {
        match self.kind {
            RecipientKind::Passphrase(number) => format!("passphrase-{number}"),
            RecipientKind::Identity if self.label.is_empty() => self.public_key(),
            RecipientKind::Identity => self.label.clone(),
        }
    }

    /// Whether `name` means this one.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let passphrase =
            matches!(self.kind, RecipientKind::Passphrase(number) if name == format!("passphrase-{number}"));
        passphrase || self.public_key() == name || (!name.is_empty() && self.label == name)
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipient({})", self.name())
    }
}

/// Why a label is not usable, in words that follow "the label"; `None` if it is.
pub(crate) fn label_fault(label: &str) -> Option<&'static str> {
    let lower = label.to_ascii_lowercase();
    if label.len() > LONGEST_LABEL {
        Some("is longer than 64 bytes")
    } else if label.chars().any(char::is_control) || label.trim() != label {
        Some("has control characters in it, or a space at an end")
    } else if lower.starts_with("age1") || lower.starts_with("age-secret") || lower.starts_with("passphrase-")
    {
        Some("could be taken for a key or for the name of a passphrase")
    } else {
        None
    }
}

/// A recipient as it stands in a keyring.
#[derive(Serialize, Deserialize)]
struct Row<'a> {
    /// The number of the passphrase; 0 for an identity.
    passphrase: u8,
    public_key: &'a str,
    label: &'a str,
    /// Milliseconds since 1970.
    added_at: u64,
}

/// Adds the list to what comes before it.
pub(super) fn write(recipients: &[Recipient], before: Vec<u8>) -> Result<Vec<u8>, postcard::Error> {
    let keys: Vec<_> = recipients.iter().map(Recipient::public_key).collect();
    let mut rows = Vec::with_capacity(recipients.len());
    for (recipient, public_key) in recipients.iter().zip(&keys) {
        let passphrase = match recipient.kind {
            RecipientKind::Identity => 0,
            RecipientKind::Passphrase(number) => number,
        };
        rows.push(Row { passphrase, public_key, label: &recipient.label, added_at: recipient.added_at });
    }
    postcard::to_extend(&rows, before)
}

/// Reads a list that fills `bytes`; `None` unless every entry in it is one that could have been written.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Recipient>> {
    let (rows, rest) = postcard::take_from_bytes::<Vec<Row<'_>>>(bytes).ok()?;
    if !rest.is_empty() || rows.is_empty() || rows.len() > MOST {
        return None;
    }
    let recipient = |row: Row<'_>| {
        let kind = match row.passphrase {
            0 => RecipientKind::Identity,
            number if NUMBERS.contains(&number) => RecipientKind::Passphrase(number),
            _ => return None,
        };
        let key: x25519::Recipient = row.public_key.parse().ok()?;
        let known = label_fault(row.label).is_none();
        known.then(|| Recipient { kind, key, label: row.label.to_owned(), added_at: row.added_at })
    };
    rows.into_iter().map(recipient).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipients() -> Vec<Recipient> {
        let key = || x25519::Identity::generate().to_public();
        vec![
            Recipient::new(RecipientKind::Identity, key(), "laptop".into()),
            Recipient::new(RecipientKind::Passphrase(3), key(), String::new()),
            Recipient::new(RecipientKind::Identity, key(), String::new()),
        ]
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_in_no_other_length() {
        let list = recipients();
        let bytes = write(&list, Vec::new()).unwrap();
        assert!(read(&bytes).unwrap() == list);
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_none(), "cut at {cut}");
        }
        assert!(read(&[&bytes[..], b"x"].concat()).is_none());
        assert!(read(&write(&[], Vec::new()).unwrap()).is_none(), "nobody could open it");
    }

    #[test]
    fn a_recipient_goes_by_its_label_its_key_or_the_number_of_its_passphrase() {
        let list = recipients();
        let key = list[2].public_key();
        let called = |name: &str| list.iter().position(|recipient| recipient.is_called(name));
        assert_eq!((called("laptop"), called("passphrase-3"), called(&key)), (Some(0), Some(1), Some(2)));
        assert_eq!((called(""), called("passphrase-1"), called("lap")), (None, None, None));
        assert!(list.iter().enumerate().all(|(at, recipient)| called(&recipient.name()) == Some(at)));
    }

    #[test]
    fn a_label_is_no_key_no_name_of_a_passphrase_and_nothing_that_moves_a_cursor() {
        for good in ["", "laptop", "Anna's stick", "鍵"] {
            assert_eq!(label_fault(good), None, "{good}");
        }
        for bad in ["age1abc", "AGE-SECRET-KEY-1", "passphrase-1", "a\u{1b}[2J", " a", &"x".repeat(65)] {
            assert!(label_fault(bad).is_some(), "{bad}");
        }
    }
}
