//! Memories as Markdown: the texts alone, each under its key.

use warm_engine::contract::Memory as Stored;

/// One memory of several that stand below each other; before each but the first is a blank line.
pub fn section(memory: &Stored, first: bool) -> String {
    let between = if first { "" } else { "\n" };
    let newline = if memory.text.ends_with('\n') { "" } else { "\n" };
    format!("{between}# {}\n\n{}{newline}", memory.key, memory.text)
}
