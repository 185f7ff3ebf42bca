//! What a command prints: results on stdout, notes on stderr.
//!
//! Owns two rules: that a reader may stop reading, which is no error; and that a terminal is shown no control
//! characters of a memory or a file's name, since they could move its cursor or rename its window.

use std::{
    borrow::Cow,
    fmt::Display,
    io::{self, BufWriter, IsTerminal, StdoutLock, Write},
};

use super::Stop;

/// Stdout, buffered.
pub struct Output {
    out: BufWriter<StdoutLock<'static>>,
    terminal: bool,
}

impl Output {
    pub fn new() -> Self {
        let stdout = io::stdout();
        Self { terminal: stdout.is_terminal(), out: BufWriter::new(stdout.lock()) }
    }

    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Prints a line.
    pub fn line(&mut self, line: impl Display) -> Result<(), Stop> {
        self.text(&format!("{line}\n"))
    }

    /// Prints text as it is, except that a terminal gets no control characters.
    pub fn text(&mut self, text: &str) -> Result<(), Stop> {
        let shown = if self.terminal { harmless(text) } else { Cow::Borrowed(text) };
        self.out.write_all(shown.as_bytes()).map_err(stopped)
    }

    /// Must be called at the end: what is left is written then.
    pub fn end(mut self) -> Result<(), Stop> {
        self.out.flush().map_err(stopped)
    }
}

/// Says something on stderr, to whoever listens.
pub fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", harmless(&text.to_string()));
}

/// Why stdout could not be written to.
pub fn stopped(error: io::Error) -> Stop {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Stop::Unheard,
        _ => Stop::Said(format!("the output can't be written: {error}.")),
    }
}

fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let text: Cow<'_, str> =
        if text.contains("\r\n") { text.replace("\r\n", "\n").into() } else { text.into() };
    if text.contains(harmful) { text.replace(harmful, "\u{fffd}").into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn a_terminal_gets_no_control_characters_and_every_other_one() {
        assert_eq!(harmless("a\tb\r\nc\u{1b}]0;x\u{7} ü🚀\n"), "a\tb\nc\u{fffd}]0;x\u{fffd} ü🚀\n");
    }
}
