//! Proving to another process on this machine that both hold the store secret.
//!
//! HMAC-SHA256 over what both sides said, under a key that is derived from the store secret and the
//! namespace. The key leaves this module as proofs only, and a proof tells nothing of it.

use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::secret::Key;
use super::session::{self, Opener, Sealer};

/// Makes and checks proofs for one namespace. `Debug` shows nothing of the key.
#[derive(Clone, Debug)]
pub struct Prover {
    key: Key,
}

impl Prover {
    pub(super) fn new(key: Key) -> Self {
        Self { key }
    }

    /// The proof of `role` (so that no side's proof is the other's) over everything that was said.
    pub fn prove(&self, role: &str, said: &[u8]) -> [u8; 32] {
        self.mac(role, said).finalize().into_bytes().into()
    }

    /// Whether `proof` is that of `role` over `said`, in a time that does not depend on where it differs.
    pub fn check(&self, role: &str, said: &[u8], proof: &[u8]) -> bool {
        self.mac(role, said).verify_slice(proof).is_ok()
    }

    /// Seals and opens a conversation in which this side is `ours` and the other `theirs`, and in which
    /// `said` was said: it must hold a fresh nonce of each side.
    pub fn session(&self, ours: &str, theirs: &str, said: &[u8]) -> (Sealer, Opener) {
        let key = |role| Key(self.prove(&format!("session {role}"), said));
        session::session(key(ours), key(theirs))
    }

    fn mac(&self, role: &str, said: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(&self.key.0).expect("HMAC takes a key of any length");
        mac.update(&(role.len() as u64).to_le_bytes());
        mac.update(role.as_bytes());
        mac.update(said);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_session_understand_each_other_and_those_of_another_do_not() {
        let prover = Prover::new(Key([1; 32]));
        let (mut seal, _) = prover.session("owner", "guest", b"said");
        let (_, mut open) = prover.session("guest", "owner", b"said");
        let (_, mut other) = prover.session("guest", "owner", b"said otherwise");
        let sealed = seal.seal(b"words").unwrap();
        assert_eq!(open.open(&sealed).unwrap(), b"words");
        assert!(other.open(&sealed).is_none());
    }

    #[test]
    fn a_proof_is_good_for_its_key_its_role_and_its_words_alone() {
        let (prover, other) = (Prover::new(Key([1; 32])), Prover::new(Key([2; 32])));
        let proof = prover.prove("owner", b"words");
        assert!(prover.check("owner", b"words", &proof));
        assert!(!prover.check("guest", b"words", &proof));
        assert!(!prover.check("owner", b"other words", &proof));
        assert!(!other.check("owner", b"words", &proof));
        assert!(!prover.check("owner", b"words", &proof[..31]) && !prover.check("owner", b"words", &[]));
    }
}
