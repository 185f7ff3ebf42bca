//! Whether every dependency may be used under a permissive licence.

use std::path::Path;

use serde_json::Value;

use crate::{Outcome, rust::cargo};

/// Licences that ask for no more than that their text is passed on.
const PERMISSIVE: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub fn check(root: &Path) -> Outcome {
    let output = match cargo(root).args(["metadata", "--format-version", "1", "--locked"]).output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => return Outcome::Failed(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => return Outcome::Failed(format!("cargo metadata could not be started: {error}")),
    };
    let metadata: Value = match serde_json::from_slice(&output) {
        Ok(metadata) => metadata,
        Err(error) => return Outcome::Failed(format!("cargo metadata printed no JSON: {error}")),
    };
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    if packages.is_empty() {
        return Outcome::Failed("cargo metadata names no packages".to_owned());
    }
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(is_permissive))
        .map(|package| format!("{} {} ({})", package["name"], package["version"], package["license"]))
        .collect();
    if refused.is_empty() {
        println!("{} packages, each under a permissive licence", packages.len());
        Outcome::Passed
    } else {
        Outcome::Failed(format!("no permissive licence: {}", refused.join(", ")))
    }
}

/// Whether an SPDX expression can be met by permissive licences alone. `/` is the old form of OR.
fn is_permissive(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = &words[..];
    any(&mut rest) == Some(true) && rest.is_empty()
}

/// `a OR b OR ...`; nothing for what is no expression.
fn any(words: &mut &[&str]) -> Option<bool> {
    let mut met = all(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        met |= all(words)?;
    }
    Some(met)
}

/// `a AND b AND ...`
fn all(words: &mut &[&str]) -> Option<bool> {
    let mut met = one(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        met &= one(words)?;
    }
    Some(met)
}

/// A licence, perhaps with an exception (which only ever gives more freedom), or `( ... )`.
fn one(words: &mut &[&str]) -> Option<bool> {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = any(words)?;
            let [")", rest @ ..] = *words else { return None };
            *words = rest;
            Some(met)
        }
        [licence, "WITH", _, rest @ ..] | [licence, rest @ ..] => {
            *words = rest;
            Some(PERMISSIVE.contains(licence))
        }
        [] => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_permissive;

    #[test]
    fn an_expression_is_met_by_any_branch_of_or_and_every_branch_of_and() {
        for met in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
            "MIT AND (GPL-3.0 OR BSD-3-Clause)",
        ] {
            assert!(is_permissive(met), "{met}");
        }
        for unmet in
            ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "MPL-2.0", "MIT OR", "(MIT", ""]
        {
            assert!(!is_permissive(unmet), "{unmet}");
        }
    }
}
