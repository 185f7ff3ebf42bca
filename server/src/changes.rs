//! Changes of the memories, told to the clients that asked to hear of them.
//!
//! Owns one feed for each namespace that somebody listens to: a thread that waits for the store's next changes, whichever
//! process makes them, and hands them to every listener of this process. It ends when nobody listens any longer. Changes
//! that follow each other closely are told together, so a client that is slow to look hears less often and never
//! something false. A change that this process may have missed, because the store's owner changed, is told as a change of
//! everything that is listened to.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

use rmcp::{Peer, RoleServer, model::ResourceUpdatedNotificationParam, service::SubscriptionSink};
use tokio::sync::broadcast::{self, error::RecvError};
use warm_engine::contract::{Changes, ChangesSince, ErrorCode};

use crate::{
    memory::Listener,
    resources::{Named, Resource},
    service::Service,
};

/// How long one wait for changes lasts.
const WAIT: Duration = Duration::from_secs(4);
/// Changes within so long are told together.
const TOGETHER: Duration = Duration::from_millis(100);
/// After a wait that failed: the store has no owner for the moment, say.
const PAUSE: Duration = Duration::from_millis(250);
/// How many news may wait for one listener. One that falls behind is told that it missed some.
const BEHIND: usize = 64;

/// Most namespaces that are listened to at once, by all clients together: each takes up a thread. The server's own is
/// always heard.
pub const MOST_NAMESPACES: usize = 256;

/// The feeds of this process.
#[derive(Default)]
pub struct Feeds(Mutex<HashMap<String, broadcast::Sender<Arc<Changes>>>>);

/// What a listener hears of one namespace.
pub struct Feed {
    pub namespace: String,
    news: broadcast::Receiver<Arc<Changes>>,
}

/// One piece of news.
enum News {
    Changed(Arc<Changes>),
    /// Some were missed.
    Missed,
}

impl Feeds {
    fn feeds(&self) -> MutexGuard<'_, HashMap<String, broadcast::Sender<Arc<Changes>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears of a namespace's changes from this moment on, unless too many others are listened to. Waits for nothing.
    pub fn listen(service: &Arc<Service>, namespace: Option<&str>) -> Option<Feed> {
        let namespace = service.namespaces.name(namespace).to_owned();
        let own = namespace == service.namespaces.name(None);
        let mut feeds = service.feeds.feeds();
        if let Some(sender) = feeds.get(&namespace) {
            return Some(Feed { news: sender.subscribe(), namespace });
        }
        if !own && feeds.len() >= MOST_NAMESPACES {
            return None;
        }
        let (sender, news) = broadcast::channel(BEHIND);
        let since = ChangesSince::now();
        let (of_thread, weak, name) = (sender.clone(), Arc::downgrade(service), namespace.clone());
        let follow = move || follow(&weak, &name, &of_thread, since);
        match thread::Builder::new().name("warm-changes".into()).spawn(follow) {
            Ok(_) => {
                feeds.insert(namespace.clone(), sender);
                Some(Feed { namespace, news })
            }
            Err(error) => {
                tracing::warn!(%error, "changes of the memories can't be told");
                None
            }
        }
    }
}

/// Waits for changes until nobody listens. Keeps neither the service nor the store alive while it waits.
fn follow(
    service: &Weak<Service>,
    namespace: &str,
    sender: &broadcast::Sender<Arc<Changes>>,
    mut since: ChangesSince,
) {
    let mut listener: Option<Box<dyn Listener>> = None;
    // Whether what is listened to has a store; one that has none yet has nothing to tell, and tells it for ever.
    let mut begun = true;
    loop {
        {
            let Some(service) = service.upgrade() else { return };
            let mut feeds = service.feeds.feeds();
            if sender.receiver_count() == 0 {
                feeds.remove(namespace);
                return;
            }
            drop(feeds);
            if !begun && service.namespaces.has_store(namespace) {
                // The mark is none of the store's, so that everything counts as missed.
                listener = None;
            }
            if listener.is_none() {
                begun = service.namespaces.has_store(namespace);
                listener = match service.namespaces.memory(Some(namespace)) {
                    Ok(memory) => Some(memory.listener()),
                    // No namespace has such a name, and none ever will.
                    Err(failure) if failure.code == ErrorCode::InvalidArgument => {
                        service.feeds.feeds().remove(namespace);
                        return;
                    }
                    Err(_) => None,
                };
            }
        }
        match listener.as_ref().map(|listener| listener.next(since, WAIT)) {
            Some(Ok(changes)) => {
                since = ChangesSince::Mark(changes.mark);
                if !changes.changed.is_empty() || changes.missed {
                    // Nobody may be left to hear it, which is seen above.
                    let _ = sender.send(Arc::new(changes));
                    thread::sleep(TOGETHER);
                }
            }
            _ => {
                listener = None;
                thread::sleep(PAUSE);
            }
        }
    }
}

impl Feed {
    async fn next(&mut self) -> Option<News> {
        match self.news.recv().await {
            Ok(changes) if changes.missed => Some(News::Missed),
            Ok(changes) => Some(News::Changed(changes)),
            Err(RecvError::Lagged(_)) => Some(News::Missed),
            Err(RecvError::Closed) => None,
        }
    }
}

impl News {
    fn of_list(&self) -> bool {
        match self {
            Self::Missed => true,
            Self::Changed(changes) => changes.changed.iter().any(|changed| changed.listed),
        }
    }

    fn of(&self, resource: &Resource) -> bool {
        match (self, resource) {
            (Self::Missed, _) | (_, Resource::Stats) => true,
            (Self::Changed(changes), Resource::Memory(key)) => {
                changes.changed.iter().any(|changed| changed.key == *key)
            }
        }
    }
}

/// What a client wants to hear of.
#[derive(Clone, Default)]
pub struct Wanted(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    list: bool,
    /// URIs as the client wrote them, and what they name.
    uris: Vec<(String, Named)>,
}

impl Wanted {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn list(&self) {
        self.inner().list = true;
    }

    /// False if there are too many already.
    pub fn add(&self, uri: String, named: Named, most: usize) -> bool {
        let mut inner = self.inner();
        if inner.uris.iter().any(|(known, _)| *known == uri) {
            return true;
        }
        let room = inner.uris.len() < most;
        if room {
            inner.uris.push((uri, named));
        }
        room
    }

    pub fn remove(&self, uri: &str) {
        self.inner().uris.retain(|(known, _)| known != uri);
    }

    pub fn clear(&self) {
        *self.inner() = Inner::default();
    }

    /// What a piece of news of a namespace means to the client: whether the list changed, and the URIs that did.
    fn touched(&self, service: &Service, namespace: &str, news: &News) -> (bool, Vec<String>) {
        let inner = self.inner();
        let own = service.namespaces.name(None) == namespace;
        let here = |named: &Named| service.namespaces.name(named.namespace.as_deref()) == namespace;
        let touched = inner.uris.iter().filter(|(_, named)| here(named) && news.of(&named.resource));
        let touched = touched.map(|(uri, _)| uri.clone()).collect();
        (inner.list && own && news.of_list(), touched)
    }
}

/// Where a client hears it, in the form of its revision.
pub enum Sink {
    /// A session of a handshake revision.
    Session(Peer<RoleServer>),
    /// A stream that was opened to listen.
    Stream(SubscriptionSink),
}

impl Sink {
    async fn list_changed(&self) -> bool {
        match self {
            Self::Session(peer) => peer.notify_resource_list_changed().await.is_ok(),
            Self::Stream(sink) => sink.notify_resource_list_changed().await.is_ok(),
        }
    }

    async fn updated(&self, uri: String) -> bool {
        match self {
            Self::Session(peer) => {
                peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_ok()
            }
            Self::Stream(sink) => sink.notify_resource_updated(uri).await.is_ok(),
        }
    }
}

/// Tells a client what it wants to hear of one namespace, until it can't be told any longer.
pub async fn tell(service: Weak<Service>, mut feed: Feed, wanted: Wanted, sink: Sink) {
    while let Some(news) = feed.next().await {
        let Some(touched) = service.upgrade().map(|service| wanted.touched(&service, &feed.namespace, &news))
        else {
            return;
        };
        let (list, uris) = touched;
        let mut told = !list || sink.list_changed().await;
        for uri in uris {
            told &= sink.updated(uri).await;
        }
        if !told {
            return;
        }
    }
}
