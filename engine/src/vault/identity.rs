//! The age identity file: made at the first start, read at every other.
//!
//! The format is the one of `age-keygen`: comments, and one `AGE-SECRET-KEY-1…` line per identity.

use std::path::Path;

use age::secrecy::ExposeSecret;
use age::x25519;
use zeroize::Zeroizing;

use super::recipients::MOST;
use crate::files::{Made, make_durable, private_dir, read_small};
use crate::open_error::OpenError;

/// Far more than any identity file needs.
const LONGEST: u64 = 64 * 1024;

/// The identities in the file at `path`, or `None` if there is no file.
pub(super) fn load(path: &Path) -> Result<Option<Vec<x25519::Identity>>, OpenError> {
    let malformed = |reason: String| OpenError::IdentityMalformed { path: path.to_owned(), reason };
    let bytes = match read_small(path, LONGEST) {
        Ok(Some(bytes)) => Zeroizing::new(bytes),
        Ok(None) => return Ok(None),
        Err(OpenError::Damaged { reason, .. }) => return Err(malformed(reason)),
        Err(other) => return Err(other),
    };
    parse(&bytes).map(Some).map_err(malformed)
}

/// The identities in the bytes of a file, at least one, or what is wrong with it.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<x25519::Identity>, String> {
    if bytes.starts_with(b"age-encryption.org/") || bytes.starts_with(b"-----BEGIN AGE") {
        return Err("it is itself encrypted with age: decrypt it first, or use a passphrase store".into());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut identities = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The parser's own error is left out: it may quote the line.
        let identity = line.parse::<x25519::Identity>().map_err(|_| {
            if line.starts_with("AGE-SECRET-KEY-1") {
                format!("the key on line {} is cut short or mistyped", number + 1)
            } else {
                format!("line {} is neither a comment nor an X25519 key", number + 1)
            }
        })?;
        identities.push(identity);
    }
    match identities.len() {
        0 => Err("it holds no key".into()),
        1..=MOST => Ok(identities),
        _ => Err(format!("it holds more than {MOST} keys")),
    }
}

/// Makes a new identity at `path`, unless a file is there by now. Says whether this call made it.
pub(super) fn create(path: &Path) -> Result<Made, OpenError> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        private_dir(dir)?;
    }
    let identity = x25519::Identity::generate();
    let secret = identity.to_string();
    let contents = Zeroizing::new(format!(
        "# The key to your WARM memories. Keep a copy: without it they can't be read.\n\
         # public key: {}\n{}\n",
        identity.to_public(),
        secret.expose_secret()
    ));
    make_durable(path, contents.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn made() -> (tempfile::TempDir, std::path::PathBuf, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("identity.txt");
        assert_eq!(create(&path).unwrap(), Made::ByUs);
        let text = fs::read_to_string(&path).unwrap();
        (dir, path, text)
    }

    fn public(path: &Path) -> String {
        load(path).unwrap().unwrap()[0].to_public().to_string()
    }

    #[test]
    fn line_ends_do_not_matter() {
        let (_dir, path, text) = made();
        let expected = public(&path);
        for variant in [text.replace('\n', "\r\n"), text.trim_end().to_owned(), format!("\u{feff}{text}\n\n")]
        {
            fs::write(&path, variant).unwrap();
            assert_eq!(public(&path), expected);
        }
    }

    #[test]
    fn a_truncated_key_is_malformed_and_not_quoted() {
        let (_dir, path, text) = made();
        let key = text.lines().last().unwrap();
        fs::write(&path, &text[..text.len() - 10]).unwrap();
        let error = load(&path).err().expect("it is refused").to_string();
        assert!(error.contains("malformed") && error.contains("line 3"), "{error}");
        assert!(!error.contains(&key[..30]), "the key must not be shown");
    }

    #[test]
    fn files_that_hold_no_identity_are_malformed() {
        let (_dir, path, _) = made();
        for contents in
            [&b""[..], b"# only a comment\n", b"\xff\xfe\x00", b"age-encryption.org/v1\n", b"hello"]
        {
            fs::write(&path, contents).unwrap();
            assert!(matches!(load(&path), Err(OpenError::IdentityMalformed { .. })));
        }
        fs::write(&path, vec![b'#'; 70_000]).unwrap();
        assert!(matches!(load(&path), Err(OpenError::IdentityMalformed { .. })));
        let key = x25519::Identity::generate().to_string();
        fs::write(&path, format!("{}\n", key.expose_secret()).repeat(101)).unwrap();
        let error = load(&path).err().expect("it is refused").to_string();
        assert!(error.contains("more than 100 keys"), "{error}");
    }

    #[test]
    fn an_identity_is_never_replaced() {
        let (_dir, path, _) = made();
        let before = public(&path);
        assert_eq!(create(&path).unwrap(), Made::Before);
        assert_eq!(public(&path), before);
    }
}
