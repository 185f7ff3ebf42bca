//! The life of the server.
//!
//! Owns the order of things: open the store, serve the one session on stdin and stdout or any number over
//! HTTP, and on the end of input, SIGTERM or SIGINT answer what was read and end cleanly.

use std::{sync::Arc, time::Duration};

use rmcp::service::serve_directly;
use tokio::sync::{Notify, watch};
use warm_engine::Vault;

use crate::{
    handler::Handler,
    http::{self, options::Transport},
    namespaces::Namespaces,
    options::Options,
    service::Service,
    session::Session,
    signals,
    transport::LineTransport,
};

/// Serves until the client is gone. Errors are for a person to read.
pub fn serve(options: &Options) -> Result<(), String> {
    signals::survive_full_files();
    let listen = match options.http.transport() {
        Transport::Stdio => None,
        Transport::Http => {
            let listen = options.http.listen()?;
            // Before a store is made.
            let listener = listen.bind()?;
            Some((listen, listener))
        }
    };
    let service = Arc::new(open(options)?);
    // One session is served best by one thread, many by all.
    let mut runtime = match listen {
        None => tokio::runtime::Builder::new_current_thread(),
        Some(_) => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.enable_all().build();
    let runtime = runtime.map_err(|error| format!("the server could not start: {error}"))?;
    let served = runtime.block_on(async {
        let stopped = when_stopped();
        match listen {
            None => session(service, stopped).await,
            Some(listen) => http::serve(service, listen, stopped).await,
        }
    });
    // A read of stdin that is not a pipe can't be called off: it ends with the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    served
}

fn open(options: &Options) -> Result<Service, String> {
    let offer = options.offer.offer()?;
    let key = options.vault()?;
    let vault = Vault::open(&key).map_err(|error| error.to_string())?;
    if vault.created() {
        eprintln!("{}", first_start(&vault));
    }
    let (chosen, default) = (&options.namespaces, options.namespace().clone());
    let namespaces =
        Namespaces::open(vault, options.limits(), default, chosen.namespace_arg, chosen.max_open());
    let namespaces = namespaces.map_err(|error| error.to_string())?;
    Ok(Service::new(namespaces, key, offer, options.offer.load()))
}

/// Said once in the life of a store.
pub fn first_start(vault: &Vault) -> String {
    let store = vault.data_dir().display();
    match vault.identity_path() {
        Some(identity) => format!(
            "warm-mcp: made a new sealed store in {store}.\n\
             Its key is the identity file {}.\n\
             Keep a copy of that file in a safe place: without it the memories are lost.",
            identity.display()
        ),
        None => format!(
            "warm-mcp: made a new sealed store in {store}.\n\
             Its key is the passphrase: without it the memories are lost."
        ),
    }
}

/// Turns true when this process is told to stop.
fn when_stopped() -> watch::Receiver<bool> {
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(async move {
        match told_to_stop().await {
            Ok(()) => {
                tracing::info!("told to stop");
                stop.send_replace(true);
            }
            Err(error) => tracing::error!(%error, "signals can't be heard"),
        }
    });
    stopped
}

async fn session(service: Arc<Service>, stopped: watch::Receiver<bool>) -> Result<(), String> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let gave_up = Arc::new(Notify::new());
    let max_request = service.namespaces.max_request_bytes();
    let ending = service.ending.clone();
    let transport = LineTransport::new(input, output, max_request, stopped, Arc::clone(&gave_up), ending);
    let session = async {
        let session = serve_directly(Session::new(Handler::new(service)), transport, None);
        let ended = session.waiting().await;
        ended.map(|_| ()).map_err(|_| "the session ended by a fault of warm-mcp.".to_owned())
    };
    tokio::select! {
        ended = session => ended,
        () = gave_up.notified() => {
            tracing::warn!("the client does not read; ending without it");
            Ok(())
        }
    }
}

#[cfg(unix)]
async fn told_to_stop() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn told_to_stop() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
