//! What the stages that need Node have in common: is it there, and are their packages installed?

use std::{fs, path::Path, process::Command};

use crate::{Outcome, succeeds};

/// What npm installs, to the byte.
pub const LOCK: &str = "package-lock.json";

/// Says so if this machine has no Node that is new enough.
pub fn lacks_node() -> Option<String> {
    (!is_new_enough("node", 20)).then(|| "Node 20 or newer is not installed as node".to_owned())
}

/// What this machine lacks for any of these stages.
pub fn lack() -> Option<String> {
    if let Some(lack) = lacks_node() {
        return Some(lack);
    }
    let npm = succeeds(Command::new("npm").arg("--version"));
    (!npm).then(|| "npm is not installed".to_owned())
}

/// Whether a program is Node of this major version or a newer one.
pub fn is_new_enough(node: impl AsRef<std::ffi::OsStr>, major: u32) -> bool {
    let asked = format!("process.exit(Number(process.versions.node.split('.')[0]) < {major} ? 1 : 0)");
    succeeds(Command::new(node).args(["-e", &asked]))
}

/// Installs what the lock file in a folder says, unless that is installed.
pub fn install(folder: &Path) -> Outcome {
    if is_installed(folder) {
        return Outcome::Passed;
    }
    match Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(folder).output() {
        Ok(output) if output.status.success() => {
            let stamp = folder.join("node_modules").join(LOCK);
            match fs::copy(folder.join(LOCK), &stamp) {
                Ok(_) => Outcome::Passed,
                Err(error) => Outcome::Failed(format!("{} could not be written: {error}", stamp.display())),
            }
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if unreachable(&said) {
                Outcome::Skipped(format!("npm can't reach its registry:\n{said}"))
            } else {
                Outcome::Failed(format!("npm could not install what {} needs:\n{said}", folder.display()))
            }
        }
        Err(error) => Outcome::Failed(format!("npm could not be started: {error}")),
    }
}

/// The lock file is copied beside the packages when they are all there: a run that was cut short, or another
/// lock, installs anew.
pub fn is_installed(folder: &Path) -> bool {
    let installed = fs::read(folder.join("node_modules").join(LOCK));
    matches!((installed, fs::read(folder.join(LOCK))), (Ok(old), Ok(new)) if old == new)
}

/// Whether npm failed for want of a network, which is no fault of the package.
fn unreachable(said: &str) -> bool {
    ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ERR_SOCKET_TIMEOUT"]
        .iter()
        .any(|sign| said.contains(sign))
}
