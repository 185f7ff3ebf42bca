//! Signals that must not end the process in the middle of its work.
//!
//! Owns which those are. A handler that tokio has installed stays for the life of the process.

/// "File size limit exceeded", as Linux numbers it.
#[cfg(target_os = "linux")]
const SIGXFSZ: i32 = 25;

/// Makes a file that may not grow further an error of that write, not the end of the process.
pub fn survive_full_files() {
    #[cfg(target_os = "linux")]
    survive(&[tokio::signal::unix::SignalKind::from_raw(SIGXFSZ)]);
}

/// Leaves it to the editor what to do when a person presses Ctrl-C or closes the terminal: text that
/// waits in a temporary file is still to be saved and removed.
pub fn leave_to_the_editor() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::SignalKind;
        survive(&[
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::hangup(),
            SignalKind::terminate(),
        ]);
    }
}

#[cfg(unix)]
fn survive(kinds: &[tokio::signal::unix::SignalKind]) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return; // Then the signal ends the process, as it does by default.
    };
    let _in_runtime = runtime.enter();
    for kind in kinds {
        let _ = tokio::signal::unix::signal(*kind);
    }
}
