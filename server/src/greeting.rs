//! What a person reads who starts the server at a terminal.
//!
//! Owns those few lines. A server that waited in silence for protocol messages would look stuck.

use crate::options::Options;

/// The lines, without a last newline.
pub fn text(options: &Options) -> String {
    let program = program();
    let store = options.data_dir().map_or_else(|_| "(no folder)".to_owned(), |dir| dir.display().to_string());
    let arguments = options.store_arguments();
    let mut server = serde_json::json!({"command": program});
    if !arguments.is_empty() {
        server["args"] = serde_json::json!(arguments);
    }
    let config = serde_json::json!({"mcpServers": {"warm": server}});
    let arguments: String = arguments.iter().map(|argument| format!(" {}", shell_word(argument))).collect();
    format!(
        "\
warm-mcp {version}: a sealed, searchable memory for AI agents

It is an MCP server: a client starts it and talks to it over a pipe, so there is
nothing to type here. To connect one:

  Claude Code     claude mcp add --scope user warm -- {program}{arguments}
  Claude Desktop  add to claude_desktop_config.json:
                  {config}

Started so it serves the namespace {namespace}
({why}).

To see it at work in a temporary folder, to check the store in
{store}, and for all options:

  {program} demo
  {program} doctor{arguments}
  {program} --help",
        namespace = options.namespace().name,
        why = options.namespace().why(),
        version = env!("CARGO_PKG_VERSION"),
        program = shell_word(&program),
    )
}

/// Where this program is, so that what is shown works as it stands.
pub fn program() -> String {
    std::env::current_exe().map_or_else(|_| "warm-mcp".to_owned(), |path| path.to_string_lossy().into_owned())
}

/// A path as a shell reads it back.
pub fn shell_word(path: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "/._-+:\\".contains(character);
    if path.chars().all(plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}
