//! The tools: what each is called, what it takes, and which request it makes.
//!
//! Owns the way from a call's name and arguments to a [`Request`], and from a [`Reply`] to what a
//! client reads. The words that describe the tools to a model are in [`catalogue`]. Knows nothing of
//! transports.

pub mod catalogue;
mod export;
mod fields;
mod offer;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};
use warm_engine::contract::{
    Command, CommandLimits, ErrorCode, Export, Forget, Get, List, ListOrder, Recall, RecallMode, Remember,
    Stats,
};

use crate::{
    memory::{Caller, Expected, Failure, Memory, Reply, Request},
    namespaces::Namespaces,
    service::Service,
};
use export::{Format, Page};
use fields::{Fields, quoted};
pub use offer::{Offer, OfferOptions};

/// The tools of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    Memory,
    Remember,
    Recall,
    Get,
    List,
    Forget,
    Export,
    Stats,
}

impl Tool {
    pub const ALL: [Self; 8] = [
        Self::Memory,
        Self::Remember,
        Self::Recall,
        Self::Get,
        Self::List,
        Self::Forget,
        Self::Export,
        Self::Stats,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Remember => "remember",
            Self::Recall => "recall",
            Self::Get => "get",
            Self::List => "list",
            Self::Forget => "forget",
            Self::Export => "export",
            Self::Stats => "stats",
        }
    }

    /// Whether nothing of it is left to a client that may only read.
    fn only_writes(self) -> bool {
        matches!(self, Self::Remember | Self::Forget)
    }

    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Memory => &["command"],
            Self::Remember => &["text", "key", "title", "tags", "metadata", "if_version", "create_only"],
            Self::Recall => {
                &["query", "k", "under", "tags", "filter", "since", "until", "max_chars", "min_score", "mode"]
            }
            Self::Get => &["key"],
            Self::List => &["prefix", "tag", "filter", "since", "until", "order", "limit", "cursor"],
            Self::Forget => &["key", "keys", "prefix", "confirm"],
            Self::Export => &["format", "cursor"],
            Self::Stats => &[],
        }
    }
}

/// The commands of the `memory` tool and the fields of each.
const COMMANDS: [(&str, &[&str]); 6] = [
    ("view", &["path", "view_range"]),
    ("create", &["path", "file_text"]),
    ("str_replace", &["path", "old_str", "new_str"]),
    ("insert", &["path", "insert_line", "insert_text"]),
    ("delete", &["path"]),
    ("rename", &["old_path", "new_path"]),
];

/// What a client reads of a call that was served.
pub struct Answer {
    /// For a model to read.
    pub text: String,
    /// The same, for a program.
    pub structured: Value,
}

/// A call that was understood: what is asked, and the namespace that it names.
pub struct Call {
    namespace: Option<String>,
    /// The memory, if it is open already: it stays so until the call is served.
    memory: Option<Arc<dyn Memory>>,
    asked: Asked,
}

/// What a call asks of a memory, and the form in which it wants the answer.
struct Asked {
    request: Request,
    format: Option<Format>,
}

impl Call {
    /// Understands the arguments of a tool, or says what is wrong with them.
    pub fn new(service: &Service, tool: Tool, mut arguments: Map<String, Value>) -> Result<Self, Failure> {
        service.offer.allow(tool.only_writes(), tool.name())?;
        let namespace = namespace(&service.namespaces, tool, &mut arguments)?;
        let mut asked = asked(tool, arguments, &service.offer)?;
        if let (Request::Export(export), Some(format)) = (&mut asked.request, asked.format) {
            export.max_bytes = Some(format.room(service.namespaces.limits().max_export_bytes));
        }
        let memory = service.namespaces.opened(namespace.as_deref());
        Ok(Self { namespace, memory, asked })
    }

    /// How soon it can be served. A namespace that is not open yet takes a while.
    pub fn expect(&self) -> Expected {
        self.memory.as_ref().map_or(Expected::Later, |memory| memory.expect(&self.asked.request))
    }

    /// Serves it.
    pub fn serve(self, service: &Service, caller: &mut Caller<'_>) -> Result<Answer, Failure> {
        let namespace = self.namespace.as_deref();
        let reply = match self.memory {
            Some(memory) => memory.call_or_wait(self.asked.request, caller),
            None => service
                .namespaces
                .memory_for(namespace, &self.asked.request)?
                .call_or_wait(self.asked.request, caller),
        }?;
        match (reply, self.asked.format) {
            (Reply::Export(page), Some(format)) => {
                let namespace = service.namespaces.name(namespace);
                as_json(&Page::new(page, format, namespace, || service.archive_key())?)
            }
            (Reply::Stats(reply), _) => as_json(&json!(stats(service, &reply, namespace))),
            (reply, _) => answer(reply),
        }
    }
}

fn namespace(
    namespaces: &Namespaces,
    tool: Tool,
    arguments: &mut Map<String, Value>,
) -> Result<Option<String>, Failure> {
    let Some(value) = arguments.remove("namespace") else {
        return Ok(None);
    };
    if !namespaces.selectable {
        return Err(Failure::invalid(format!(
            "{} has no field `namespace` on this server, which serves one namespace. \
             Start warm-mcp with --namespace-arg to choose one per call.",
            tool.name()
        )));
    }
    let only = Map::from_iter([("namespace".to_owned(), value)]);
    Fields::new(tool.name(), only, &["namespace"])?.optional("namespace")
}

fn asked(tool: Tool, arguments: Map<String, Value>, offer: &Offer) -> Result<Asked, Failure> {
    if tool == Tool::Memory {
        return Ok(Asked { request: command(arguments, offer)?, format: None });
    }
    let mut fields = Fields::new(tool.name(), arguments, tool.fields())?;
    let mut format = None;
    let request = match tool {
        // Taken care of above.
        Tool::Memory => return Err(Failure::invalid("memory needs the field `command`: a string.")),
        Tool::Stats => Request::Stats,
        Tool::Remember => Request::Remember(Remember {
            text: fields.required("text")?,
            key: fields.optional("key")?,
            title: fields.optional("title")?,
            tags: fields.optional("tags")?.unwrap_or_default(),
            metadata: fields.optional("metadata")?,
            if_version: fields.optional("if_version")?,
            create_only: fields.optional("create_only")?.unwrap_or_default(),
        }),
        Tool::Recall => Request::Recall(Recall {
            query: fields.required("query")?,
            k: fields.optional("k")?,
            under: fields.optional("under")?,
            tags: fields.optional("tags")?.unwrap_or_default(),
            filter: fields.optional("filter")?,
            since: fields.optional("since")?,
            until: fields.optional("until")?,
            max_chars: fields.optional("max_chars")?,
            min_score: fields.optional("min_score")?,
            mode: fields.optional("mode")?.map(mode).transpose()?,
        }),
        Tool::Get => Request::Get(Get { key: fields.required("key")? }),
        Tool::List => Request::List(List {
            prefix: fields.optional("prefix")?,
            tag: fields.optional("tag")?,
            filter: fields.optional("filter")?,
            since: fields.optional("since")?,
            until: fields.optional("until")?,
            order: fields.optional("order")?.map(order).transpose()?,
            limit: fields.optional("limit")?,
            cursor: fields.optional("cursor")?,
        }),
        Tool::Forget => Request::Forget(Forget {
            key: fields.optional("key")?,
            keys: fields.optional("keys")?,
            prefix: fields.optional("prefix")?,
            confirm: fields.optional("confirm")?.unwrap_or_default(),
        }),
        Tool::Export => {
            let named: Option<String> = fields.optional("format")?;
            format = Some(named.map_or(Ok(Format::Json), |name| Format::named(&name))?);
            Request::Export(Export { cursor: fields.optional("cursor")?, max_bytes: None })
        }
    };
    Ok(Asked { request, format })
}

fn mode(name: String) -> Result<RecallMode, Failure> {
    match name.as_str() {
        "lexical" => Ok(RecallMode::Lexical),
        "hybrid" => Ok(RecallMode::Hybrid),
        "semantic" => Ok(RecallMode::Semantic),
        _ => Err(Failure::invalid(format!(
            "recall has no mode {}. It has: lexical, hybrid, semantic.",
            quoted(&name)
        ))),
    }
}

fn order(name: String) -> Result<ListOrder, Failure> {
    match name.as_str() {
        "name" => Ok(ListOrder::Name),
        "recent" => Ok(ListOrder::Recent),
        _ => Err(Failure::invalid(format!("list has no order {}. It has: name, recent.", quoted(&name)))),
    }
}

/// A call of the `memory` tool. Models fill the fields of other commands with null, which is the same
/// as leaving them out.
fn command(mut arguments: Map<String, Value>, offer: &Offer) -> Result<Request, Failure> {
    let named = Map::from_iter(arguments.remove_entry("command"));
    let name: String = Fields::new("memory", named, Tool::Memory.fields())?.required("command")?;
    let Some((name, own)) = COMMANDS.into_iter().find(|(known, _)| *known == name) else {
        return Err(Failure::invalid(format!(
            "memory has no command {}. It has: {}.",
            quoted(&name),
            COMMANDS.map(|(name, _)| name).join(", ")
        )));
    };
    offer.allow(name != "view", &format!("memory {name}"))?;
    arguments.retain(|field, value| !value.is_null() || !is_command_field(field));
    let allowed = [own, &["max_view_chars", "max_file_bytes"]].concat();
    let mut fields = Fields::new(format!("memory {name}"), arguments, &allowed)?;
    let limits = CommandLimits {
        max_view_chars: fields.optional("max_view_chars")?,
        max_file_bytes: fields.optional("max_file_bytes")?,
    };
    let command = match name {
        "view" => {
            Command::View { path: fields.required("path")?, view_range: fields.optional("view_range")? }
        }
        "create" => {
            Command::Create { path: fields.required("path")?, file_text: fields.required("file_text")? }
        }
        "str_replace" => Command::StrReplace {
            path: fields.required("path")?,
            old_str: fields.required("old_str")?,
            new_str: fields.optional("new_str")?,
        },
        "insert" => Command::Insert {
            path: fields.required("path")?,
            insert_line: fields.required("insert_line")?,
            insert_text: fields.required("insert_text")?,
        },
        "delete" => Command::Delete { path: fields.required("path")? },
        _ => {
            Command::Rename { old_path: fields.required("old_path")?, new_path: fields.required("new_path")? }
        }
    };
    Ok(Request::Command(command, limits))
}

fn is_command_field(field: &str) -> bool {
    COMMANDS.iter().any(|(_, fields)| fields.contains(&field))
}

/// What `stats` tells: the store's figures and the server's.
pub fn stats<'a>(service: &Service, stats: &'a Stats, namespace: Option<&str>) -> Figures<'a> {
    Figures { stats, server: figures(service, namespace) }
}

/// See [`stats`].
#[derive(Serialize)]
pub struct Figures<'a> {
    #[serde(flatten)]
    stats: &'a Stats,
    server: Value,
}

fn figures(service: &Service, namespace: Option<&str>) -> Value {
    let tools: Vec<_> = service.offer.listed().map(Tool::name).collect();
    json!({
        "namespace_is": service.namespaces.why(namespace),
        "open_namespaces": service.namespaces.count_open(),
        "max_open_namespaces": service.namespaces.max_open,
        "tools": tools,
        "read_only": service.offer.read_only,
        "max_concurrent": service.load.max_concurrent,
        "max_pending": service.load.max_pending,
    })
}

fn answer(reply: Reply) -> Result<Answer, Failure> {
    match reply {
        // The text is the memory tool's exact string and nothing else.
        Reply::Command(told) => Ok(Answer { structured: json!(told), text: told.result }),
        Reply::Remember(reply) => as_json(&reply),
        Reply::Recall(reply) => as_json(&reply),
        Reply::Get(reply) => as_json(&reply),
        Reply::List(reply) => as_json(&reply),
        Reply::Forget(reply) => as_json(&reply),
        // No tool asks for it.
        Reply::Restore(reply) => as_json(&reply),
        Reply::Export(reply) => as_json(&reply),
        Reply::Damaged(reply) => as_json(&reply),
        Reply::Suggest(reply) => as_json(&reply),
        Reply::Changes(reply) => as_json(&reply),
        Reply::Receipts(reply) => as_json(&reply),
        Reply::Receipt(reply) => as_json(&reply),
        Reply::Forgotten(reply) => as_json(&reply),
        Reply::Stats(reply) => as_json(&reply),
    }
}

fn as_json(reply: &impl Serialize) -> Result<Answer, Failure> {
    let structured = serde_json::to_value(reply).map_err(|_| {
        Failure::new(
            ErrorCode::Internal,
            "The answer could not be written as JSON. Report this as a fault of warm-mcp.",
        )
    })?;
    Ok(Answer { text: structured.to_string(), structured })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(tool: Tool, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("the test gives an object") };
        match asked(tool, arguments, &Offer::default()) {
            Ok(_) => panic!("must be refused"),
            Err(failure) => {
                assert_eq!(failure.code, ErrorCode::InvalidArgument);
                failure.message
            }
        }
    }

    #[test]
    fn a_command_refuses_fields_of_another_command_and_takes_nulls_for_them() {
        assert_eq!(
            refused(Tool::Memory, json!({"command": "delete", "path": "/memories/a", "file_text": "x"})),
            "memory delete has no field `file_text`. It takes: path, max_view_chars, max_file_bytes."
        );
        let Value::Object(arguments) = json!({
            "command": "delete", "path": "/memories/a", "file_text": null, "view_range": null,
        }) else {
            unreachable!()
        };
        assert!(matches!(
            command(arguments, &Offer::default()),
            Ok(Request::Command(Command::Delete { path }, _)) if path == "/memories/a"
        ));
    }

    #[test]
    fn an_unknown_command_and_an_unknown_mode_are_named_with_the_known_ones() {
        assert_eq!(
            refused(Tool::Memory, json!({"command": "read"})),
            "memory has no command `read`. It has: view, create, str_replace, insert, delete, rename."
        );
        assert_eq!(
            refused(Tool::Recall, json!({"query": "q", "mode": "Lexical"})),
            "recall has no mode `Lexical`. It has: lexical, hybrid, semantic."
        );
    }

    #[test]
    fn a_missing_command_is_asked_for() {
        assert_eq!(
            refused(Tool::Memory, json!({"path": "/memories"})),
            "memory needs the field `command`: a string."
        );
    }

    #[test]
    fn every_field_of_a_tool_is_described_and_every_described_field_is_taken() {
        for tool in Tool::ALL {
            let described = catalogue::properties(tool, &Offer::default(), false);
            let mut described: Vec<&str> = described.keys().map(String::as_str).collect();
            let mut taken = tool.fields().to_vec();
            if tool == Tool::Memory {
                taken.extend(COMMANDS.iter().flat_map(|(_, fields)| *fields));
                taken.extend(["max_view_chars", "max_file_bytes"]);
            }
            described.sort_unstable();
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(described, taken, "{}", tool.name());
        }
    }
}
