//! What a name or a tag that was begun may become.

use std::collections::BTreeMap;

use crate::contract::{Limits, Suggest, SuggestWhat, Suggested};
use crate::records::{RecordError, check_prefix};
use crate::state::Names;

/// Names in their order; tags, those that most memories carry first.
pub(crate) fn suggest(names: &Names, request: &Suggest, limits: &Limits) -> Result<Suggested, RecordError> {
    check_prefix(&request.begun, limits)?;
    let begun = request.begun.as_str();
    let most = usize::try_from(request.most.min(limits.max_page)).unwrap_or(usize::MAX);
    let values: Vec<String> = match request.what {
        SuggestWhat::Keys => {
            let total = names.with_prefix(begun).count() as u64;
            let values = names.with_prefix(begun).take(most).map(|entry| entry.key.to_string()).collect();
            return Ok(Suggested { values, total });
        }
        SuggestWhat::Prefixes => {
            // Each folder that a name leads through, from where the begun text ends.
            let mut folders: Vec<String> = Vec::new();
            for entry in names.with_prefix(begun) {
                let rest = &entry.key[begun.len()..];
                // Every path begins with a slash, which leads nowhere yet.
                let from = usize::from(begun.is_empty() && rest.starts_with('/'));
                let end = rest[from..].find('/').map(|end| from + end);
                let folder = match end {
                    Some(end) => &entry.key[..begun.len() + end + 1],
                    None => &*entry.key,
                };
                if folders.last().is_none_or(|last| last != folder) {
                    folders.push(folder.to_owned());
                }
            }
            folders
        }
        SuggestWhat::Tags => {
            let mut tags: BTreeMap<&str, u64> = BTreeMap::new();
            for tag in names.iter().flat_map(|entry| &entry.tags).filter(|tag| tag.starts_with(begun)) {
                *tags.entry(tag).or_default() += 1;
            }
            let mut tags: Vec<_> = tags.into_iter().collect();
            tags.sort_by_key(|(_, carried)| std::cmp::Reverse(*carried));
            tags.into_iter().map(|(tag, _)| tag.to_owned()).collect()
        }
    };
    Ok(Suggested { total: values.len() as u64, values: values.into_iter().take(most).collect() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::record::{Entry, Record};
    use crate::sealed::RecordId;

    fn names() -> Names {
        let mut names = Names::default();
        for (key, tags) in [
            ("/memories/a/x.md", &["work"][..]),
            ("/memories/a/y.md", &["work", "old"]),
            ("/memories/b.md", &[]),
            ("door", &["house"]),
            ("team/ann", &["work"]),
            ("team/bob", &[]),
        ] {
            let mut record = Record::new(key.into(), "text".into(), 0, 0);
            record.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            names.insert(Arc::new(Entry::of(RecordId::random(), 0, &record)));
        }
        names
    }

    fn suggested(what: SuggestWhat, begun: &str, most: u64) -> (Vec<String>, u64) {
        let request = Suggest { what, begun: begun.into(), most };
        let suggested = suggest(&names(), &request, &Limits::default()).unwrap();
        (suggested.values, suggested.total)
    }

    #[test]
    fn names_are_completed_in_their_order_and_counted_beyond_what_is_shown() {
        let (values, total) = suggested(SuggestWhat::Keys, "/memories/a", 1);
        assert_eq!((values, total), (vec!["/memories/a/x.md".to_owned()], 2));
        assert_eq!(suggested(SuggestWhat::Keys, "nothing", 9), (Vec::new(), 0));
    }

    #[test]
    fn a_prefix_leads_to_the_next_folder() {
        assert_eq!(suggested(SuggestWhat::Prefixes, "", 9).0, ["/memories/", "door", "team/"]);
        assert_eq!(suggested(SuggestWhat::Prefixes, "/mem", 9).0, ["/memories/"]);
        assert_eq!(suggested(SuggestWhat::Prefixes, "/memories/", 9).0, ["/memories/a/", "/memories/b.md"]);
        assert_eq!(suggested(SuggestWhat::Prefixes, "/memories/a", 9).0, ["/memories/a/"]);
        assert_eq!(suggested(SuggestWhat::Prefixes, "team", 9).0, ["team/"]);
    }

    #[test]
    fn the_tag_that_most_carry_comes_first() {
        assert_eq!(suggested(SuggestWhat::Tags, "", 2).0, ["memory-file", "work"]);
        assert_eq!(suggested(SuggestWhat::Tags, "o", 9), (vec!["old".to_owned()], 1));
    }
}
