//! The server over HTTP: the same sessions and tools as on stdin and stdout, for any number of clients.
//!
//! Owns the listener, the routes and the bounds on what clients can take up: connections, requests in
//! progress, sizes and times. Who may ask is [`guard`]'s, what is chosen on the command line
//! [`options`]'. The protocol itself is rmcp's.
//!
//! | route | answers |
//! |---|---|
//! | `/mcp` | the Model Context Protocol (streamable HTTP) |
//! | `/health` | 200 while the process runs |
//! | `/ready` | 200 while the default namespace can be read and written, else 503 |

mod guard;
mod message;
pub mod options;
mod patience;
mod sessions;

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use http_body_util::{BodyExt, Full, Limited, combinators::BoxBody};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body as _, Bytes, Incoming},
    header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use rmcp::{
    model::ServerJsonRpcMessage,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    handler::Handler,
    memory::{Reply, Request as Asked},
    service::Service,
};
use guard::{Guard, Refused};
use message::{Message, Way};
use options::Listen;
use patience::Patient;
use sessions::Sessions;

/// Most connections at once; one more waits to be accepted.
const MOST_CONNECTIONS: usize = 1_024;
/// Most requests in progress at once; one more is told to try again.
const MOST_REQUESTS: usize = MOST_CONNECTIONS;
/// Most streams that wait for notices; they leave room for requests, which come on connections of their own.
const MOST_STREAMS: usize = MOST_CONNECTIONS / 2;
/// How long a client may take to send its headers, and how long its body.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// How long a client may take nothing of what it is answered.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// Bodies up to this length, in bytes, are read beside any number of others; of longer ones, and of those that do not
/// say how long they are, so many at once, so that all together take up little room.
const SHORT_BODY: u64 = 64 << 10;
const LONG_BODIES: usize = 8;
/// Longest headers, all together, in bytes.
const LONGEST_HEADERS: usize = 32 << 10;
/// How long requests in progress may keep the server from ending.
const PARTING: Duration = Duration::from_secs(5);
/// After a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

const TOO_MANY_STREAMS: &str = "too many streams wait for notices: try again when some have ended\n";

/// Says which session a request is of.
const SESSION: &str = "mcp-session-id";

type Body = BoxBody<Bytes, Infallible>;
type Mcp = StreamableHttpService<Handler, LocalSessionManager>;

/// What every connection is served from.
struct Server {
    mcp: Mcp,
    /// For requests of the handshake revisions that come without a session.
    alone: Mcp,
    service: Arc<Service>,
    guard: Guard,
    sessions: Sessions,
    places: Places,
    long_bodies: Arc<Semaphore>,
    longest_body: usize,
}

/// Serves until it is told to stop. Errors are for a person to read.
pub async fn serve(
    service: Arc<Service>,
    (listen, listener): (Listen, std::net::TcpListener),
    mut stopped: watch::Receiver<bool>,
) -> Result<(), String> {
    let listener = TcpListener::from_std(listener).map_err(|error| format!("can't listen: {error}."))?;
    let address = listener.local_addr().map_err(|error| format!("the address is not known: {error}."))?;
    let ending = CancellationToken::new();
    let server = Arc::new(Server::new(service, listen, address, ending.clone()));
    if server.guard.is_open() {
        eprintln!(
            "warm-mcp: no WARM_MCP_TOKEN is set, so every program and user of this machine can read and change the \
             memories."
        );
    }
    println!("warm-mcp listening on http://{address}/mcp");
    let graceful = GracefulShutdown::new();
    let connections = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut stop = pin!(stopped.wait_for(|stopped| *stopped));
    loop {
        let accepted = tokio::select! {
            _ = &mut stop => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        match accepted {
            Ok((stream, place)) => server.connect(stream, place, &graceful),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    server.service.ending.cancel();
    // What is in progress is answered, and who listens is told that this is the end; then the streams of sessions end.
    if timeout(PARTING, server.places.answered()).await.is_err() {
        tracing::warn!("ending with requests that are not answered");
    }
    ending.cancel();
    let _ = timeout(PARTING, graceful.shutdown()).await;
    Ok(())
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(connections).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    // Replies are small and awaited.
    stream.set_nodelay(true)?;
    Ok((stream, place))
}

impl Server {
    fn new(service: Arc<Service>, listen: Listen, address: SocketAddr, ending: CancellationToken) -> Self {
        let longest_body = service.namespaces.max_request_bytes();
        // Hosts and origins are checked here, on every route.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(longest_body)
            .with_cancellation_token(ending);
        let sessions = Sessions::default();
        let mcp = |handler: fn(Arc<Service>) -> Handler, manager, config| {
            let service = Arc::clone(&service);
            let handler = move || Ok(handler(Arc::clone(&service)));
            Mcp::new(handler, manager, config)
        };
        let none = Arc::new(LocalSessionManager::default());
        let alone = mcp(Handler::for_one_request, none, config.clone().with_legacy_session_mode(false));
        let mcp = mcp(Handler::new, Arc::clone(&sessions.manager), config);
        let guard = Guard::new(listen, address);
        Self {
            mcp,
            alone,
            service,
            guard,
            sessions,
            places: Places::default(),
            long_bodies: Arc::new(Semaphore::new(LONG_BODIES)),
            longest_body,
        }
    }

    fn connect(
        self: &Arc<Self>,
        stream: TcpStream,
        place: OwnedSemaphorePermit,
        graceful: &GracefulShutdown,
    ) {
        let server = Arc::clone(self);
        let service = service_fn(move |request| {
            let server = Arc::clone(&server);
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        // Only HTTP/1.1: there the time for the headers also bounds a connection that says nothing.
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .max_buf_size(LONGEST_HEADERS)
            .serve_connection(TokioIo::new(Patient::new(stream, TAKEN_WITHIN)), service);
        let connection = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(place);
        });
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let started = Instant::now();
        let (method, route) = (request.method().clone(), Route::of(request.uri().path()));
        let answer = match route {
            _ if let Err(refused) = self.guard.admit(&request, route.is_some_and(Route::is_open)) => {
                refusal(refused)
            }
            Some(Route::Health) => self.look(&method, || said(StatusCode::OK, "ok\n")),
            Some(Route::Ready) => {
                let ready = self.is_ready().await;
                self.look(&method, || match ready {
                    true => said(StatusCode::OK, "ready\n"),
                    false => said(StatusCode::SERVICE_UNAVAILABLE, "the store can't be served now\n"),
                })
            }
            Some(Route::Mcp) => self.mcp(request).await,
            None => {
                said(StatusCode::NOT_FOUND, "there is nothing here: the Model Context Protocol is at /mcp\n")
            }
        };
        // The route and not the path: a path may say anything.
        tracing::debug!(
            %method,
            ?route,
            status = answer.status().as_u16(),
            micros = started.elapsed().as_micros(),
            "request"
        );
        answer
    }

    fn look(&self, method: &Method, answer: impl FnOnce() -> Response<Body>) -> Response<Body> {
        if matches!(*method, Method::GET | Method::HEAD) {
            return answer();
        }
        let mut refused = said(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        refused
    }

    async fn is_ready(&self) -> bool {
        let service = Arc::clone(&self.service);
        let asked = tokio::task::spawn_blocking(move || {
            service.namespaces.memory(None).and_then(|memory| memory.call(Asked::Stats))
        });
        matches!(asked.await, Ok(Ok(Reply::Stats(stats))) if stats.refuses_writes.is_none())
    }

    async fn mcp(&self, request: Request<Incoming>) -> Response<Body> {
        // A stream that only waits for notices takes up no place of a request.
        let place = match *request.method() {
            Method::GET => self.places.of_a_stream(),
            _ => self.places.of_a_request(),
        };
        let mut place = match place {
            Ok(place) => place,
            Err(why) => return busy(why),
        };
        let (mut head, body) = request.into_parts();
        let (body, _long) = match self.body(body).await {
            Ok(body) => body,
            Err(refused) => return refused,
        };
        let (mut served, mut request) = (&self.mcp, None);
        if head.method == Method::POST {
            let message = Message::read(&body);
            match message.and_then(|message| {
                Ok((message.way(&mut head.headers)?, message.listens(), message.request()))
            }) {
                Err(refused) => return refused_message(refused),
                Ok((way, listens, id)) => {
                    request = id;
                    if way == Way::Alone {
                        served = &self.alone;
                    }
                    if listens {
                        place = match self.places.of_a_listener() {
                            Ok(place) => place,
                            Err(why) => return busy(why),
                        };
                    }
                }
            }
        }
        let ends_session = head.method == Method::DELETE;
        let session = head.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        if let Some(session) = &session {
            self.sessions.used(session);
        }
        let in_progress = match (&session, request) {
            (Some(session), Some(id)) => match self.sessions.begin(session, id.clone()) {
                None => return refused_message(message::same_id(id)),
                begun => begun,
            },
            _ => None,
        };
        let mut answer = served.handle(Request::from_parts(head, Full::new(body.clone()))).await;
        if answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
            && let Some(refused) = message::unreadable(&body)
        {
            return refused_message(refused);
        }
        match (&session, answer.headers().get(SESSION).and_then(|id| id.to_str().ok())) {
            (None, Some(opened)) => self.sessions.opened(opened).await,
            // It ended while it was asked.
            (Some(session), _) if answer.status().is_server_error() && !self.sessions.has(session).await => {
                return said(StatusCode::NOT_FOUND, "this session has ended: open a new one\n");
            }
            _ => {}
        }
        if ends_session && answer.status() == StatusCode::ACCEPTED {
            // It has ended, and not only been accepted to: some clients take the one for a failure.
            *answer.status_mut() = StatusCode::NO_CONTENT;
        }
        // The place and the id are taken until the last of the answer is sent.
        answer.map(|body| {
            body.map_frame(move |frame| {
                let _ = (&place, &in_progress);
                frame
            })
            .boxed()
        })
    }

    /// The whole body of a request and, if it may be long, its place among such; or what to answer instead.
    async fn body(&self, body: Incoming) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Response<Body>> {
        let too_long = || {
            let message =
                format!("the request is longer than {} bytes: send less at once\n", self.longest_body);
            said(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        // What says so itself need not be read.
        if body.size_hint().lower() > self.longest_body as u64 {
            return Err(too_long());
        }
        let read = async {
            let place = match body.size_hint().upper() {
                Some(length) if length <= SHORT_BODY => None,
                _ => Arc::clone(&self.long_bodies).acquire_owned().await.ok(),
            };
            Limited::new(body, self.longest_body).collect().await.map(|body| (body.to_bytes(), place))
        };
        match timeout(BODY_WITHIN, read).await {
            Ok(Ok(read)) => Ok(read),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_long()),
            Ok(Err(_)) => Err(said(StatusCode::BAD_REQUEST, "the request's body could not be read\n")),
            Err(_) => Err(said(StatusCode::REQUEST_TIMEOUT, "the request's body took too long\n")),
        }
    }
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Mcp,
    Health,
    Ready,
}

impl Route {
    fn of(path: &str) -> Option<Self> {
        match path {
            "/mcp" => Some(Self::Mcp),
            "/health" => Some(Self::Health),
            "/ready" => Some(Self::Ready),
            _ => None,
        }
    }

    /// Whether it tells nothing that needs a token.
    fn is_open(self) -> bool {
        matches!(self, Self::Health | Self::Ready)
    }
}

/// The places of what is in progress. Each is held until the last of an answer is sent.
struct Places {
    requests: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// Those of the streams that were asked for by a request, and end with an answer.
    listeners: Arc<Semaphore>,
}

/// One that is taken until this is dropped.
struct Place {
    _taken: OwnedSemaphorePermit,
    _as_listener: Option<OwnedSemaphorePermit>,
}

impl Default for Places {
    fn default() -> Self {
        let places = |most| Arc::new(Semaphore::new(most));
        let (streams, listeners) = (places(MOST_STREAMS), places(MOST_STREAMS));
        Self { requests: places(MOST_REQUESTS), streams, listeners }
    }
}

impl Places {
    /// A place, or what to say where all are taken.
    fn of_a_request(&self) -> Result<Place, &'static str> {
        let taken = one_of(&self.requests, "too many requests are in progress: try again in a moment\n")?;
        Ok(Place { _taken: taken, _as_listener: None })
    }

    /// The same for a stream of a session, which stays open for as long as its client likes.
    fn of_a_stream(&self) -> Result<Place, &'static str> {
        let taken = one_of(&self.streams, TOO_MANY_STREAMS)?;
        Ok(Place { _taken: taken, _as_listener: None })
    }

    /// The same for a request that listens.
    fn of_a_listener(&self) -> Result<Place, &'static str> {
        let place = self.of_a_stream()?;
        Ok(Place { _as_listener: Some(one_of(&self.listeners, TOO_MANY_STREAMS)?), ..place })
    }

    /// Waits until every request is answered, listeners' too. The streams of sessions have no end that could be waited
    /// for.
    async fn answered(&self) {
        let _requests = self.requests.acquire_many(MOST_REQUESTS as u32).await;
        let _listeners = self.listeners.acquire_many(MOST_STREAMS as u32).await;
    }
}

fn one_of(places: &Arc<Semaphore>, all_taken: &'static str) -> Result<OwnedSemaphorePermit, &'static str> {
    Arc::clone(places).try_acquire_owned().map_err(|_| all_taken)
}

fn busy(why: &'static str) -> Response<Body> {
    let mut busy = said(StatusCode::SERVICE_UNAVAILABLE, why);
    busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    busy
}

fn refusal(refused: Refused) -> Response<Body> {
    let mut answer = said(refused.status(), format!("{refused}\n"));
    if let Refused::Token = refused {
        answer.headers_mut().insert(hyper::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

/// An error of the protocol, as a client reads it.
fn refused_message(refused: message::Refused) -> Response<Body> {
    let error = ServerJsonRpcMessage::error(refused.error, refused.id);
    let mut answer = said(refused.status, serde_json::to_vec(&error).unwrap_or_default());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn said(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut answer = Response::new(Full::new(text.into()).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn the_end_waits_for_requests_and_listeners_and_for_no_stream_of_a_session() {
        let is_answered = |places: &Places| {
            pin!(places.answered()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        let places = Places::default();
        assert!(is_answered(&places));
        let stream = places.of_a_stream().expect("a place");
        assert!(is_answered(&places));
        for place in [places.of_a_request(), places.of_a_listener()] {
            assert!(place.is_ok() && !is_answered(&places));
            drop(place);
        }
        drop(stream);
        assert!(is_answered(&places));
    }
}
