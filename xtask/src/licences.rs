//! Whether every dependency may be used under a permissive licence.

use std::{fs, path::Path};

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

/// What npm installs for the TypeScript package, its tests and the conformance suites.
const NPM: [&str; 2] =
    ["integrations/claude-memory-tool/typescript/package-lock.json", "xtask/conformance/package-lock.json"];

pub fn check(root: &Path) -> Outcome {
    match (of_crates(root), of_npm(root)) {
        (Ok((crates, mut refused)), Ok((packages, more))) => {
            refused.extend(more);
            if refused.is_empty() {
                println!("{crates} crates and {packages} npm packages, each under a permissive licence");
                Outcome::Passed
            } else {
                Outcome::Failed(format!("no permissive licence: {}", refused.join(", ")))
            }
        }
        (Err(reason), _) | (_, Err(reason)) => Outcome::Failed(reason),
    }
}

/// How many there are, and those under another licence.
type Looked = Result<(usize, Vec<String>), String>;

fn of_crates(root: &Path) -> Looked {
    let output = cargo(root).args(["metadata", "--format-version", "1", "--locked"]).output();
    let output = output.map_err(|error| format!("cargo metadata could not be started: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata printed no JSON: {error}"))?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    if packages.is_empty() {
        return Err("cargo metadata names no packages".to_owned());
    }
    let named = packages.iter().map(|package| {
        let name = format!("{} {} ({})", package["name"], package["version"], package["license"]);
        (name, &package["license"])
    });
    Ok((packages.len(), refused(named)))
}

fn of_npm(root: &Path) -> Looked {
    let (mut count, mut all) = (0, Vec::new());
    for lock in NPM {
        let text = fs::read_to_string(root.join(lock));
        let text = text.map_err(|error| format!("{lock} can't be read: {error}"))?;
        let lock: Value =
            serde_json::from_str(&text).map_err(|error| format!("{lock} is no JSON: {error}"))?;
        // The first is the package itself.
        let packages =
            lock["packages"].as_object().into_iter().flatten().filter(|(path, _)| !path.is_empty());
        let named = packages.map(|(path, package)| {
            count += 1;
            (format!("{path} ({})", package["license"]), &package["license"])
        });
        all.extend(refused(named));
    }
    Ok((count, all))
}

fn refused<'a>(packages: impl Iterator<Item = (String, &'a Value)>) -> Vec<String> {
    packages
        .filter(|(_, licence)| !licence.as_str().is_some_and(is_permissive))
        .map(|(name, _)| name)
        .collect()
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
