//! Which namespace a project has.
//!
//! A project is a folder, or a name that its owner gave it. The namespace of a folder is
//! `project:<name of the folder>-<hash of its full path>`: legible, and another for every folder, whatever
//! path or link led there. The namespace of a name is `project:<name>`, wherever the project is; so what stands
//! after `project:` is also the name by which a project that was moved keeps its memories.

use std::{
    ffi::OsStr,
    fmt, io,
    path::{Component, Path, PathBuf},
};

use sha2::{Digest, Sha256};

const PREFIX: &str = "project:";
/// Longest name of a folder that is taken whole, in bytes: all of it fits the name of a namespace.
const LONGEST_LABEL: usize = 100;
/// Longest name of a project, in bytes.
const LONGEST_NAME: usize = 120;
/// Bytes of the hash, enough that no two folders of one machine share it.
const HASH_BYTES: usize = 6;

/// A project that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Project {
    /// A folder, without links in its path.
    Folder(PathBuf),
    /// A name that does not depend on where the project is.
    Name(String),
}

impl Project {
    /// The project that `--project` names: a folder if it is written as a path, else a name. The folder itself is
    /// meant then, also where it is a part of a larger project.
    pub fn named(given: &OsStr) -> Result<Self, String> {
        if is_path(given) {
            let given = Path::new(given);
            let folder = canonical(given).map_err(|error| {
                format!(
                    "--project {} is no folder that can be found: {error}.\n\
                     Give the folder of the project, or a name for it, without a /.",
                    given.display()
                )
            })?;
            return Ok(Self::Folder(folder));
        }
        let name = given
            .to_str()
            .filter(|name| (1..=LONGEST_NAME).contains(&name.len()) && !name.chars().any(char::is_control));
        name.map(|name| Self::Name(name.to_owned())).ok_or_else(|| {
            format!(
                "the name that --project gives is not usable: give 1 to {LONGEST_NAME} bytes of UTF-8 without \
                 control characters, or a path with a /."
            )
        })
    }

    /// The project that a folder is in: the nearest folder upwards that has a `.git`, of whatever kind, or else the
    /// folder itself. A worktree and a submodule are projects of their own.
    pub fn around(folder: &Path) -> io::Result<Self> {
        let folder = canonical(folder)?;
        let root = folder.ancestors().find(|dir| dir.join(".git").symlink_metadata().is_ok());
        Ok(Self::Folder(root.unwrap_or(&folder).to_owned()))
    }

    /// Its namespace.
    pub fn namespace(&self) -> String {
        match self {
            Self::Folder(folder) => {
                let hash = Sha256::new()
                    .chain_update(b"warm project")
                    .chain_update(folder.as_os_str().as_encoded_bytes())
                    .finalize();
                let hash: String = hash[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{PREFIX}{}-{hash}", label(folder))
            }
            Self::Name(name) => format!("{PREFIX}{name}"),
        }
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "the project in {}", folder.display()),
            Self::Name(name) => write!(f, "the project {name}"),
        }
    }
}

/// The name by which `--project` leads to a namespace wherever the project is; `None` if it is no project's.
pub fn lasting_name(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(PREFIX).filter(|name| !is_path(OsStr::new(name)))
}

fn is_path(given: &OsStr) -> bool {
    let mut parts = Path::new(given).components();
    let one_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    let separated = given.as_encoded_bytes().iter().any(|byte| std::path::is_separator(char::from(*byte)));
    separated || !(one_name || given.is_empty())
}

fn canonical(folder: &Path) -> io::Result<PathBuf> {
    let folder = folder.canonicalize()?;
    if folder.is_dir() { Ok(folder) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

/// The name of a folder, for a person to recognise.
fn label(folder: &Path) -> String {
    let name = folder.file_name().map_or_else(|| "root".into(), OsStr::to_string_lossy);
    let mut label = String::new();
    for c in name.chars().map(|c| if c.is_control() { '_' } else { c }) {
        if label.len() + c.len_utf8() > LONGEST_LABEL {
            break;
        }
        label.push(c);
    }
    label
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn namespace(folder: &Path) -> String {
        Project::around(folder).expect("a folder").namespace()
    }

    #[test]
    fn all_folders_of_one_project_have_its_namespace_and_another_project_has_another() {
        let dir = tempfile::tempdir().expect("a folder");
        let (one, two) = (dir.path().join("one/app"), dir.path().join("two/app"));
        for project in [&one, &two] {
            fs::create_dir_all(project.join("src/deep")).expect("folders");
        }
        fs::create_dir(one.join(".git")).expect("a folder");
        fs::write(two.join(".git"), "gitdir: elsewhere\n").expect("a file");
        assert_eq!(namespace(&one), namespace(&one.join("src/deep")));
        assert_eq!(namespace(&two), namespace(&two.join("src")));
        assert_ne!(namespace(&one), namespace(&two), "their names are alike, their places are not");
        assert!(namespace(&one).starts_with("project:app-"), "{}", namespace(&one));
        let submodule = one.join("src/deep");
        fs::write(submodule.join(".git"), "gitdir: ../../.git/modules/deep\n").expect("a file");
        assert_ne!(namespace(&submodule), namespace(&one));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_project_leads_to_the_same_namespace_and_no_project_is_the_folder_itself() {
        let dir = tempfile::tempdir().expect("a folder");
        let project = dir.path().join("app");
        fs::create_dir(&project).expect("a folder");
        std::os::unix::fs::symlink(&project, dir.path().join("link")).expect("a link");
        assert_eq!(namespace(&dir.path().join("link")), namespace(&project));
        let named = |path: &Path| Project::named(path.as_os_str()).map(|project| project.namespace());
        assert_eq!(named(&dir.path().join("link/")), Ok(namespace(&project)));
    }

    #[test]
    fn what_has_a_separator_is_a_path_and_all_else_a_name() {
        for path in ["/", ".", "..", "./app", "app/", "a/b"] {
            assert!(is_path(OsStr::new(path)), "{path}");
        }
        for name in ["app", "my app", "app.v2", "...", "größe"] {
            let project = Project::named(OsStr::new(name));
            assert_eq!(project.map(|project| project.namespace()), Ok(format!("project:{name}")));
        }
        for bad in ["", "a\nb", &"x".repeat(LONGEST_NAME + 1), "/no/such/folder", "./nor/this"] {
            assert!(Project::named(OsStr::new(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_longest_name_of_a_folder_makes_a_usable_namespace() {
        for name in ["x".repeat(255), "ü".repeat(127), "a\tb".to_owned()] {
            let namespace = Project::Folder(Path::new("/home").join(name)).namespace();
            assert!(namespace.len() <= 128 && !namespace.chars().any(char::is_control), "{namespace}");
        }
        assert!(Project::Folder("/".into()).namespace().starts_with("project:root-"));
    }

    #[test]
    fn a_project_that_was_moved_is_named_by_what_its_namespace_says() {
        let namespace = Project::Folder("/home/ann/app".into()).namespace();
        let name = lasting_name(&namespace).expect("it is a project's");
        assert_eq!(
            Project::named(OsStr::new(name)).map(|project| project.namespace()),
            Ok(namespace.clone())
        );
        assert_eq!(lasting_name("default"), None);
    }
}
