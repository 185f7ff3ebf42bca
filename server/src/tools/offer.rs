//! Which tools a server has, and what they may do.
//!
//! Owns the options `--tools` and `--read-only` and what follows from them: a tool that is left out is unknown
//! to the clients of this server; one that would write is forbidden on a server that only reads.

use clap::Args;
use warm_engine::contract::ErrorCode;

use super::Tool;
use crate::{
    load::{Load, MAX_CONCURRENT, MAX_PENDING},
    memory::Failure,
    options::{Chosen, or_empty, within},
};

/// How sessions are served.
#[derive(Args)]
#[command(next_help_heading = "Tools and load")]
pub struct OfferOptions {
    /// Offer these tools only: names with commas between them [default: all]
    #[arg(long, value_name = "NAMES", env = "WARM_MCP_TOOLS", value_parser = or_empty(tools))]
    tools: Option<Chosen<Vec<Tool>>>,

    /// Let clients read and change nothing
    #[arg(
        long,
        env = "WARM_MCP_READ_ONLY",
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub read_only: bool,

    /// Most calls that are served at a time [default: 64]
    #[arg(long, value_name = "N", env = "WARM_MCP_MAX_CONCURRENT", value_parser = or_empty(within(1, 4_096)))]
    max_concurrent: Option<Chosen<u64>>,

    /// Most calls that wait to be served; one more is told that the server is busy [default: 4096]
    #[arg(long, value_name = "N", env = "WARM_MCP_MAX_PENDING", value_parser = or_empty(within(1, 1_000_000)))]
    max_pending: Option<Chosen<u64>>,
}

impl OfferOptions {
    /// What is offered. Errors when nothing would be left.
    pub fn offer(&self) -> Result<Offer, String> {
        let chosen = self.tools.clone().flatten();
        let offer = Offer::of(chosen.unwrap_or(Tool::ALL.to_vec()), self.read_only);
        if offer.listed().next().is_none() {
            return Err("--read-only forbids every tool that --tools names, so that none is left.\n\
                        Name one that reads, or leave one of the two options out."
                .to_owned());
        }
        Ok(offer)
    }

    pub fn load(&self) -> Load {
        let number = |chosen: Option<Chosen<u64>>, default: usize| {
            chosen.flatten().map_or(default, |number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        Load::new(number(self.max_concurrent, MAX_CONCURRENT), number(self.max_pending, MAX_PENDING))
    }
}

fn tools(names: &str) -> Result<Vec<Tool>, String> {
    let mut chosen = Vec::new();
    for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        let known =
            || format!("there is no tool `{name}`; there are {}", Tool::ALL.map(Tool::name).join(", "));
        chosen.push(Tool::named(name).ok_or_else(known)?);
    }
    if chosen.is_empty() {
        return Err(format!("name some of {}", Tool::ALL.map(Tool::name).join(", ")));
    }
    Ok(chosen)
}

/// See the module.
pub struct Offer {
    tools: Vec<Tool>,
    pub read_only: bool,
}

impl Default for Offer {
    fn default() -> Self {
        Self::of(Tool::ALL.to_vec(), false)
    }
}

impl Offer {
    pub fn of(tools: Vec<Tool>, read_only: bool) -> Self {
        Self { tools, read_only }
    }

    /// The tools that clients are shown.
    pub fn listed(&self) -> impl Iterator<Item = Tool> {
        Tool::ALL.into_iter().filter(|tool| self.has(*tool))
    }

    /// Whether clients are shown this tool.
    pub fn has(&self, tool: Tool) -> bool {
        self.tools.contains(&tool) && !(self.read_only && tool.only_writes())
    }

    /// The tool of this name, unless it is left out. One that is forbidden says so when it is called.
    pub fn named(&self, name: &str) -> Option<Tool> {
        Tool::named(name).filter(|tool| self.tools.contains(tool))
    }

    /// Refuses what would write on a server that only reads.
    pub fn allow(&self, writes: bool, what: &str) -> Result<(), Failure> {
        if !(self.read_only && writes) {
            return Ok(());
        }
        Err(Failure::new(
            ErrorCode::Forbidden,
            format!(
                "{what} is forbidden: this server only reads (--read-only). Use recall, get, list or memory \
                 view, or ask the user to start warm-mcp without --read-only."
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: OfferOptions,
    }

    fn parsed(arguments: &[&str]) -> Result<OfferOptions, String> {
        let line = ["warm-mcp"].iter().chain(arguments);
        Line::try_parse_from(line).map(|line| line.options).map_err(|error| error.to_string())
    }

    fn listed(arguments: &[&str]) -> Result<Vec<&'static str>, String> {
        Ok(parsed(arguments)?.offer()?.listed().map(Tool::name).collect())
    }

    #[test]
    fn the_tools_that_are_named_are_listed_and_no_other() {
        assert_eq!(listed(&["--tools", "recall, memory,"]), Ok(vec!["memory", "recall"]));
        assert_eq!(listed(&["--tools", ""]).map(|tools| tools.len()), Ok(Tool::ALL.len()));
        let refused = listed(&["--tools", "recall,nope"]).expect_err("there is no such tool");
        assert!(refused.contains("`nope`") && refused.contains("remember"), "{refused}");
        assert!(listed(&["--tools", ","]).is_err());
    }

    #[test]
    fn a_server_that_only_reads_lists_no_tool_that_only_writes() {
        let tools = ["memory", "recall", "get", "list", "export", "stats"];
        assert_eq!(listed(&["--read-only"]), Ok(tools.to_vec()));
        let refused = listed(&["--read-only", "--tools", "forget,remember"]);
        assert!(refused.is_err_and(|problem| problem.contains("none is left")));
    }

    #[test]
    fn the_load_is_as_told_and_else_as_the_help_says() {
        let load = |arguments: &[&str]| {
            let load = parsed(arguments).unwrap_or_else(|problem| panic!("{problem}")).load();
            (load.max_concurrent, load.max_pending)
        };
        assert_eq!(load(&[]), (64, 4_096));
        assert_eq!(load(&["--max-concurrent", "1", "--max-pending", "2"]), (1, 2));
        assert!(parsed(&["--max-pending", "0"]).is_err());
    }
}
