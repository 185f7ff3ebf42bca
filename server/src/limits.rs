//! The limits on the command line.
//!
//! Owns their options and how far each can be raised. What a limit means, and its default, is the engine's.

use clap::Args;
use warm_engine::contract::Limits;

use crate::options::{Chosen, or_empty, within};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// How much is taken and given. Each has a ceiling, since all of it is held in memory while it is served.
#[derive(Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Longest text of one memory, in bytes [default: 32768]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_TEXT_BYTES", value_parser = or_empty(within(1, 64 * MIB)))]
    max_text_bytes: Option<Chosen<u64>>,

    /// Longest path or key, in bytes [default: 240]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_PATH_BYTES", value_parser = or_empty(within(16, 4 * KIB)))]
    max_path_bytes: Option<Chosen<u64>>,

    /// Longest metadata of one memory, as JSON, in bytes; it stays in memory [default: 4096]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_METADATA_BYTES", value_parser = or_empty(within(2, MIB)))]
    max_metadata_bytes: Option<Chosen<u64>>,

    /// Most tags of one memory [default: 32]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_TAGS", value_parser = or_empty(within(1, 1_024)))]
    max_tags: Option<Chosen<u64>>,

    /// Most results of one recall [default: 50]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_TOP_K", value_parser = or_empty(within(1, 10_000)))]
    max_top_k: Option<Chosen<u64>>,

    /// Most memories on one page of a list [default: 200]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_PAGE", value_parser = or_empty(within(1, 10_000)))]
    max_page: Option<Chosen<u64>>,

    /// Longest results of one recall or list, in bytes of JSON; one always fits [default: 32768]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_REPLY_BYTES", value_parser = or_empty(within(KIB, 64 * MIB)))]
    max_reply_bytes: Option<Chosen<u64>>,

    /// Most keys in one forget [default: 1000]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_FORGET", value_parser = or_empty(within(1, 100_000)))]
    max_forget: Option<Chosen<u64>>,

    /// Longest page of an export, in bytes; one memory always fits [default: 131072]
    #[arg(long, global = true, value_name = "N", env = "WARM_MCP_MAX_EXPORT_BYTES", value_parser = or_empty(within(4 * KIB, 64 * MIB)))]
    max_export_bytes: Option<Chosen<u64>>,
}

impl LimitOptions {
    /// The limits in force: those that were chosen, and the engine's own.
    pub fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for (limit, chosen) in [
            (&mut limits.max_text_bytes, self.max_text_bytes),
            (&mut limits.max_path_bytes, self.max_path_bytes),
            (&mut limits.max_metadata_bytes, self.max_metadata_bytes),
            (&mut limits.max_tags, self.max_tags),
            (&mut limits.max_top_k, self.max_top_k),
            (&mut limits.max_page, self.max_page),
            (&mut limits.max_reply_bytes, self.max_reply_bytes),
            (&mut limits.max_forget, self.max_forget),
            (&mut limits.max_export_bytes, self.max_export_bytes),
        ] {
            *limit = chosen.flatten().unwrap_or(*limit);
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitOptions,
    }

    #[test]
    fn the_help_tells_the_defaults_as_they_are() {
        let limits = Limits::default();
        let help = Line::command().render_long_help().to_string();
        for (option, default) in [
            ("text-bytes", limits.max_text_bytes),
            ("path-bytes", limits.max_path_bytes),
            ("metadata-bytes", limits.max_metadata_bytes),
            ("tags", limits.max_tags),
            ("top-k", limits.max_top_k),
            ("page", limits.max_page),
            ("reply-bytes", limits.max_reply_bytes),
            ("forget", limits.max_forget),
            ("export-bytes", limits.max_export_bytes),
        ] {
            let (_, after) =
                help.split_once(&format!("--max-{option} <N>")).expect("there is such an option");
            let told = after.split("[default: ").nth(1).and_then(|rest| rest.split(']').next());
            assert_eq!(told, Some(default.to_string().as_str()), "{option}");
        }
    }

    #[test]
    fn each_can_be_raised_and_lowered_within_its_bounds() {
        let line = ["warm-mcp", "--max-tags", "64", "--max-top-k", "3", "--max-page", ""];
        let limits = Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}")).limits.limits();
        assert_eq!(limits, Limits { max_tags: 64, max_top_k: 3, ..Limits::default() });
        for value in ["0", "-1", "many", "1025", "1.5", "99999999999999999999"] {
            let refused = Line::try_parse_from(["warm-mcp", "--max-tags", value]).err().expect("refused");
            assert!(value == "-1" || refused.to_string().contains("from 1 to 1024"), "{refused}");
        }
    }
}
