//! A store in a temporary directory, for the engine's integration tests.

use std::path::{Path, PathBuf};

use warm_engine::contract::{Command, CommandLimits, Limits, Recall, Remember};
use warm_engine::{Engine, Error, Vault, VaultOptions};

pub struct Home(tempfile::TempDir);

#[allow(dead_code)] // each test binary uses some of these
impl Home {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn dir(&self) -> &Path {
        self.0.path()
    }

    pub fn options(&self) -> VaultOptions {
        VaultOptions { data_dir: self.dir().join("data"), identity: None, passphrase: None }
    }

    pub fn vault(&self) -> Vault {
        Vault::open(&self.options()).unwrap()
    }

    pub fn open(&self) -> Engine {
        self.open_with(Limits::default())
    }

    pub fn open_with(&self, limits: Limits) -> Engine {
        Engine::open(&self.vault(), "default", limits).unwrap()
    }

    /// Every file of the store, with its bytes.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut todo = vec![self.options().data_dir];
        while let Some(dir) = todo.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    found.push((path.clone(), std::fs::read(&path).unwrap()));
                }
            }
        }
        found
    }

    /// The file that holds the records.
    pub fn store_file(&self) -> PathBuf {
        let files = self.files();
        files.into_iter().map(|(path, _)| path).find(|path| path.ends_with("store.redb")).unwrap()
    }
}

#[allow(dead_code)]
pub trait Shorthand {
    fn run(&self, command: Command) -> Result<String, String>;
    fn create(&self, path: &str, text: &str) -> Result<String, String>;
    fn view(&self, path: &str) -> Result<String, String>;
    fn remember_text(&self, key: &str, text: &str) -> String;
    fn recalled(&self, query: &str) -> Vec<String>;
}

impl Shorthand for Engine {
    fn run(&self, command: Command) -> Result<String, String> {
        self.command(command, CommandLimits::default()).map_err(|error: Error| error.to_string())
    }

    fn create(&self, path: &str, text: &str) -> Result<String, String> {
        self.run(Command::Create { path: path.into(), file_text: text.into() })
    }

    fn view(&self, path: &str) -> Result<String, String> {
        self.run(Command::View { path: path.into(), view_range: None })
    }

    fn remember_text(&self, key: &str, text: &str) -> String {
        self.remember(Remember { key: Some(key.into()), text: text.into(), ..Remember::default() })
            .unwrap()
            .version
    }

    fn recalled(&self, query: &str) -> Vec<String> {
        let found = self.recall(&Recall { query: query.into(), k: Some(50), ..Recall::default() }).unwrap();
        found.results.into_iter().map(|hit| hit.key).collect()
    }
}
