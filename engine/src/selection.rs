//! Which memories a recall, a list or an export is about, beyond names, paths and tags.

use serde_json::{Map, Value};

use crate::filter::Filter;
use crate::record::Entry;
use crate::time::Period;

/// By metadata and by the time of the last change.
pub(crate) struct Selection {
    filter: Option<Filter>,
    period: Period,
}

impl Selection {
    /// Reads what a request asks for, or says what is wrong with it.
    pub(crate) fn read(
        filter: Option<&Map<String, Value>>,
        since: Option<&str>,
        until: Option<&str>,
    ) -> Result<Self, String> {
        Ok(Self { filter: filter.map(Filter::read).transpose()?, period: Period::read(since, until)? })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.filter.is_none() && self.period.is_everything()
    }

    pub(crate) fn holds(&self, entry: &Entry) -> bool {
        self.period.holds(entry.updated_at)
            && self.filter.as_ref().is_none_or(|filter| filter.passes(entry.metadata()))
    }
}
