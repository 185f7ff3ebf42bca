//! What a message over HTTP says of itself, as far as the way that it takes depends on it.
//!
//! Owns the choice between the three ways and the refusals that rmcp would word as plain text:
//!
//! | a message | is served |
//! |---|---|
//! | `initialize`, or one with a session | in a session |
//! | in the form of 2026-07-28 | by itself, as its own `_meta` says |
//! | of a handshake revision, without a session | by itself, as its header says |
//!
//! What it asks for, and whether its headers agree with it in full, is rmcp's to read.

use hyper::{
    HeaderMap, StatusCode,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, ErrorCode, ProtocolVersion, RequestId},
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::transport::{PARSE_ERROR, SAME_ID, id_beside};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Where a request in the form of 2026-07-28 says what revision it is of.
const OWN_REVISION: &str = "io.modelcontextprotocol/protocolVersion";

/// A message, as far as it is looked at.
#[derive(Default)]
pub struct Message {
    method: Option<String>,
    id: Option<RequestId>,
    /// What the request says of its own revision.
    carries_revision: bool,
    /// The revision that an `initialize` asks for.
    asked_for: Option<String>,
}

/// Why a message is answered before rmcp sees it.
pub struct Refused {
    pub status: StatusCode,
    pub id: Option<RequestId>,
    pub error: ErrorData,
}

/// How a message is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In a session, or as its own `_meta` says.
    Negotiated,
    /// By itself, in a handshake revision.
    Alone,
}

#[derive(Deserialize)]
struct Envelope {
    method: Option<String>,
    id: Option<RequestId>,
    #[serde(default)]
    params: Params,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default, rename = "_meta")]
    meta: Option<Value>,
    #[serde(default, rename = "protocolVersion")]
    protocol_version: Option<Value>,
}

impl Message {
    /// Looks at the body of a POST.
    pub fn read(body: &[u8]) -> Result<Self, Refused> {
        let refused = |error| Err(Refused { status: StatusCode::BAD_REQUEST, id: None, error });
        if let Ok(envelope) = serde_json::from_slice::<Envelope>(body) {
            let carries_revision = envelope
                .params
                .meta
                .as_ref()
                .is_some_and(|meta| meta.get(OWN_REVISION).is_some_and(Value::is_string));
            let asked_for = envelope.params.protocol_version.and_then(|version| match version {
                Value::String(version) => Some(version),
                _ => None,
            });
            return Ok(Self { method: envelope.method, id: envelope.id, carries_revision, asked_for });
        }
        match serde_json::from_slice::<Value>(body) {
            // rmcp knows what is wrong with it.
            Ok(Value::Object(_)) => Ok(Self::default()),
            Ok(_) => refused(ErrorData::invalid_request("Send one message at a time, a JSON object.", None)),
            Err(_) => Err(not_json(body)),
        }
    }

    /// Whether it stays open for as long as its sender listens.
    pub fn listens(&self) -> bool {
        self.method.as_deref() == Some("subscriptions/listen")
    }

    /// Its id, if it is a request.
    pub fn request(&self) -> Option<RequestId> {
        self.id.clone().filter(|_| self.method.is_some())
    }

    /// How it is served, its header put right where the protocol leaves that to the body.
    pub fn way(&self, headers: &mut HeaderMap) -> Result<Way, Refused> {
        let named = headers.get(&VERSION).map(|version| version.to_str().unwrap_or_default().to_owned());
        let known =
            |version: &str| ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
        if self.method.as_deref() == Some("initialize") && self.asked_for.is_some() {
            self.negotiate_in_the_body(headers, known);
            return Ok(Way::Negotiated);
        }
        if self.carries_revision {
            return Ok(Way::Negotiated);
        }
        if let Some(named) = named.filter(|named| !known(named)) {
            return match &self.id {
                None => Ok(Way::Negotiated),
                Some(id) => Err(Refused {
                    status: StatusCode::BAD_REQUEST,
                    id: Some(id.clone()),
                    error: ErrorData::new(
                        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
                        "Unsupported protocol version",
                        Some(json!({"requested": named, "supported": ProtocolVersion::KNOWN_VERSIONS})),
                    ),
                }),
            };
        }
        let modern =
            headers.get(&VERSION).is_some_and(|version| version.as_bytes() >= b"2026-07-28".as_slice());
        let discovers = self.method.as_deref() == Some("server/discover");
        Ok(if modern || discovers || headers.contains_key(&SESSION) { Way::Negotiated } else { Way::Alone })
    }

    /// The handshake agrees on a revision by what its body asks for. A client that spoke another before, or names
    /// one that nobody knows, may say so in the header of this message too.
    fn negotiate_in_the_body(&self, headers: &mut HeaderMap, known: impl Fn(&str) -> bool) {
        // A header that says that this is another method is refused, and stays to be.
        if headers.get(&METHOD).is_some_and(|method| method != "initialize") {
            return;
        }
        let asked = self.asked_for.as_deref().filter(|asked| known(asked));
        match asked.and_then(|asked| HeaderValue::from_str(asked).ok()) {
            Some(asked) if headers.contains_key(&VERSION) => drop(headers.insert(VERSION, asked)),
            _ => drop(headers.remove(&VERSION)),
        }
    }
}

/// Why rmcp could not read the body of a POST, if that is what is wrong with it: rmcp says so in plain text, and of
/// the type of the body.
pub fn unreadable(body: &[u8]) -> Option<Refused> {
    if serde_json::from_slice::<ClientJsonRpcMessage>(body).is_ok() {
        return None;
    }
    if serde_json::from_slice::<Value>(body).is_err() {
        return Some(not_json(body));
    }
    let error = ErrorData::invalid_request("Invalid request", None);
    Some(Refused { status: StatusCode::BAD_REQUEST, id: id_beside(body), error })
}

/// A request that has the id of another that is in progress.
pub fn same_id(id: RequestId) -> Refused {
    let error = ErrorData::invalid_request(SAME_ID, None);
    Refused { status: StatusCode::BAD_REQUEST, id: Some(id), error }
}

fn not_json(body: &[u8]) -> Refused {
    let error = ErrorData::parse_error(PARSE_ERROR, None);
    Refused { status: StatusCode::BAD_REQUEST, id: id_beside(body), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(method: &str, params: Value) -> Message {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        Message::read(body.as_bytes()).unwrap_or_else(|refused| panic!("{}", refused.error.message))
    }

    fn headers(named: &[(HeaderName, &'static str)]) -> HeaderMap {
        named.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn way(message: &Message, named: &[(HeaderName, &'static str)]) -> Option<Way> {
        message.way(&mut headers(named)).ok()
    }

    #[test]
    fn a_request_without_a_session_is_served_alone_in_a_handshake_revision_only() {
        let list = message("tools/list", json!({}));
        assert_eq!(way(&list, &[]), Some(Way::Alone));
        assert_eq!(way(&list, &[(VERSION, "2025-06-18")]), Some(Way::Alone));
        assert_eq!(way(&list, &[(VERSION, "2025-06-18"), (SESSION, "s")]), Some(Way::Negotiated));
        assert_eq!(way(&list, &[(VERSION, "2026-07-28")]), Some(Way::Negotiated));
        assert_eq!(way(&list, &[(VERSION, "1999-01-01")]), None);
        let modern = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}});
        assert_eq!(way(&message("tools/list", modern), &[]), Some(Way::Negotiated));
    }

    #[test]
    fn the_header_of_an_initialize_follows_its_body() {
        let after = |asked: &str, named: &[(HeaderName, &'static str)]| {
            let mut headers = headers(named);
            let message = message("initialize", json!({"protocolVersion": asked}));
            assert!(message.way(&mut headers).is_ok_and(|way| way == Way::Negotiated));
            headers.get(&VERSION).map(|version| version.to_str().unwrap_or_default().to_owned())
        };
        assert_eq!(after("2025-11-25", &[(VERSION, "2026-07-28")]).as_deref(), Some("2025-11-25"));
        assert_eq!(after("1999-01-01", &[(VERSION, "1999-01-01")]), None);
        assert_eq!(after("2025-11-25", &[]), None);
        let lies = [(VERSION, "2026-07-28"), (METHOD, "tools/list")];
        assert_eq!(after("2025-11-25", &lies).as_deref(), Some("2026-07-28"));
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_code_for_it() {
        let code = |body: &[u8]| Message::read(body).err().map(|refused| refused.error.code.0);
        assert_eq!(code(b"{not json"), Some(-32700));
        assert_eq!(code(b"[{\"id\": 1}]"), Some(-32600));
        assert_eq!(code(b"{\"params\": [1]}"), None);
    }
}
