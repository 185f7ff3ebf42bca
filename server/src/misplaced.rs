//! Options that mean nothing where they were given.
//!
//! Owns one rule: what was typed and would have no effect is an error, so that nobody believes in it. What comes
//! from the environment is meant for all that is started there, and is passed over; only a server that does
//! not listen although it was told where to says so.

use clap::{ArgMatches, parser::ValueSource};

/// Where the options were given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// To a server on stdin and stdout.
    OnStdio,
    /// To a server over HTTP.
    OverHttp,
    /// To a command.
    ToCommand,
}

/// Options that only a server over HTTP has.
const OF_HTTP: [&str; 4] = ["bind", "allow_host", "allow_origin", "allow_remote"];
/// Options that only a server has.
const OF_SERVER: [&str; 6] =
    ["transport", "namespace_arg", "max_open_namespaces", "tools", "max_concurrent", "max_pending"];

/// Errors when an option was typed that has no effect; returns what else there is to say.
pub fn check(given: Given, matches: &ArgMatches) -> Result<Option<String>, String> {
    let typed = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    let set =
        |id: &&str| matches.value_source(id) == Some(ValueSource::EnvVariable) && !is_empty(matches, id);
    let option = |id: &str| format!("--{}", id.replace('_', "-"));
    if given == Given::ToCommand {
        return match OF_SERVER.iter().chain(&OF_HTTP).find(|id| typed(id)) {
            Some(id) => {
                Err(format!("{} is for a server, and means nothing to a command: leave it out.", option(id)))
            }
            None => Ok(None),
        };
    }
    if typed(&"tools") && is_empty(matches, "tools") {
        return Err(
            "--tools names no tool: name some, as in --tools recall,get, or leave it out for all.".into()
        );
    }
    if given == Given::OverHttp {
        return Ok(None);
    }
    if let Some(id) = OF_HTTP.iter().find(|id| typed(id)) {
        return Err(format!(
            "{} means nothing without --transport http: add that, or leave it out.",
            option(id)
        ));
    }
    let unheard: Vec<_> = OF_HTTP.iter().filter(|id| set(id)).map(|id| variable(id)).collect();
    Ok((!unheard.is_empty()).then(|| {
        format!(
            "{} without effect, since this server speaks on stdin and stdout: WARM_MCP_TRANSPORT=http makes it listen.",
            match &unheard[..] {
                [one] => format!("{one} is"),
                several => format!("{} are", several.join(", ")),
            }
        )
    }))
}

fn variable(id: &str) -> String {
    format!("WARM_MCP_{}", id.to_ascii_uppercase())
}

fn is_empty(matches: &ArgMatches, id: &str) -> bool {
    // A flag's variable says no in its own words, as the parser of flags knows.
    let flag = matches.try_get_one::<bool>(id).ok().flatten();
    let raw = || matches.get_raw(id).is_none_or(|mut values| values.all(|value| value.is_empty()));
    flag.map_or_else(raw, |on| !on)
}
