//! Long work that is watched by the one who waits for it.

use std::sync::Arc;

use warm_engine::contract::{
    ErrorCode, Export, Forget, Get, Limits, Recall, Remember, Suggest, SuggestWhat, Write, Written,
};
use warm_engine::{Engine, Progress, Vault, VaultOptions};

fn engine(dir: &tempfile::TempDir) -> Engine {
    let options = VaultOptions { data_dir: dir.path().join("store"), identity: None, passphrase: None };
    Engine::open(&Vault::open(&options).unwrap(), "default", Limits::default()).unwrap()
}

fn filled(dir: &tempfile::TempDir) -> Engine {
    let engine = engine(dir);
    for n in 0..10 {
        let (key, text) = (Some(format!("k{n}")), "some text".to_owned());
        engine.remember(Remember { key, text, ..Remember::default() }).unwrap();
    }
    engine
}

#[test]
fn a_read_that_nobody_waits_for_ends_with_an_error_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let engine = filled(&dir);
    let progress = Progress::default();
    assert_eq!(engine.export_watched(&Export::default(), &progress).unwrap().returned, 10);
    let (done, total) = progress.get().unwrap();
    assert!(done > 0 && done < total);
    progress.give_up();
    let refused = engine.export_watched(&Export::default(), &progress).err().unwrap();
    assert_eq!(refused.code(), ErrorCode::Cancelled);
}

#[test]
fn a_recall_is_given_up_only_while_it_waits_for_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let engine = filled(&dir);
    let recall = Recall { query: "text".into(), ..Recall::default() };
    engine.recall(&recall).unwrap();
    let progress = Progress::default();
    progress.give_up();
    assert_eq!(engine.recall_watched(&recall, &progress).unwrap().total, 10);
    assert_eq!(progress.get(), None);
}

#[test]
fn a_write_that_is_given_up_is_made_whole() {
    let dir = tempfile::tempdir().unwrap();
    let engine = filled(&dir);
    let progress = Arc::new(Progress::default());
    progress.give_up();
    let forget = Forget { prefix: Some("k".into()), confirm: true, ..Forget::default() };
    let written = engine.write_watched(Write::Forget(forget), None, &progress).unwrap();
    assert!(matches!(written, Written::Forget(forgotten) if forgotten.forgotten == 10));
    assert_eq!(progress.get(), Some((9, 11)));
    assert!(engine.get(&Get { key: "k1".into() }).is_err());
}

#[test]
fn what_was_begun_is_bounded_like_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let engine = filled(&dir);
    let suggest = |begun: &str| {
        engine.suggest(&Suggest { what: SuggestWhat::Keys, begun: begun.into(), most: u64::MAX })
    };
    assert_eq!(suggest("k").unwrap().values.len(), 10);
    assert_eq!(suggest(&"k".repeat(100_000)).err().unwrap().code(), ErrorCode::TooLarge);
}
