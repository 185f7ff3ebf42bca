//! The rules of names: paths below `/memories`, and keys of other memories.
//!
//! Paths are names of records, never of files on the machine, so no link or mount can lead out.
//! The rules still refuse everything that would be a trick on a file system, since a model that
//! writes such a path is led astray or led on. Names are compared as given: no Unicode folding.

use crate::contract::Limits;

/// The directory that holds every file.
pub(crate) const ROOT: &str = "/memories";

/// Why a path or key was refused. The messages echo what was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Not `/memories` and not below it.
    #[error("Path must start with /memories, got: {0}")]
    Outside(String),
    /// A `..` segment.
    #[error("Path {0} would escape /memories directory")]
    Escapes(String),
    /// Breaks another rule.
    #[error("Invalid path {path}: {rule}")]
    Rule {
        /// The path.
        path: String,
        /// The rule that it breaks, and what to do.
        rule: String,
    },
    /// A key of a memory outside the tree breaks its rules.
    #[error("Invalid key: {0}")]
    Key(String),
}

/// How much of what was asked for a message echoes, in characters; every path that is not too long
/// is echoed whole.
const LONGEST_ECHO: usize = 300;

/// What was asked for, cut after `longest` characters: a message that repeats it stays bounded.
pub(crate) fn echo(asked: &str, longest: usize) -> String {
    match asked.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &asked[..end]),
        None => asked.into(),
    }
}

/// Characters that end a line or turn its direction: a name with one reads as something else.
fn misleads(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Whether a key belongs to the memory tree.
pub(crate) fn is_tree_key(key: &str) -> bool {
    key.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Checks a path that names a file or directory below `/memories`, or `/memories` itself.
pub(crate) fn check_path(path: &str, limits: &Limits) -> Result<(), PathError> {
    if !is_tree_key(path) {
        return Err(PathError::Outside(echo(path, LONGEST_ECHO)));
    }
    let broken = |rule: String| Err(PathError::Rule { path: echo(path, LONGEST_ECHO), rule });
    let below = &path[ROOT.len()..];
    if below.is_empty() {
        return Ok(());
    }
    let segments = || below[1..].split('/');
    if segments().any(|segment| segment == "..") {
        return Err(PathError::Escapes(echo(path, LONGEST_ECHO)));
    }
    if below.contains('\\') {
        return broken("use / between names, not a backslash".into());
    }
    if below.chars().any(misleads) {
        return broken("control characters, line separators and direction marks are not allowed".into());
    }
    let lower = below.to_ascii_lowercase();
    if ["%2e", "%2f", "%5c", "%00"].iter().any(|encoded| lower.contains(encoded)) {
        return broken("percent-encoded dots, slashes, backslashes and NUL are not allowed".into());
    }
    for segment in segments() {
        if segment.is_empty() {
            return broken(
                "empty names are not allowed; write one / between names and none at the end".into(),
            );
        }
        if segment.starts_with('.') {
            return broken("names that start with a dot are not allowed".into());
        }
        if segment.len() as u64 > limits.max_name_bytes {
            return broken(format!("a name is limited to {} bytes", limits.max_name_bytes));
        }
    }
    if path.len() as u64 > limits.max_path_bytes {
        return broken(format!("a path is limited to {} bytes", limits.max_path_bytes));
    }
    if segments().count() as u64 > limits.max_levels {
        return broken(format!("a path is limited to {} levels", limits.max_levels));
    }
    Ok(())
}

/// Checks the key of any memory: a file's path, or 1 to 240 bytes without control characters.
pub(crate) fn check_key(key: &str, limits: &Limits) -> Result<(), PathError> {
    if key == ROOT {
        return Err(PathError::Key("/memories is the directory itself; name a file below it".into()));
    }
    if is_tree_key(key) {
        return check_path(key, limits);
    }
    if key.is_empty() {
        return Err(PathError::Key("it is empty; leave `key` out to have one made up".into()));
    }
    if key.len() as u64 > limits.max_path_bytes {
        return Err(PathError::Key(format!("it is limited to {} bytes", limits.max_path_bytes)));
    }
    if key.chars().any(misleads) {
        return Err(PathError::Key(
            "control characters, line separators and direction marks are not allowed".into(),
        ));
    }
    Ok(())
}

impl Limits {
    /// Whether a memory may have this name: for a caller that wants to know before it sends anything.
    ///
    /// # Errors
    /// The rule that the name breaks.
    pub fn check_key(&self, key: &str) -> Result<(), PathError> {
        check_key(key, self)
    }
}

/// The directories between the root and `path`, outermost first.
pub(crate) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.char_indices().filter(|&(at, c)| c == '/' && at > ROOT.len()).map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str) -> Result<(), PathError> {
        check_path(path, &Limits::default())
    }

    #[test]
    fn ordinary_names_pass() {
        for path in [
            "/memories",
            "/memories/a.txt",
            "/memories/a..b.txt",
            "/memories/a b/ü/文件/🚀.md",
            "/memories/100%.txt",
            "/memories/%20.txt",
        ] {
            assert!(check(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn paths_outside_are_refused_by_the_documented_message() {
        for path in [
            "",
            "/",
            "memories/a",
            "/memories_backup/f.txt",
            "/memoriesX",
            "/memories\\..\\x",
            "/etc/passwd",
            "~",
        ] {
            assert_eq!(
                check(path).unwrap_err().to_string(),
                format!("Path must start with /memories, got: {path}")
            );
        }
    }

    #[test]
    fn traversal_is_refused_by_the_documented_message() {
        for path in ["/memories/..", "/memories/../etc/x", "/memories/a/../b.txt", "/memories/a/.."] {
            assert_eq!(
                check(path).unwrap_err().to_string(),
                format!("Path {path} would escape /memories directory")
            );
        }
    }

    #[test]
    fn tricks_are_refused() {
        for path in [
            "/memories/",
            "/memories//b.txt",
            "/memories/a/",
            "/memories/./b.txt",
            "/memories/.hidden",
            "/memories/...x",
            "/memories/a/.git/config",
            "/memories/a\\b",
            "/memories/a\0b",
            "/memories/a\nb",
            "/memories/a\u{85}b",
            "/memories/a\u{2028}b",
            "/memories/a\u{202e}txt.exe",
            "/memories/%2e%2e/x",
            "/memories/%2E%2E%2Fx",
            "/memories/a%2fb",
            "/memories/a%5Cb",
            "/memories/a%00b",
        ] {
            assert!(matches!(check(path), Err(PathError::Rule { .. })), "{path:?}");
        }
    }

    #[test]
    fn limits_hold_at_the_byte() {
        let name = |n| format!("/memories/{}", "a".repeat(n));
        assert!(check(&name(128)).is_ok());
        assert!(check(&name(129)).is_err());
        assert!(check(&format!("/memories/{}", "é".repeat(64))).is_ok());
        assert!(check(&format!("/memories/{}", "é".repeat(65))).is_err());
        let long = |n: usize| format!("{}/{}", name(110), "b".repeat(n - name(110).len() - 1));
        assert!(check(&long(240)).is_ok());
        assert!(check(&long(241)).is_err());
        let deep = |n| format!("/memories{}", "/d".repeat(n));
        assert!(check(&deep(16)).is_ok());
        assert!(check(&deep(17)).is_err());
    }

    #[test]
    fn keys_outside_the_tree_are_freer() {
        let limits = Limits::default();
        for key in ["D1:3", "a/../b", ".x", "/memoriesX", "/memories_backup/f", "日本", "a b"] {
            assert!(check_key(key, &limits).is_ok(), "{key}");
        }
        let long = "k".repeat(241);
        for key in ["", "/memories", "/memories/", "/memories/../x", "a\nb", "a\0", long.as_str()] {
            assert!(check_key(key, &limits).is_err(), "{key:?}");
        }
    }

    #[test]
    fn messages_echo_what_was_asked_for_within_bounds() {
        let long = format!("/memories/{}", "x".repeat(5_000_000));
        assert!(check(&long).unwrap_err().to_string().len() < 1_000);
        assert!(check(&"é".repeat(5_000)).unwrap_err().to_string().len() < 1_000);
    }

    #[test]
    fn parents_are_the_directories_above() {
        let above: Vec<_> = parents("/memories/a/b/c.txt").collect();
        assert_eq!(above, ["/memories/a", "/memories/a/b"]);
        assert_eq!(parents("/memories/c.txt").count() + parents("/memories").count(), 0);
    }
}
