//! Filters by metadata: what a caller may ask of it, and whether a memory fits.
//!
//! ```text
//! filter    = {field: condition, "and": [filter, ..], "or": [filter, ..], "not": filter}    all must hold
//! condition = value, or {"eq" | "gt" | "gte" | "lt" | "lte": value, "in": [value, ..], "exists": bool}
//! ```
//!
//! A field is a name of the metadata, or a path through its objects with dots between the names; a name that
//! has a dot itself is found as it is written. Where the metadata has a list, one of its items has to fit, or
//! the whole list. Numbers compare as numbers, however they are written, and strings by their characters, so
//! that RFC 3339 times of one form and offset compare as times. Values of different kinds are never equal,
//! greater or less. Fields called `and`, `or` and `not` are out of reach, unless they are inside another.
//!
//! Owns reading and judging; where the metadata comes from is the caller's business. Reading bounds a
//! filter, so that judging takes time in proportion to the metadata.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Deepest nesting of `and`, `or` and `not`.
const DEEPEST: usize = 8;
/// Most values that a filter compares with, and conditions that it has, together.
const MOST_TESTS: usize = 256;
/// Longest filter, as JSON.
const LONGEST: usize = 16 * 1024;
/// Longest name that a message repeats, in characters.
const LONGEST_SHOWN: usize = 40;

/// A filter that was read.
pub(crate) struct Filter {
    parts: Parts,
    /// Every path in it.
    paths: Vec<String>,
}

/// All must hold.
struct Parts(Vec<Part>);

enum Part {
    Field { path: String, conditions: Vec<Condition> },
    All(Vec<Parts>),
    Any(Vec<Parts>),
    Not(Parts),
}

enum Condition {
    Exists(bool),
    OneOf(Vec<Value>),
    Compares { with: Value, fits: fn(Ordering) -> bool },
}

impl Filter {
    /// Reads a filter, or says which part of it is not one.
    pub(crate) fn read(filter: &Map<String, Value>) -> Result<Self, String> {
        let bytes = serde_json::to_vec(filter).map_or(usize::MAX, |json| json.len());
        if bytes > LONGEST {
            return Err(format!("filter is {bytes} bytes, over the limit of {LONGEST} bytes; ask for less"));
        }
        let mut reader = Reader { tests: 0, paths: Vec::new() };
        let parts = reader.filter(filter, "filter", DEEPEST)?;
        Ok(Self { parts, paths: reader.paths })
    }

    /// Whether metadata, a JSON object, fits. A memory without any is one with none of the fields.
    pub(crate) fn passes(&self, metadata: Option<&str>) -> bool {
        let fields = metadata.and_then(|json| {
            Fields(&self.paths).deserialize(&mut serde_json::Deserializer::from_str(json)).ok()
        });
        self.parts.hold(&fields.unwrap_or_default())
    }
}

impl Parts {
    fn hold(&self, metadata: &Map<String, Value>) -> bool {
        self.0.iter().all(|part| match part {
            Part::All(all) => all.iter().all(|parts| parts.hold(metadata)),
            Part::Any(any) => any.iter().any(|parts| parts.hold(metadata)),
            Part::Not(parts) => !parts.hold(metadata),
            Part::Field { path, conditions } => fits(find(metadata, path), conditions),
        })
    }
}

/// The fields of metadata that these paths lead to or through. The others are passed over, which is quicker than to
/// read them.
struct Fields<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        struct Name<'n>(#[serde(borrow)] Cow<'n, str>);

        let mut found = Map::new();
        while let Some(Name(name)) = fields.next_key()? {
            let leads = |path: &String| {
                path.strip_prefix(&*name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            if self.0.iter().any(leads) {
                found.insert(name.into_owned(), fields.next_value()?);
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// Reads a filter and counts what it asks.
struct Reader {
    tests: usize,
    paths: Vec<String>,
}

impl Reader {
    fn filter(&mut self, filter: &Map<String, Value>, place: &str, levels: usize) -> Result<Parts, String> {
        let part = |(name, value): (&String, &Value)| {
            let place = format!("{place}.{}", shown(name));
            let Some(below) = levels.checked_sub(1) else {
                return Err(format!("{place} is nested more than {DEEPEST} levels deep; flatten the filter"));
            };
            match (name.as_str(), value) {
                ("and", value) => Ok(Part::All(self.filters(value, &place, below)?)),
                ("or", value) => Ok(Part::Any(self.filters(value, &place, below)?)),
                ("not", Value::Object(inner)) => Ok(Part::Not(self.filter(inner, &place, below)?)),
                ("not", _) => Err(format!("{place} must be a filter: an object")),
                (_, Value::Object(conditions)) if conditions.is_empty() => {
                    Err(format!("{place} is empty; give a value, or conditions such as {{\"exists\": true}}"))
                }
                (_, Value::Object(given)) => {
                    self.paths.push(name.clone());
                    let conditions = given.iter().map(|(name, value)| self.condition(name, value, &place));
                    Ok(Part::Field { path: name.clone(), conditions: conditions.collect::<Result<_, _>>()? })
                }
                (_, value) => {
                    self.count(1)?;
                    self.paths.push(name.clone());
                    let conditions = vec![Condition::OneOf(vec![value.clone()])];
                    Ok(Part::Field { path: name.clone(), conditions })
                }
            }
        };
        Ok(Parts(filter.iter().map(part).collect::<Result<_, String>>()?))
    }

    fn filters(&mut self, value: &Value, place: &str, levels: usize) -> Result<Vec<Parts>, String> {
        let Some(filters) = value.as_array().filter(|filters| !filters.is_empty()) else {
            return Err(format!("{place} must be a list of one or more filters"));
        };
        self.count(filters.len())?;
        let read = |(number, filter): (usize, &Value)| match filter {
            Value::Object(filter) => self.filter(filter, &format!("{place}[{number}]"), levels),
            _ => Err(format!("{place}[{number}] must be a filter: an object")),
        };
        filters.iter().enumerate().map(read).collect()
    }

    fn condition(&mut self, name: &str, value: &Value, place: &str) -> Result<Condition, String> {
        let place = format!("{place}.{}", shown(name));
        let fits: fn(Ordering) -> bool = match name {
            "eq" => {
                self.count(1)?;
                return Ok(Condition::OneOf(vec![value.clone()]));
            }
            "in" => {
                let values = value.as_array().ok_or_else(|| format!("{place} must be a list of values"))?;
                self.count(values.len().max(1))?;
                return Ok(Condition::OneOf(values.clone()));
            }
            "exists" => {
                self.count(1)?;
                let exists = value.as_bool().ok_or_else(|| format!("{place} must be true or false"))?;
                return Ok(Condition::Exists(exists));
            }
            "gt" => Ordering::is_gt,
            "gte" => Ordering::is_ge,
            "lt" => Ordering::is_lt,
            "lte" => Ordering::is_le,
            _ => {
                return Err(format!(
                    "{place} is not a condition; there are eq, gt, gte, lt, lte, in and exists"
                ));
            }
        };
        self.count(1)?;
        if !matches!(value, Value::Number(_) | Value::String(_)) {
            return Err(format!("{place} must be a number or a string"));
        }
        Ok(Condition::Compares { with: value.clone(), fits })
    }

    fn count(&mut self, tests: usize) -> Result<(), String> {
        self.tests = self.tests.saturating_add(tests);
        if self.tests > MOST_TESTS {
            return Err(format!("filter has more than {MOST_TESTS} conditions and values; ask for less"));
        }
        Ok(())
    }
}

/// A name as a message shows it: short, and without control characters.
fn shown(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c });
    let mut shown: String = plain.take(LONGEST_SHOWN).collect();
    if name.chars().nth(LONGEST_SHOWN).is_some() {
        shown.push_str("...");
    }
    shown
}

/// The value at a path. No value is at two ends of one path, so each is looked at once.
fn find<'a>(fields: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    fields.get(path).or_else(|| {
        path.match_indices('.').find_map(|(dot, _)| match fields.get(&path[..dot]) {
            Some(Value::Object(inner)) => find(inner, &path[dot + 1..]),
            _ => None,
        })
    })
}

/// Whether a field, or one item of the list that it is, fits all conditions.
fn fits(found: Option<&Value>, conditions: &[Condition]) -> bool {
    let one_fits = |value: &Value| {
        conditions.iter().all(|condition| match condition {
            Condition::Exists(exists) => *exists,
            Condition::OneOf(values) => values.iter().any(|wanted| equal(value, wanted)),
            Condition::Compares { with, fits } => compare(value, with).is_some_and(fits),
        })
    };
    match found {
        None => conditions.iter().all(|condition| matches!(condition, Condition::Exists(false))),
        Some(value) if one_fits(value) => true,
        Some(Value::Array(items)) => items.iter().any(one_fits),
        Some(_) => false,
    }
}

fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| other.get(name).is_some_and(|other| equal(one, other)))
        }
        _ => one == other,
    }
}

fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare_numbers(one, other),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}

/// Exact, also where a float can't hold a whole number.
fn compare_numbers(one: &Number, other: &Number) -> Option<Ordering> {
    let whole = |n: &Number| n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from));
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        (Some(one), None) => Some(compare_mixed(one, other.as_f64()?)),
        (None, Some(other)) => Some(compare_mixed(other, one.as_f64()?).reverse()),
        (None, None) => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn compare_mixed(whole: i128, float: f64) -> Ordering {
    // The cast takes what is beyond its range to the end of that range, which is beyond 64 bits as well.
    let floor = float.floor();
    whole.cmp(&(floor as i128)).then(if float > floor { Ordering::Less } else { Ordering::Equal })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            _ => panic!("the test gives an object"),
        }
    }

    fn passes(filter: Value, metadata: Value) -> bool {
        let filter = Filter::read(&object(filter)).unwrap_or_else(|problem| panic!("{problem}"));
        filter.passes(Some(&metadata.to_string()))
    }

    fn refused(filter: Value) -> String {
        Filter::read(&object(filter)).err().unwrap_or_else(|| panic!("must be refused"))
    }

    #[test]
    fn every_field_that_is_named_must_be_equal() {
        let ops = json!({"team": "ops", "n": 1, "on": true, "none": null, "at": {"x": [1, 2]}});
        for (filter, fits) in [
            (json!({}), true),
            (json!({"team": "ops"}), true),
            (json!({"team": "ops", "n": 1.0}), true),
            (json!({"team": "ops", "n": 2}), false),
            (json!({"team": "OPS"}), false),
            (json!({"n": "1"}), false),
            (json!({"on": true}), true),
            (json!({"on": 1}), false),
            (json!({"none": null}), true),
            (json!({"absent": null}), false),
            (json!({"at": {"eq": {"x": [1.0, 2]}}}), true),
            (json!({"at": {"eq": {"x": [2, 1]}}}), false),
        ] {
            assert_eq!(passes(filter.clone(), ops.clone()), fits, "{filter}");
        }
    }

    #[test]
    fn ranges_compare_numbers_exactly_and_strings_by_their_characters() {
        let data = json!({"n": 3, "big": 9_007_199_254_740_993_u64, "t": "2026-01-31T12:00:00Z", "f": 2.5});
        for (filter, fits) in [
            (json!({"n": {"gte": 3, "lt": 4}}), true),
            (json!({"n": {"gt": 3}}), false),
            (json!({"n": {"gt": 2.9, "lt": 3.1}}), true),
            (json!({"n": {"gt": "2"}}), false),
            (json!({"big": {"gt": 9_007_199_254_740_992.0}}), true),
            (json!({"big": 9_007_199_254_740_992.0}), false),
            (json!({"big": {"lt": 1e300, "gt": -1e300}}), true),
            (json!({"f": {"gte": 2, "lte": 3}}), true),
            (json!({"f": {"lt": 2}}), false),
            (json!({"t": {"gte": "2026-01-01T00:00:00Z", "lt": "2026-02-01T00:00:00Z"}}), true),
            (json!({"t": {"lt": "2026-01-01T00:00:00Z"}}), false),
        ] {
            assert_eq!(passes(filter.clone(), data.clone()), fits, "{filter}");
        }
    }

    #[test]
    fn a_list_fits_as_a_whole_or_by_one_of_its_items() {
        let data = json!({"tags": ["a", "b"], "n": [1, 10]});
        assert!(passes(json!({"tags": "b"}), data.clone()) && !passes(json!({"tags": "c"}), data.clone()));
        assert!(passes(json!({"tags": ["a", "b"]}), data.clone()));
        assert!(passes(json!({"tags": {"in": ["c", "b"]}}), data.clone()));
        // One item has to fit all of it: neither 1 nor 10 is between 2 and 9.
        assert!(!passes(json!({"n": {"gt": 2, "lt": 9}}), data.clone()));
        assert!(passes(json!({"n": {"gt": 2, "lt": 11}}), data));
    }

    #[test]
    fn membership_existence_and_combinations() {
        let data = json!({"team": "ops", "n": 0, "null": null});
        for (filter, fits) in [
            (json!({"team": {"in": ["dev", "ops"]}}), true),
            (json!({"team": {"in": []}}), false),
            (json!({"team": {"exists": true}, "null": {"exists": true}}), true),
            (json!({"nothing": {"exists": false}}), true),
            (json!({"team": {"exists": false}}), false),
            (json!({"nothing": {"exists": false, "eq": 1}}), false),
            (json!({"or": [{"team": "dev"}, {"n": 0}]}), true),
            (json!({"and": [{"team": "ops"}, {"n": 1}]}), false),
            (json!({"not": {"team": "dev"}}), true),
            (json!({"not": {"nothing": {"gt": 1}}}), true),
            (json!({"team": "ops", "or": [{"n": 1}, {"not": {"null": "x"}}]}), true),
        ] {
            assert_eq!(passes(filter.clone(), data.clone()), fits, "{filter}");
        }
    }

    #[test]
    fn dots_lead_into_objects_and_a_name_with_dots_is_found_as_it_is() {
        let data = json!({"a": {"b": {"c": 1}, "b.c": 2}, "a.b": {"d": 3}, "x.y": 4, "l": [{"m": 1}]});
        assert!(passes(json!({"a.b.c": 1}), data.clone()) || passes(json!({"a.b.c": 2}), data.clone()));
        assert!(passes(json!({"a.b.d": 3, "x.y": 4}), data.clone()));
        for path in ["a.b.e", "a..b", ".a", "a.", ".", "", "l.m", "x.y.z"] {
            assert!(passes(json!({path: {"exists": false}}), data.clone()), "{path}");
        }
    }

    #[test]
    fn what_is_malformed_is_refused_with_its_place() {
        for (filter, said) in [
            (json!({"and": {"a": 1}}), "filter.and must be a list"),
            (json!({"or": []}), "filter.or must be a list of one or more"),
            (json!({"and": [{"a": 1}, 5]}), "filter.and[1] must be a filter"),
            (json!({"not": [1]}), "filter.not must be a filter"),
            (json!({"n": {"above": 1}}), "filter.n.above is not a condition"),
            (json!({"n": {}}), "filter.n is empty"),
            (json!({"or": [{"n": {"gte": null}}]}), "filter.or[0].n.gte must be a number or a string"),
            (json!({"n": {"in": 5}}), "filter.n.in must be a list"),
            (json!({"n": {"exists": "yes"}}), "filter.n.exists must be true or false"),
            (json!({"n": {"gt": [1]}}), "filter.n.gt must be"),
            (json!({"\u{1b}[31m": {"x": 1}}), "filter.\u{fffd}[31m.x is not"),
            (json!({"n": {"in": vec![0; MOST_TESTS + 1]}}), "more than 256"),
            (json!({"a": "x".repeat(LONGEST)}), "over the limit"),
        ] {
            let problem = refused(filter);
            assert!(problem.contains(said), "{problem}");
        }
        let nest = |levels| (0..levels).fold(json!({"a": 1}), |inner, _| json!({"not": inner}));
        assert!(passes(nest(DEEPEST - 1), json!({"a": 2})));
        assert!(refused(nest(DEEPEST)).contains("levels deep"));
    }

    fn any_metadata() -> impl Strategy<Value = Value> {
        let name = "(a|b|\\.|a\\.|\\.b|a\\.b|\u{1})";
        let leaf =
            prop_oneof![Just(json!(1)), Just(json!("a")), Just(json!([1, "\u{2028}"])), Just(Value::Null)];
        let value = leaf.prop_recursive(3, 24, 4, move |inner| {
            let fields = prop::collection::btree_map(name, inner, 0..4);
            fields.prop_map(|fields| json!(fields))
        });
        prop::collection::btree_map(name, value, 0..4).prop_map(|fields| json!(fields))
    }

    proptest! {
        #[test]
        fn what_is_passed_over_was_not_asked_about(metadata in any_metadata(), paths in prop::collection::vec("[ab.\u{1}]{0,5}", 1..4)) {
            let whole = object(metadata.clone());
            for condition in [json!({"exists": true}), json!({"in": [1, "a"]}), json!({"lt": 2})] {
                let fields = paths.iter().map(|path| (path.clone(), condition.clone())).collect();
                let Ok(filter) = Filter::read(&fields) else { continue };
                prop_assert_eq!(filter.passes(Some(&metadata.to_string())), filter.parts.hold(&whole));
            }
        }

        #[test]
        fn reading_any_filter_ends_in_a_filter_or_a_sentence(filter in any_metadata()) {
            let filter = object(filter);
            let nested = object(json!({"not": filter.clone(), "and": [filter, {"or": [{"a": {"gt": 1}}]}]}));
            if let Err(problem) = Filter::read(&nested) {
                prop_assert!(problem.starts_with("filter"), "{problem}");
            }
        }
    }

    #[test]
    fn a_path_of_many_dots_is_followed_to_its_end() {
        let chain = (0..30).fold(json!({"end": 1}), |inner, _| json!({"a": inner, "a.a": {"b": 1}}));
        assert!(passes(json!({format!("{}end", "a.".repeat(30)): 1}), chain));
    }
}
