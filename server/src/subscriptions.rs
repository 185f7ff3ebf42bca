//! What the client of one session listens to, in either form.
//!
//! Before 2026-07-28 a session hears that the list of resources changed once it has asked for the list, since it has none
//! before that could be out of date, and of single resources when it subscribes to them. Since then a client opens a
//! stream, says in a filter what it wants to hear, and hears it there until it closes the stream. Owns the tasks that
//! tell it; they end with the session.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rmcp::{Peer, RoleServer, model::SubscriptionFilter, service::SubscriptionContext};
use tokio::task::JoinSet;
use warm_engine::contract::ErrorCode;

use crate::{
    changes::{Feed, Feeds, MOST_NAMESPACES, Sink, Wanted, tell},
    memory::Failure,
    resources::{self, Named},
    service::Service,
};

/// Most resources that one session, or one stream, subscribes to.
const MOST: usize = 1_000;

/// See the module.
#[derive(Default)]
pub struct Subscriptions {
    wanted: Wanted,
    told: Mutex<Told>,
    /// Feeds of streams that were accepted and are about to be told.
    ready: Mutex<BTreeMap<String, Vec<Feed>>>,
}

/// The tasks that tell a session, one for each namespace. They end when this is dropped.
#[derive(Default)]
struct Told {
    namespaces: BTreeSet<String>,
    tasks: JoinSet<()>,
}

impl Subscriptions {
    /// A session was opened, perhaps once more: what was subscribed to in an earlier one is forgotten.
    pub fn open(&self) {
        self.wanted.clear();
    }

    /// The session has seen the list, or is about to.
    pub fn asked_for_the_list(&self, service: &Arc<Service>, peer: &Peer<RoleServer>) {
        if resources::lists_memories(service) {
            self.wanted.list();
            self.follow(service, None, peer);
        }
    }

    pub fn subscribe(
        &self,
        service: &Arc<Service>,
        uri: String,
        peer: &Peer<RoleServer>,
    ) -> Result<(), Failure> {
        let named = Named::read(service, &uri)?;
        let namespace = named.namespace.clone();
        if !self.wanted.add(uri.clone(), named, MOST) {
            return Err(too_many());
        }
        if !self.follow(service, namespace.as_deref(), peer) {
            self.wanted.remove(&uri);
            return Err(too_many_namespaces());
        }
        Ok(())
    }

    pub fn unsubscribe(&self, uri: &str) {
        self.wanted.remove(uri);
    }

    /// False if too many namespaces are listened to.
    fn follow(&self, service: &Arc<Service>, namespace: Option<&str>, peer: &Peer<RoleServer>) -> bool {
        let mut told = unpoisoned(&self.told);
        let name = service.namespaces.name(namespace);
        if told.namespaces.contains(name) {
            return true;
        }
        let Some(feed) = Feeds::listen(service, namespace) else { return false };
        told.namespaces.insert(name.to_owned());
        let sink = Sink::Session(peer.clone());
        told.tasks.spawn(tell(Arc::downgrade(service), feed, self.wanted.clone(), sink));
        true
    }

    /// What a stream is to hear of what it asked for. From this moment on nothing is missed.
    pub fn accept(&self, service: &Arc<Service>, asked: &SubscriptionFilter) -> SubscriptionFilter {
        let mut accepted = SubscriptionFilter::new();
        let mut feeds = BTreeMap::new();
        let mut heard = |namespace: Option<&str>| {
            let listen = || Feeds::listen(service, namespace);
            feeds.entry(service.namespaces.name(namespace).to_owned()).or_insert_with(listen).is_some()
        };
        if asked.resources_list_changed == Some(true) && resources::lists_memories(service) && heard(None) {
            accepted.resources_list_changed = Some(true);
        }
        let uris: Vec<_> = asked.resource_subscriptions.iter().flatten().take(MOST).cloned().collect();
        let known = uris
            .into_iter()
            .filter(|uri| Named::read(service, uri).is_ok_and(|named| heard(named.namespace.as_deref())));
        let known: Vec<_> = known.collect();
        accepted.resource_subscriptions = (!known.is_empty()).then_some(known);
        let mut ready = unpoisoned(&self.ready);
        for (namespace, feed) in feeds {
            ready.entry(namespace).or_default().extend(feed);
        }
        accepted
    }

    /// Tells a stream until it is closed from either end.
    pub async fn stream(&self, service: &Arc<Service>, stream: SubscriptionContext) {
        let wanted = Wanted::default();
        let mut namespaces = BTreeSet::new();
        if stream.accepted().resources_list_changed == Some(true) {
            wanted.list();
            namespaces.insert(service.namespaces.name(None).to_owned());
        }
        for uri in stream.accepted().resource_subscriptions.iter().flatten() {
            if let Ok(named) = Named::read(service, uri) {
                namespaces.insert(service.namespaces.name(named.namespace.as_deref()).to_owned());
                wanted.add(uri.clone(), named, MOST);
            }
        }
        let mut tasks = JoinSet::new();
        for namespace in namespaces {
            let ready = unpoisoned(&self.ready).get_mut(&namespace).and_then(Vec::pop);
            let Some(feed) = ready.or_else(|| Feeds::listen(service, Some(&namespace))) else { continue };
            let sink = Sink::Stream(stream.sink().clone());
            tasks.spawn(tell(Arc::downgrade(service), feed, wanted.clone(), sink));
        }
        tokio::select! {
            () = stream.cancelled() => {}
            () = service.ending.cancelled() => {}
        }
    }
}

fn too_many() -> Failure {
    Failure::invalid(format!("A session subscribes to {MOST} resources at most; unsubscribe from some."))
}

fn too_many_namespaces() -> Failure {
    let message = format!(
        "Clients listen to {MOST_NAMESPACES} namespaces already, the most that this server tells of at once; end a \
         session or stream that listens to others."
    );
    Failure::new(ErrorCode::Busy, message)
}

fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
