//! What is chosen of namespaces on the command line.
//!
//! Owns the options, what contradicts what, and the namespace that they come to, together with the reason, so
//! that whoever wonders can be told.

use std::{ffi::OsString, fmt};

use clap::{Args, ValueEnum};

use super::project::{Project, lasting_name};
use crate::{
    greeting::shell_word,
    options::{Chosen, or_empty, within},
};

const DEFAULT: &str = "default";
/// Open at a time unless told otherwise: with some six files each, well within what systems let a process have.
const MAX_OPEN: u64 = 64;

/// Which memories a call goes to.
#[derive(Args)]
#[command(next_help_heading = "Namespaces")]
pub struct NamespaceOptions {
    /// Which memories to serve: one store per user, agent or project [default: default]
    #[arg(long, global = true, value_name = "NAME", env = "WARM_MCP_NAMESPACE")]
    namespace: Option<String>,

    /// Which namespace is served where none is named: `global`, the same everywhere, or `project`, one for each
    /// project, which is the nearest folder upwards with a .git, or else the folder itself [default: global]
    #[arg(
        long,
        global = true,
        value_name = "STRATEGY",
        env = "WARM_MCP_NAMESPACE_STRATEGY",
        value_parser = or_empty(strategy)
    )]
    namespace_strategy: Option<Chosen<Strategy>>,

    /// The project to serve, instead of the one around the working folder: its folder, written with a /, or a name,
    /// which stays the same when the project is moved
    #[arg(long, global = true, value_name = "PATH|NAME", env = "WARM_MCP_PROJECT")]
    project: Option<OsString>,

    /// Let each call name its own namespace
    #[arg(
        long,
        global = true,
        env = "WARM_MCP_NAMESPACE_ARG",
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub namespace_arg: bool,

    /// Most namespaces that are kept open; the one that was not used for longest is closed for another, and
    /// opened again when it is asked for [default: 64]
    #[arg(
        long,
        global = true,
        value_name = "N",
        env = "WARM_MCP_MAX_OPEN_NAMESPACES",
        value_parser = or_empty(within(1, 10_000))
    )]
    max_open_namespaces: Option<Chosen<u64>>,
}

/// How a namespace is chosen where none is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Strategy {
    Global,
    Project,
}

fn strategy(text: &str) -> Result<Strategy, String> {
    Strategy::from_str(text, false).map_err(|_| "give global or project".to_owned())
}

/// A namespace, and why it is this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub name: String,
    why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Why {
    Default,
    Named,
    /// By `--project`.
    NamedProject(Project),
    /// By the working folder.
    ProjectAround(Project),
}

impl Namespace {
    /// One that was named outright.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), why: Why::Named }
    }

    /// Whether it was chosen, and is not only what is left.
    pub fn is_chosen(&self) -> bool {
        self.why != Why::Default
    }

    /// The options that lead to it.
    pub fn arguments(&self) -> Vec<String> {
        let arguments = |option: &str, value: &str| vec![option.to_owned(), value.to_owned()];
        match &self.why {
            Why::Default => Vec::new(),
            Why::Named => arguments("--namespace", &self.name),
            Why::NamedProject(Project::Name(name)) => arguments("--project", name),
            Why::NamedProject(Project::Folder(folder)) => arguments("--project", &folder.to_string_lossy()),
            Why::ProjectAround(_) => arguments("--namespace-strategy", "project"),
        }
    }
}

impl Default for Namespace {
    fn default() -> Self {
        Self { name: DEFAULT.to_owned(), why: Why::Default }
    }
}

impl Namespace {
    /// Why it is this one, in words.
    pub fn why(&self) -> String {
        self.why.to_string()
    }

    /// What to do when nothing is in it only because the project was somewhere else before.
    pub fn when_moved(&self) -> Option<String> {
        let (Why::ProjectAround(Project::Folder(_)) | Why::NamedProject(Project::Folder(_))) = &self.why
        else {
            return None;
        };
        let name = lasting_name(&self.name)?;
        Some(format!(
            "It belongs to the folder of the project. If that folder was moved or renamed, its memories are in the \
             namespace of the old one, which `warm-mcp namespaces` lists: what stands there after `project:` is the \
             NAME for --project NAME, which keeps them wherever the project is (for this one: --project {})",
            shell_word(name)
        ))
    }
}

/// The reason, to be read after the name.
impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("the default"),
            Self::Named => f.write_str("named by --namespace"),
            Self::NamedProject(project) => write!(f, "{project}, named by --project"),
            Self::ProjectAround(project) => write!(f, "{project}, by --namespace-strategy project"),
        }
    }
}

impl NamespaceOptions {
    /// The namespace of a call that names none. Errors when the options contradict each other, or lead to no
    /// project.
    pub fn namespace(&self) -> Result<Namespace, String> {
        let named = self.namespace.as_deref().filter(|name| !name.is_empty());
        let project = self.project.as_deref().filter(|project| !project.is_empty());
        match (named, project, self.namespace_strategy.flatten()) {
            (Some(_), Some(_), _) => Err(contradiction(
                "--namespace (WARM_MCP_NAMESPACE) and --project (WARM_MCP_PROJECT) both say which memories are meant",
            )),
            (Some(_), None, Some(Strategy::Project)) => Err(contradiction(
                "--namespace (WARM_MCP_NAMESPACE) names one namespace, and --namespace-strategy project \
                 (WARM_MCP_NAMESPACE_STRATEGY) asks for one for each project",
            )),
            (None, Some(_), Some(Strategy::Global)) => Err(contradiction(
                "--project (WARM_MCP_PROJECT) names a project, and --namespace-strategy global \
                 (WARM_MCP_NAMESPACE_STRATEGY) asks for one namespace for all",
            )),
            (Some(name), None, _) => Ok(Namespace::named(name)),
            (None, Some(project), _) => {
                let project = Project::named(project)?;
                Ok(Namespace { name: project.namespace(), why: Why::NamedProject(project) })
            }
            (None, None, Some(Strategy::Project)) => {
                let around = std::env::current_dir().and_then(|folder| Project::around(&folder));
                let project = around.map_err(|error| {
                    format!(
                        "the working folder can't be found ({error}), and with it the project.\n\
                         Name the project with --project PATH or NAME."
                    )
                })?;
                Ok(Namespace { name: project.namespace(), why: Why::ProjectAround(project) })
            }
            (None, None, None | Some(Strategy::Global)) => Ok(Namespace::default()),
        }
    }

    /// How many are kept open.
    pub fn max_open(&self) -> usize {
        usize::try_from(self.max_open_namespaces.flatten().unwrap_or(MAX_OPEN)).unwrap_or(usize::MAX)
    }
}

fn contradiction(what: &str) -> String {
    format!("{what}.\nGive one of the two.")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: NamespaceOptions,
    }

    fn namespace(arguments: &[&str]) -> Result<Namespace, String> {
        let line = ["warm-mcp"].iter().chain(arguments);
        let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
        line.options.namespace()
    }

    #[test]
    fn the_namespace_comes_with_the_reason_and_the_options_that_lead_to_it() {
        for (arguments, name, why) in [
            (&[][..], "default", "the default"),
            (&["--namespace", ""], "default", "the default"),
            (&["--namespace-strategy", "global", "--project", ""], "default", "the default"),
            (&["--namespace-strategy", "", "--namespace", "work"], "work", "named by --namespace"),
            (&["--project", "app"], "project:app", "the project app, named by --project"),
        ] {
            let namespace = namespace(arguments).unwrap_or_else(|problem| panic!("{problem}"));
            assert_eq!((namespace.name.as_str(), namespace.why().as_str()), (name, why), "{arguments:?}");
            let again =
                self::namespace(&namespace.arguments().iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(again, Ok(namespace));
        }
        let around = namespace(&["--namespace-strategy", "project"]).unwrap_or_else(|p| panic!("{p}"));
        assert!(around.name.starts_with("project:") && around.why().contains("--namespace-strategy project"));
    }

    #[test]
    fn options_that_contradict_each_other_are_named() {
        for (arguments, both) in [
            (&["--namespace", "a", "--project", "b"][..], ["--namespace ", "--project "]),
            (
                &["--namespace", "a", "--namespace-strategy", "project"],
                ["--namespace ", "--namespace-strategy"],
            ),
            (&["--project", "a", "--namespace-strategy", "global"], ["--project ", "--namespace-strategy"]),
        ] {
            let refused = namespace(arguments).err().unwrap_or_default();
            assert!(both.iter().all(|option| refused.contains(option)), "{arguments:?}: {refused}");
        }
        assert!(
            namespace(&["--namespace-strategy", "folder"])
                .is_err_and(|said| said.contains("global or project"))
        );
    }
}
