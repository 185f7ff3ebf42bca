//! Reading the arguments of a tool call.
//!
//! Owns the rules that every tool shares: a field that the tool does not have is refused by name, a
//! null is an absent field, and a missing field or a value of the wrong type is refused with a
//! sentence that says what is expected. What the values mean is the engine's to judge.

use serde_json::{Map, Value};

use crate::memory::Failure;

/// The arguments of one call, already known to be fields that `owner` has.
pub struct Fields {
    owner: String,
    values: Map<String, Value>,
}

impl Fields {
    /// Refuses every argument that is not one of `allowed`. `owner` is the tool, or the tool and its
    /// command, as an error names it.
    pub fn new(
        owner: impl Into<String>,
        values: Map<String, Value>,
        allowed: &[&str],
    ) -> Result<Self, Failure> {
        let owner = owner.into();
        if let Some(stranger) = values.keys().find(|name| !allowed.contains(&name.as_str())) {
            let known = match allowed {
                [] => "It takes none.".to_owned(),
                _ => format!("It takes: {}.", allowed.join(", ")),
            };
            return Err(Failure::invalid(format!("{owner} has no field {}. {known}", quoted(stranger))));
        }
        Ok(Self { owner, values })
    }

    /// The value of a field that must be there.
    pub fn required<T: Field>(&mut self, name: &str) -> Result<T, Failure> {
        self.optional(name)?.ok_or_else(|| {
            Failure::invalid(format!("{} needs the field `{name}`: {}.", self.owner, T::EXPECTED))
        })
    }

    /// The value of a field that may be absent or null.
    pub fn optional<T: Field>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        let value = match self.values.remove(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        let found = kind(&value);
        match T::read(value) {
            Some(value) => Ok(Some(value)),
            None => Err(Failure::invalid(format!(
                "The field `{name}` of {} must be {}, not {found}.",
                self.owner,
                T::EXPECTED
            ))),
        }
    }
}

/// A type that an argument can have.
pub trait Field: Sized {
    /// Said in an error, after "must be".
    const EXPECTED: &str;
    fn read(value: Value) -> Option<Self>;
}

impl Field for String {
    const EXPECTED: &str = "a string";
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

impl Field for bool {
    const EXPECTED: &str = "true or false";
    fn read(value: Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Field for i64 {
    const EXPECTED: &str = "a whole number";
    fn read(value: Value) -> Option<Self> {
        // JSON has one kind of number, so 5.0 is as whole as 5. Past 2^53 a float is not exact.
        value.as_i64().or_else(|| {
            value
                .as_f64()
                .filter(|number| number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0)
                .map(|number| number as i64)
        })
    }
}

impl Field for u64 {
    const EXPECTED: &str = "a whole number that is not negative";
    fn read(value: Value) -> Option<Self> {
        value.as_u64().or_else(|| i64::read(value).and_then(|number| number.try_into().ok()))
    }
}

impl Field for f64 {
    const EXPECTED: &str = "a number";
    fn read(value: Value) -> Option<Self> {
        value.as_f64()
    }
}

impl Field for Vec<String> {
    const EXPECTED: &str = "a list of strings";
    fn read(value: Value) -> Option<Self> {
        list(value)
    }
}

impl Field for Vec<i64> {
    const EXPECTED: &str = "a list of whole numbers";
    fn read(value: Value) -> Option<Self> {
        list(value)
    }
}

impl Field for Map<String, Value> {
    const EXPECTED: &str = "an object";
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }
}

fn list<T: Field>(value: Value) -> Option<Vec<T>> {
    match value {
        Value::Array(values) => values.into_iter().map(T::read).collect(),
        _ => None,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
            "a number with a fraction"
        }
        Value::Number(number) if number.is_f64() => "a number that is out of range",
        Value::Number(number) if number.is_i64() && !number.is_u64() => "a negative number",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list with other things in it",
        Value::Object(_) => "an object",
    }
}

/// A name from a request as an error shows it: short, and without control characters.
pub fn quoted(name: &str) -> String {
    const LONGEST: usize = 64;
    let mut shown: String = name.chars().filter(|character| !character.is_control()).take(LONGEST).collect();
    if name.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(values: Value) -> Fields {
        let Value::Object(values) = values else { panic!("the test gives an object") };
        Fields::new("recall", values, &["query", "k", "tags"])
            .unwrap_or_else(|failure| panic!("{}", failure.message))
    }

    fn message<T>(result: Result<T, Failure>) -> String {
        match result {
            Ok(_) => panic!("must be refused"),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn a_field_that_the_tool_lacks_is_refused_by_name() {
        let values = Map::from_iter([("kk".to_owned(), json!(1))]);
        assert_eq!(
            message(Fields::new("recall", values, &["query", "k"])),
            "recall has no field `kk`. It takes: query, k."
        );
    }

    #[test]
    fn null_is_absent() {
        let mut given = fields(json!({"query": null, "k": null}));
        assert_eq!(given.optional::<u64>("k"), Ok(None));
        assert_eq!(message(given.required::<String>("query")), "recall needs the field `query`: a string.");
    }

    #[test]
    fn a_wrong_type_is_refused_with_what_is_expected() {
        let mut given = fields(json!({"query": 5, "k": -1, "tags": ["a", 1]}));
        assert_eq!(
            message(given.required::<String>("query")),
            "The field `query` of recall must be a string, not a number."
        );
        assert_eq!(
            message(given.optional::<u64>("k")),
            "The field `k` of recall must be a whole number that is not negative, not a negative number."
        );
        assert_eq!(
            message(given.optional::<Vec<String>>("tags")),
            "The field `tags` of recall must be a list of strings, not a list with other things in it."
        );
    }

    #[test]
    fn a_number_that_is_too_large_is_not_said_to_have_a_fraction() {
        let given = |k: Value| message(fields(json!({ "k": k })).optional::<u64>("k"));
        assert!(given(json!(1e30)).ends_with("not a number that is out of range."));
        assert!(given(json!(1.5)).ends_with("not a number with a fraction."));
    }

    #[test]
    fn whole_floats_are_whole_numbers() {
        assert_eq!(i64::read(json!(5.0)), Some(5));
        assert_eq!(u64::read(json!(5.0)), Some(5));
        assert_eq!(u64::read(json!(u64::MAX)), Some(u64::MAX));
        for wrong in [json!(5.5), json!(1e300), json!("5"), json!(true)] {
            assert_eq!(i64::read(wrong.clone()), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_in_an_error_is_short_and_printable() {
        assert_eq!(quoted("a\u{1b}[31m\nb"), "`a[31mb`");
        assert_eq!(quoted(&"é".repeat(65)), format!("`{}...`", "é".repeat(64)));
    }
}
