//! Memories as resources: how each is called, which there are, and what is read of them.
//!
//! | URI | holds |
//! |---|---|
//! | `warm://memory/{key}` | the text of one memory; the key percent-encoded, slashes too (as they stand, they are taken) |
//! | `warm://stats` | counts, sizes and limits, as JSON |
//!
//! Both are of the server's own namespace; where calls may name one, `?namespace=NAME` does. A resource stands on the
//! tool that tells the same (`get`, `list`, `stats`), and is there only if that tool is offered.

use rmcp::model::{
    Annotations, ListResourcesResult, Resource as Described, ResourceContents, ResourceTemplate,
};
use serde_json::json;
use warm_engine::contract::{ErrorCode, Get, List, Listed};

use crate::{
    memory::{Caller, Failure, Reply, Request},
    service::Service,
    tools::{Tool, stats},
};

const MEMORY: &str = "warm://memory/";
const STATS: &str = "warm://stats";
pub const TEMPLATE: &str = "warm://memory/{key}";
pub const TEMPLATE_IN_NAMESPACE: &str = "warm://memory/{key}{?namespace}";

/// What a URI names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    pub resource: Resource,
    /// The server's own where `None`.
    pub namespace: Option<String>,
}

/// What there is to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// By its key.
    Memory(String),
    Stats,
}

impl Named {
    /// Understands a URI, if it is one of this server's.
    pub fn read(service: &Service, uri: &str) -> Result<Self, Failure> {
        let unknown = || {
            Failure::new(
                ErrorCode::NotFound,
                "There is no such resource. This server has warm://memory/KEY, the key percent-encoded, and \
                 warm://stats.",
            )
        };
        let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
        let resource = match path.strip_prefix(MEMORY) {
            Some(key) if !key.is_empty() => Resource::Memory(decoded(key).ok_or_else(unknown)?),
            _ if path == STATS => Resource::Stats,
            _ => return Err(unknown()),
        };
        let needed = match resource {
            Resource::Memory(_) => Tool::Get,
            Resource::Stats => Tool::Stats,
        };
        if !service.offer.has(needed) {
            return Err(unknown());
        }
        let namespace =
            query.map(|query| query.strip_prefix("namespace=").and_then(decoded).ok_or_else(unknown));
        let namespace = namespace.transpose()?;
        if namespace.is_some() && !service.namespaces.selectable {
            return Err(Failure::invalid(
                "This server serves one namespace. Start warm-mcp with --namespace-arg to choose one per request.",
            ));
        }
        Ok(Self { resource, namespace })
    }
}

/// Whether there is any.
pub fn offered(service: &Service) -> bool {
    service.offer.has(Tool::Get) || service.offer.has(Tool::Stats)
}

/// Whether memories are among those that are listed.
pub fn lists_memories(service: &Service) -> bool {
    service.offer.has(Tool::Get) && service.offer.has(Tool::List)
}

/// One page of those that can be listed. Its size is that of a page of `list`.
pub fn list(
    service: &Service,
    cursor: Option<String>,
    caller: &mut Caller<'_>,
) -> Result<ListResourcesResult, Failure> {
    let mut resources = Vec::new();
    if cursor.is_none() && service.offer.has(Tool::Stats) {
        resources.push(
            Described::new(STATS, "stats")
                .with_title("Statistics")
                .with_description("Counts, sizes and limits of this memory")
                .with_mime_type("application/json"),
        );
    }
    let mut next_cursor = None;
    if lists_memories(service) {
        let request = Request::List(List { cursor, ..List::default() });
        match service.namespaces.memory(None)?.call_or_wait(request, caller)? {
            Reply::List(page) => {
                resources.extend(page.memories.into_iter().map(described));
                next_cursor = page.next_cursor;
            }
            _ => return Err(Failure::fault()),
        }
    } else if cursor.is_some() {
        return Err(Failure::invalid("The cursor is not one that this server returned; start without it."));
    }
    let mut page = ListResourcesResult::with_all_items(resources);
    page.next_cursor = next_cursor;
    Ok(page)
}

/// How URIs are made.
pub fn templates(service: &Service) -> Vec<ResourceTemplate> {
    if !service.offer.has(Tool::Get) {
        return Vec::new();
    }
    let template = |uri, name: &str, description: &str| {
        ResourceTemplate::new(uri, name).with_title("Memory").with_description(description)
    };
    let mut templates = vec![template(TEMPLATE, "memory", "The text of one memory, by its key")];
    if service.namespaces.selectable {
        let description = "The text of one memory of a namespace, by its key";
        templates.push(template(TEMPLATE_IN_NAMESPACE, "memory-in-namespace", description));
    }
    templates
}

/// What is read at a URI.
pub fn read(service: &Service, uri: &str, caller: &mut Caller<'_>) -> Result<ResourceContents, Failure> {
    let named = Named::read(service, uri)?;
    let memory = service.namespaces.memory(named.namespace.as_deref())?;
    match named.resource {
        Resource::Memory(key) => {
            let mime = mime_type(&key);
            match memory.call_or_wait(Request::Get(Get { key }), caller)? {
                Reply::Get(memory) => Ok(ResourceContents::text(memory.text, uri).with_mime_type(mime)),
                _ => Err(Failure::fault()),
            }
        }
        Resource::Stats => match memory.call_or_wait(Request::Stats, caller)? {
            Reply::Stats(figures) => {
                let figures = json!(stats(service, &figures, named.namespace.as_deref())).to_string();
                Ok(ResourceContents::text(figures, uri).with_mime_type("application/json"))
            }
            _ => Err(Failure::fault()),
        },
    }
}

fn described(memory: Listed) -> Described {
    let mut annotations = Annotations::default();
    annotations.last_modified = Some(memory.updated_at);
    let mut resource = Described::new(uri_of(&memory.key), &memory.key)
        .with_mime_type(mime_type(&memory.key))
        .with_size(memory.bytes)
        .with_annotations(annotations);
    resource.title = memory.title;
    resource
}

fn mime_type(key: &str) -> &'static str {
    let extension =
        key.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, extension)| extension);
    let markdown =
        |extension: &str| ["md", "markdown"].iter().any(|known| extension.eq_ignore_ascii_case(known));
    if extension.is_some_and(markdown) { "text/markdown" } else { "text/plain" }
}

/// The URI of a memory.
pub fn uri_of(key: &str) -> String {
    let mut uri = MEMORY.to_owned();
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            b'#' => return None,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_comes_back_from_its_uri_and_slashes_may_stand_as_they_are() {
        for key in ["plain", "/memories/a b.md", "50%", "été/🔑", "a?b=c&d#e", "a+b", "%2F"] {
            let uri = uri_of(key);
            assert!(uri.is_ascii() && !uri[MEMORY.len()..].contains(['/', '?', '#']), "{uri}");
            assert_eq!(decoded(&uri[MEMORY.len()..]).as_deref(), Some(key));
        }
        assert_eq!(decoded("/memories/a.md").as_deref(), Some("/memories/a.md"));
        for broken in ["%", "%2", "%zz", "%ff", "a#b", ""] {
            assert_eq!(decoded(broken), None, "{broken}");
        }
    }

    #[test]
    fn the_type_follows_from_the_end_of_the_name() {
        for (key, expected) in [
            ("/memories/a.md", "text/markdown"),
            ("b.MARKDOWN", "text/markdown"),
            ("/memories/x.md/y", "text/plain"),
            ("md", "text/plain"),
            ("c.txt", "text/plain"),
        ] {
            assert_eq!(mime_type(key), expected, "{key}");
        }
    }
}
