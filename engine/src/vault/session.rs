//! The seal of a conversation between two processes that both hold the store secret.
//!
//! ChaCha20-Poly1305 under one key for each direction, both derived from the store secret and the nonces
//! of the conversation, with the number of the message as nonce: a message that is read by others,
//! changed, left out, repeated or sent back is none.

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};

use super::secret::Key;

/// Seals what this side says. `Debug` shows nothing of the key.
#[derive(Debug)]
pub struct Sealer(Direction);

/// Opens what the other side says. `Debug` shows nothing of the key.
#[derive(Debug)]
pub struct Opener(Direction);

#[derive(Debug)]
struct Direction {
    key: Key,
    next: u64,
}

impl Direction {
    fn cipher_and_nonce(&mut self) -> (ChaCha20Poly1305, Nonce) {
        let mut nonce = Nonce::default();
        nonce[4..].copy_from_slice(&self.next.to_le_bytes());
        // At a message each nanosecond it would last for centuries.
        self.next = self.next.wrapping_add(1);
        (ChaCha20Poly1305::new((&self.key.0).into()), nonce)
    }
}

pub(super) fn session(ours: Key, theirs: Key) -> (Sealer, Opener) {
    (Sealer(Direction { key: ours, next: 0 }), Opener(Direction { key: theirs, next: 0 }))
}

impl Sealer {
    /// Seals the next message. `None` if it is 256 GiB or longer.
    pub fn seal(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let (cipher, nonce) = self.0.cipher_and_nonce();
        cipher.encrypt(&nonce, message).ok()
    }
}

impl Opener {
    /// Opens the next message. `None` if it is not what the other side said next.
    pub fn open(&mut self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (cipher, nonce) = self.0.cipher_and_nonce();
        cipher.decrypt(&nonce, sealed).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> ((Sealer, Opener), (Sealer, Opener)) {
        let keys = || (Key([1; 32]), Key([2; 32]));
        let ((a, b), (c, d)) = (keys(), keys());
        (session(a, b), session(d, c))
    }

    #[test]
    fn each_side_opens_what_the_other_says_in_its_order() {
        let ((mut seal_a, mut open_a), (mut seal_b, mut open_b)) = pair();
        for said in ["one", "two", ""] {
            let sealed = seal_a.seal(said.as_bytes()).unwrap();
            assert!(!sealed.windows(3).any(|part| part == b"one"));
            assert_eq!(open_b.open(&sealed).unwrap(), said.as_bytes());
            assert_eq!(open_a.open(&seal_b.seal(said.as_bytes()).unwrap()).unwrap(), said.as_bytes());
        }
    }

    #[test]
    fn what_is_changed_repeated_left_out_or_sent_back_does_not_open() {
        let ((mut seal_a, mut open_a), (_, mut open_b)) = pair();
        let first = seal_a.seal(b"first").unwrap();
        let mut changed = first.clone();
        changed[0] ^= 1;
        assert!(pair().1.1.open(&changed).is_none());
        assert!(open_a.open(&first).is_none(), "sent back");
        assert!(open_b.open(&first).is_some());
        assert!(open_b.open(&first).is_none(), "repeated");
        let ((mut seal_a, _), (_, mut open_b)) = pair();
        seal_a.seal(b"left out").unwrap();
        assert!(open_b.open(&seal_a.seal(b"second").unwrap()).is_none());
    }
}
