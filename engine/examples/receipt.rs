//! Forgets some memories of a store that it makes for the purpose, and prints the receipts, a file a line.
//!
//! ```sh
//! cargo run -p warm-engine --example receipt | head -1 > receipt.json
//! node integrations/receipt-check/verify.mjs receipt.json
//! ```

use std::error::Error;

use warm_engine::contract::{CopyKind, Copying, Forget, Limits, Remember};
use warm_engine::receipt::verify;
use warm_engine::{Engine, Vault, VaultOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let vault =
        Vault::open(&VaultOptions { data_dir: dir.path().join("d"), identity: None, passphrase: None })?;
    let engine = Engine::open(&vault, "default", Limits::default())?;
    let remember = |key: String| {
        engine.remember(Remember { key: Some(key), text: "a text".into(), ..Remember::default() })
    };
    // One memory alone, then enough that the tree has grown between the receipts.
    remember("alone".into())?;
    let mut forgotten = vec![Forget { key: Some("alone".into()), ..Forget::default() }];
    forgotten.push(Forget { keys: Some(["k3", "k31", "k77"].map(Into::into).into()), ..Forget::default() });
    forgotten.push(Forget { prefix: Some("k".into()), confirm: true, ..Forget::default() });
    for (number, request) in forgotten.into_iter().enumerate() {
        if number == 1 {
            (0..100).try_for_each(|n| remember(format!("k{n}")).map(|_| ()))?;
            engine
                .note_copy(&Copying { kind: CopyKind::Backup, place: "/media/stick/memories.age".into() })?;
            engine.note_copy(&Copying { kind: CopyKind::Export, place: "/home/ann/notes".into() })?;
        }
        let receipt = engine.forget(request)?.receipt.ok_or("something was forgotten")?;
        let file = engine.receipt(&receipt.id)?;
        verify(&file, Some(&engine.public_key()))?;
        println!("{}", serde_json::to_string(&file)?);
    }
    Ok(())
}
