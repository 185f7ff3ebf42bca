//! Changes of the recipients, each also cut short at every step.

use std::fs;

use super::*;
use crate::Engine;
use crate::contract::{Limits, Remember};
use crate::vault::VaultOptions;

/// A data directory with two stores, whose identity is in `identity.txt`, and a second identity.
struct Home {
    dir: tempfile::TempDir,
    second: VaultOptions,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join("data");
        let identity = Some(dir.path().join("second.txt"));
        Vault::make_identity(identity.as_ref().unwrap()).unwrap();
        let home = Self { dir, second: VaultOptions { data_dir, identity, passphrase: None } };
        let vault = Vault::open(&home.first()).unwrap();
        for namespace in ["a", "b"] {
            let engine = Engine::open(&vault, namespace, Limits::default()).unwrap();
            let text = format!("what {namespace} knows");
            engine.remember(Remember { key: Some("k".into()), text, ..Remember::default() }).unwrap();
        }
        home
    }

    fn with_second() -> Self {
        let home = Self::new();
        let second = home.second.identity.clone().unwrap();
        home.keys().add_file(&second, "second").unwrap();
        home
    }

    fn first(&self) -> VaultOptions {
        VaultOptions { identity: None, ..self.second.clone() }
    }

    fn with(&self, passphrase: &str) -> VaultOptions {
        VaultOptions { passphrase: Some(Passphrase::new(passphrase.into())), ..self.first() }
    }

    fn keys_by(&self, options: &VaultOptions) -> Keys {
        Keys::hold(&Vault::open_existing(options).unwrap()).unwrap()
    }

    fn keys(&self) -> Keys {
        self.keys_by(&self.first())
    }

    fn first_key(&self) -> String {
        Vault::keys_in(&self.first().identity_path()).unwrap()[0].to_string()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.second.data_dir.join("keys"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Everything that the stores hold, read with a vault that was just opened.
    fn check_memories(&self, options: &VaultOptions) {
        let vault = Vault::open_existing(options).unwrap();
        for namespace in ["a", "b"] {
            let engine = Engine::open(&vault, namespace, Limits::default()).unwrap();
            let got = engine.get(&crate::contract::Get { key: "k".into() }).unwrap();
            assert_eq!(got.text, format!("what {namespace} knows"));
        }
    }
}

fn cut() -> OpenError {
    OpenError::io("go on with", Path::new("this"))(std::io::ErrorKind::Interrupted.into())
}

/// Steps that fail at the n-th, and the stores that were resealed before.
fn cut_at(n: usize, resealed: &mut Vec<PathBuf>) -> impl FnMut(Step<'_>) -> Result<(), OpenError> {
    let mut count = 0;
    move |step| {
        count += 1;
        if count > n {
            return Err(cut());
        }
        if let Step::Reseal(vault, dir) = step {
            assert!(vault.has_unfinished_change(), "both secrets are in the keyring");
            resealed.push(dir.to_owned());
        }
        work(step)
    }
}

#[test]
fn one_who_is_added_opens_the_store_and_goes_by_the_label() {
    let home = Home::with_second();
    home.check_memories(&home.second);
    home.check_memories(&home.first());
    let keys = home.keys_by(&home.second);
    let names: Vec<_> = keys.vault().recipients().iter().map(Recipient::name).collect();
    assert_eq!(names, [home.first_key(), "second".into()]);
    assert_eq!(keys.vault().opened_by().unwrap().label(), "second");
}

#[test]
fn what_can_not_be_added_is_named_and_changes_nothing() {
    let home = Home::with_second();
    let path = home.second.data_dir.join("keys/recipients.age");
    let before = fs::read(&path).unwrap();
    let second = home.second.identity.clone().unwrap();
    let text = fs::read_to_string(&second).unwrap();
    let secret = text.lines().last().unwrap();
    let other = x25519::Identity::generate().to_public().to_string();
    let mut keys = home.keys();
    let error = keys.add(secret, "").unwrap_err();
    assert!(matches!(error, RecipientError::SecretKey) && !error.to_string().contains(&secret[20..]));
    for bad in ["", "age1", "ssh-ed25519 AAAA", &other[..40]] {
        assert!(matches!(keys.add(bad, ""), Err(RecipientError::NotAKey)), "{bad}");
    }
    assert!(matches!(keys.add(&home.first_key(), "x"), Err(RecipientError::AlreadyThere(_))));
    assert!(
        matches!(keys.add_file(&second, ""), Err(RecipientError::AlreadyThere(name)) if name == "second")
    );
    assert!(matches!(keys.add(&other, "second"), Err(RecipientError::LabelTaken(_))));
    assert!(matches!(keys.add(&other, "age1x"), Err(RecipientError::Label(_))));
    assert!(matches!(keys.add_new_file(&second, ""), Err(RecipientError::FileExists(_))));
    let missing = home.dir.path().join("none.txt");
    assert!(matches!(keys.add_file(&missing, ""), Err(RecipientError::Open(OpenError::Io { .. }))));
    let short = Passphrase::new("seven c".into());
    let refused = keys.add_passphrase(&short);
    assert!(matches!(refused, Err(RecipientError::Open(OpenError::ShortPassphrase))));
    assert!(fs::read(&path).unwrap() == before);
    assert_eq!(home.names(), ["lock", "recipients.age"]);
}

#[test]
fn a_keyring_takes_a_hundred_recipients_and_no_more() {
    let home = Home::new();
    let mut keys = home.keys();
    let many = |count| -> Vec<_> {
        (0..count)
            .map(|_| {
                let key = x25519::Identity::generate().to_public();
                Recipient::new(RecipientKind::Identity, key, "x".repeat(64))
            })
            .collect()
    };
    keys.add_all(many(99)).unwrap();
    assert!(matches!(keys.add_all(many(1)), Err(RecipientError::TooMany)));
    let file = home.dir.path().join("one more.txt");
    assert!(matches!(keys.add_new_file(&file, ""), Err(RecipientError::TooMany)) && !file.exists());
    drop(keys);
    assert_eq!(home.keys().vault().recipients().len(), 100);
}

#[test]
fn whoever_is_removed_opens_nothing_any_more_and_the_others_do() {
    let home = Home::with_second();
    let stale = Vault::open_existing(&home.first()).unwrap();
    let mut keys = home.keys_by(&home.second);
    let mut resealed = Vec::new();
    let removed = keys.remove_by(&home.first_key(), false, &mut cut_at(9, &mut resealed)).unwrap();
    drop(keys);
    assert_eq!(removed.public_key(), home.first_key());
    resealed.sort();
    let mut dirs = stale.namespace_dirs().unwrap();
    dirs.sort();
    assert_eq!(resealed, dirs, "every store, once");
    let error = Vault::open_existing(&home.first()).unwrap_err();
    assert!(matches!(error, OpenError::WrongIdentity { .. }), "{error}");
    assert!(matches!(stale.renewed(), Err(OpenError::WrongIdentity { .. })));
    home.check_memories(&home.second);
    let vault = Vault::open_existing(&home.second).unwrap();
    assert!(!vault.has_unfinished_change());
    let proof = |vault: &Vault| vault.prover("a").prove("owner", b"said");
    assert_ne!(proof(&vault), proof(&stale), "the store secret is another");
}

#[test]
fn the_last_one_stays_and_the_own_key_goes_only_when_told() {
    let home = Home::with_second();
    let mut keys = home.keys();
    assert!(matches!(keys.remove("third", false), Err(RecipientError::Unknown)));
    let error = keys.remove(&home.first_key(), false).unwrap_err().to_string();
    assert!(error.contains("--yes") && error.contains("\n  second\n"), "{error}");
    keys.remove(&home.first_key(), true).unwrap();
    assert!(keys.vault().opened_by().is_none());
    assert!(matches!(keys.remove("second", true), Err(RecipientError::LastOne(name)) if name == "second"));
    drop(keys);
    home.check_memories(&home.second);
}

#[test]
fn nobody_is_removed_while_a_store_is_open_and_somebody_may_be_added() {
    let home = Home::with_second();
    let vault = Vault::open_existing(&home.first()).unwrap();
    let engine = Engine::open(&vault, "b", Limits::default()).unwrap();
    let path = home.second.data_dir.join("keys/recipients.age");
    let before = fs::read(&path).unwrap();
    let error = home.keys().remove("second", false).unwrap_err();
    assert!(matches!(error, RecipientError::InUse(_)), "{error}");
    assert!(fs::read(&path).unwrap() == before);
    let third = x25519::Identity::generate().to_public();
    home.keys().add(&third.to_string(), "third").unwrap();
    drop(engine);
    home.keys().remove("second", false).unwrap();
    assert_eq!(home.keys().vault().recipients().len(), 2);
    // The vault that was opened before all this opens what is there now.
    Engine::open(&vault, "b", Limits::default()).unwrap();
}

#[test]
fn nobody_is_removed_while_a_store_is_away_since_it_would_never_open_again() {
    let home = Home::with_second();
    let store = store_path(&Vault::open_existing(&home.first()).unwrap().namespace_dir("a"));
    let away = home.dir.path().join("away");
    fs::rename(&store, &away).unwrap();
    let refused = home.keys_by(&home.second).remove(&home.first_key(), false);
    assert!(matches!(refused, Err(RecipientError::Open(OpenError::StoreMissing(_)))));
    fs::rename(&away, &store).unwrap();
    home.check_memories(&home.first());
    home.keys_by(&home.second).remove(&home.first_key(), false).unwrap();
    home.check_memories(&home.second);
}

#[test]
fn a_removal_that_is_cut_short_at_any_step_leaves_a_store_that_opens_and_is_finished_later() {
    // Renewed, two stores, settled.
    for step in 0..4 {
        let home = Home::with_second();
        let mut resealed = Vec::new();
        let mut keys = home.keys_by(&home.second);
        let refused = keys.remove_by(&home.first_key(), false, &mut cut_at(step, &mut resealed));
        drop(keys);
        let settled = step == 3;
        assert!(matches!(refused, Err(RecipientError::Unfinished(_))), "step {step}");
        // Removed it is from the first step on, and the others go on as before.
        assert!(matches!(Vault::open_existing(&home.first()), Err(OpenError::WrongIdentity { .. })));
        home.check_memories(&home.second);
        assert_eq!(home.keys_by(&home.second).vault().has_unfinished_change(), !settled, "step {step}");
        // Whoever is added meanwhile does not end it.
        let third = x25519::Identity::generate().to_public();
        home.keys_by(&home.second).add(&third.to_string(), "third").unwrap();
        assert_eq!(home.keys_by(&home.second).vault().has_unfinished_change(), !settled, "step {step}");
        // Cut short once more, then done.
        let mut keys = home.keys_by(&home.second);
        if !settled {
            assert!(keys.finish_by(&mut cut_at(1, &mut Vec::new())).is_err());
        }
        let mut again = Vec::new();
        assert_eq!(keys.finish_by(&mut cut_at(9, &mut again)).unwrap(), !settled);
        assert_eq!(again.len(), if settled { 0 } else { 2 }, "every store, whatever was done before");
        assert!(!keys.finish().unwrap());
        drop(keys);
        assert!(!Vault::open_existing(&home.second).unwrap().has_unfinished_change());
        home.check_memories(&home.second);
    }
}

#[test]
fn the_next_removal_finishes_one_that_was_cut_short_first() {
    let home = Home::with_second();
    let third = x25519::Identity::generate().to_public();
    home.keys().add(&third.to_string(), "third").unwrap();
    let mut keys = home.keys();
    assert!(keys.remove_by("second", false, &mut cut_at(2, &mut Vec::new())).is_err());
    let first = keys.vault().prover("a").prove("owner", b"said");
    let mut resealed = Vec::new();
    keys.remove_by("third", false, &mut cut_at(9, &mut resealed)).unwrap();
    assert_eq!(resealed.len(), 4, "two stores, twice");
    assert_ne!(keys.vault().prover("a").prove("owner", b"said"), first, "a secret of its own");
    drop(keys);
    home.check_memories(&home.first());
}

#[test]
fn a_passphrase_is_added_changed_and_removed_and_opens_only_while_it_is_one() {
    let home = Home::new();
    let (old, new) = (home.with("correct horse"), home.with("battery staple"));
    assert!(matches!(Vault::open_existing(&old), Err(OpenError::NoPassphraseSet(_))));
    let mut keys = home.keys();
    let added = keys.add_passphrase(old.passphrase.as_ref().unwrap()).unwrap();
    assert_eq!(added.name(), "passphrase-1");
    let opened = Vault::open_existing(&old).unwrap();
    assert_eq!((opened.opened_with(), opened.opened_by()), ("passphrase", Some(&added)));
    let changed = keys.change_passphrase(None, new.passphrase.as_ref().unwrap()).unwrap();
    assert_eq!(changed.name(), "passphrase-2");
    assert_eq!(home.names(), ["lock", "passphrase-2.age", "recipients.age"]);
    assert!(matches!(Vault::open_existing(&old), Err(OpenError::WrongPassphrase { tried: 1, .. })));
    drop(keys);
    home.check_memories(&new);
    let mut keys = home.keys();
    keys.remove_passphrase(None, false).unwrap();
    assert_eq!(home.names(), ["lock", "recipients.age"]);
    assert!(matches!(keys.remove_passphrase(None, false), Err(RecipientError::NoPassphrase)));
    drop(keys);
    home.check_memories(&home.first());
}

#[test]
fn a_change_of_passphrase_that_is_cut_short_leaves_the_one_or_the_other() {
    let home = Home::new();
    let old = Passphrase::new("correct horse".into());
    let new = Passphrase::new("battery staple".into());
    home.keys().add_passphrase(&old).unwrap();
    // After the file of the new one, nothing has changed yet.
    let mut keys = home.keys();
    assert!(keys.change_passphrase_by(None, &new, &mut cut_at(0, &mut Vec::new())).is_err());
    assert_eq!(home.names(), ["lock", "passphrase-1.age", "passphrase-2.age", "recipients.age"]);
    assert!(!keys.finish().unwrap());
    assert_eq!(home.names(), ["lock", "passphrase-1.age", "recipients.age"]);
    // After the keyring, the new one is in force, and the old file opens nothing.
    assert!(keys.change_passphrase_by(None, &new, &mut cut_at(1, &mut Vec::new())).is_err());
    drop(keys);
    assert_eq!(home.names(), ["lock", "passphrase-1.age", "passphrase-2.age", "recipients.age"]);
    let refused = Vault::open_existing(&home.with("correct horse"));
    assert!(matches!(refused, Err(OpenError::WrongPassphrase { tried: 2, .. })));
    home.check_memories(&home.with("battery staple"));
    let mut keys = home.keys();
    assert!(keys.finish().unwrap());
    assert_eq!(home.names(), ["lock", "passphrase-2.age", "recipients.age"]);
    assert!(matches!(keys.remove("passphrase-1", false), Err(RecipientError::Unknown)));
}

#[test]
fn stores_that_are_made_and_opened_while_the_keys_change_open_ever_after() {
    let home = Home::with_second();
    let stale = Vault::open_existing(&home.first()).unwrap();
    let opened_by = |vault: &Vault| {
        for n in 0..12 {
            drop(Engine::open(vault, &format!("n{n}"), Limits::default()).unwrap());
        }
    };
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| opened_by(&stale));
        let mut changes = 0;
        while !opener.is_finished() || changes == 0 {
            let third = x25519::Identity::generate().to_public().to_string();
            home.keys().add(&third, "third").unwrap();
            while let Err(error) = home.keys().remove("third", false) {
                assert!(matches!(error, RecipientError::InUse(_)), "{error}");
            }
            changes += 1;
        }
    });
    let vault = Vault::open_existing(&home.first()).unwrap();
    assert!(!vault.has_unfinished_change());
    assert_eq!(vault.namespace_dirs().unwrap().len(), 14);
    opened_by(&vault);
    opened_by(&stale);
}

#[test]
fn the_names_of_all_namespaces_are_known_after_a_removal_those_of_lost_stores_too() {
    let home = Home::with_second();
    let vault = Vault::open_existing(&home.second).unwrap();
    fs::remove_dir_all(vault.namespace_dir("b")).unwrap();
    home.keys_by(&home.second).remove(&home.first_key(), false).unwrap();
    let vault = Vault::open_existing(&home.second).unwrap();
    let known = crate::Namespaces::of(&vault).unwrap();
    assert_eq!((known.names, known.nameless), (vec!["a".into(), "b".into()], 0));
}
