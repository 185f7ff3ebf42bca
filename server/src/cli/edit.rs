//! `warm-mcp edit`: a memory in its owner's editor.
//!
//! The store is not held open while the editor is: what is saved is written only if the memory is still the
//! one that was opened. The text is in a private temporary folder meanwhile, preferably one in memory, together
//! with whatever the editor keeps beside it; it stays only where it could not be saved.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Args;
use tempfile::TempDir;
use warm_engine::contract::{ErrorCode, Get, Memory as Stored, Remember};

use super::{
    Done, Stop,
    look::is_tree_path,
    output::Output,
    store::{Access, open, open_if_there, other_answer},
};
use crate::{
    greeting::shell_word,
    memory::{Failure, Memory, Reply, Request},
    options::Options,
    signals::leave_to_the_editor,
};

/// What to edit.
#[derive(Args, Clone, PartialEq, Eq)]
pub struct Edit {
    /// A path below /memories, or the key of another memory; made if it is new
    #[arg(value_name = "PATH")]
    path: String,
}

impl Edit {
    pub fn run(&self, options: &Options) -> Done {
        let editor = editor()?;
        options.limits().check_key(&self.path).map_err(|error| format!("{error}."))?;
        let before = match open_if_there(options, &options.namespace().name)? {
            Some(memory) => self.get(&*memory)?,
            None => None,
        };
        let text = before.as_ref().map_or("", |stored| &stored.text);
        let mut draft = Draft::new(&self.path, text)?;
        leave_to_the_editor();
        run(&editor, &draft.file).map_err(|problem| draft.end(&problem))?;
        let edited = match fs::read(&draft.file).map(String::from_utf8) {
            Ok(Ok(edited)) => edited,
            Ok(Err(_)) => return Err(draft.end("the text is not UTF-8, so nothing was written.")),
            Err(error) => {
                let problem =
                    format!("the editor left no file that can be read ({error}): nothing was written.");
                return Err(draft.end(&problem));
            }
        };
        if edited.is_empty() && !text.is_empty() {
            // There is nothing to keep, and nothing to look for.
            return Err(Stop::Said(format!(
                "the text is empty, so nothing was written and {0} is as it was. To be rid of it: warm-mcp forget {1}",
                self.path,
                shell_word(&self.path)
            )));
        }
        let mut out = Output::new();
        if edited == text {
            out.line(format_args!("{} is unchanged: nothing was written.", self.path))?;
        } else {
            match self.save(options, before, edited) {
                Ok(created) => {
                    let did = if created { "Made" } else { "Saved" };
                    out.line(format_args!("{did} {}.", self.path))?;
                }
                Err(problem) => return Err(draft.end(&problem)),
            }
        }
        out.end()?;
        Ok(ExitCode::SUCCESS)
    }

    fn get(&self, memory: &dyn Memory) -> Result<Option<Stored>, Stop> {
        match memory.call(Request::Get(Get { key: self.path.clone() })) {
            Ok(Reply::Get(stored)) => Ok(Some(*stored)),
            Ok(_) => Err(other_answer().into()),
            Err(failure) if failure.code == ErrorCode::NotFound => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Writes the text in place of the version that was edited. Says whether the memory is new.
    fn save(&self, options: &Options, before: Option<Stored>, text: String) -> Result<bool, String> {
        let mut remember = Remember { text, key: Some(self.path.clone()), ..Remember::default() };
        match before {
            Some(stored) => {
                remember.title = stored.title;
                remember.tags = stored.tags;
                remember.metadata = stored.metadata;
                remember.if_version = Some(stored.version);
            }
            None => remember.create_only = true,
        }
        match open(options, Access::Create)?.call(Request::Remember(remember)) {
            Ok(Reply::Remember(saved)) => Ok(saved.created),
            Ok(_) => Err(other_answer().message),
            Err(Failure { code: ErrorCode::VersionConflict | ErrorCode::AlreadyExists, .. }) => Err(format!(
                "{} was changed by someone else meanwhile: nothing was overwritten.\nLook at it with \
                 `warm-mcp view {0}`, then edit it again.",
                self.path
            )),
            Err(failure) => Err(format!("{}.", failure.message.trim_end_matches('.'))),
        }
    }
}

/// The text while it is edited. Removed when dropped, unless it was kept.
struct Draft {
    folder: TempDir,
    file: PathBuf,
    /// The text as it was.
    before: String,
}

impl Draft {
    fn new(path: &str, text: &str) -> Result<Self, Stop> {
        let failed = |error: std::io::Error| {
            Stop::Said(format!(
                "there is no temporary place for the text: {error}. Set TMPDIR to a folder of yours."
            ))
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix("warm-edit-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        // In memory and gone at the end of the session, where there is such a place.
        let in_memory =
            std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
        let folder = in_memory.and_then(|dir| builder.tempdir_in(dir).ok());
        let folder = folder.map_or_else(|| builder.tempdir(), Ok).map_err(failed)?;
        // The name tells the editor which kind of text it is.
        let name = path.rsplit('/').next().filter(|_| is_tree_path(path)).unwrap_or("memory.md");
        let file = folder.path().join(name);
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&file).and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)?;
        Ok(Self { folder, file, before: text.to_owned() })
    }

    /// Ends the edit with a problem, and leaves what differs from the text as it was where its owner finds it.
    fn end(&mut self, problem: &str) -> Stop {
        let Some(place) = self.work() else { return Stop::Said(problem.to_owned()) };
        self.folder.disable_cleanup(true);
        Stop::Said(format!(
            "{problem}\nYour text is in {}: move it somewhere safe, or delete it, since it is not sealed.",
            place.display()
        ))
    }

    /// Where the owner's work is, if there is any: in the file, or else in what the editor left beside it, as one
    /// does that crashed.
    fn work(&self) -> Option<PathBuf> {
        let differs = match fs::read(&self.file) {
            Ok(text) => text != self.before.as_bytes(),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        };
        if differs {
            return Some(self.file.clone());
        }
        let entries = fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).find(|path| *path != self.file)
    }
}

/// The command line of the owner's editor.
fn editor() -> Result<String, Stop> {
    ["VISUAL", "EDITOR"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|editor| !editor.trim().is_empty())
        .ok_or_else(|| {
            Stop::Said("no editor is named: set EDITOR, as in `EDITOR=nano warm-mcp edit PATH`.".into())
        })
}

fn run(editor: &str, file: &Path) -> Result<(), String> {
    // The variable holds a command line, such as `code --wait`.
    let mut command = if cfg!(windows) {
        let mut words = editor.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or(editor));
        command.args(words).arg(file);
        command
    } else {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file);
        command
    };
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the editor failed ({status}): nothing was written.")),
        Err(error) => Err(format!(
            "the editor could not be started ({error}): nothing was written. Check EDITOR and VISUAL."
        )),
    }
}
