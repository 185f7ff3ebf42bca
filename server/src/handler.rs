//! The MCP handler: one per session, over any transport.
//!
//! Owns what the protocol asks of a server (who it is, which tools it has, the form of a reply) and
//! the order of calls. How many are served at once is the service's to say. A client may send many calls without waiting, and what they leave behind must
//! be what they would leave one after another: so each call first takes its turn in a fair queue.
//! rmcp starts the calls of a session in the order of their arrival and tokio's current-thread runtime
//! polls them in that order, so taking the turn must stay the first thing that a call waits for.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
        Implementation, InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::json;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    load::{Slot, Waiting},
    memory::{Expected, Failure},
    service::Service,
    tools::{Answer, Call, Tool, catalogue},
};

/// One session's view of the server.
pub struct Handler {
    service: Arc<Service>,
    /// tokio's mutex is fair: it is handed on in the order in which it was asked for.
    turn: Arc<Mutex<()>>,
}

/// What a call holds while it is served: its session's turn, and one of the server's slots.
struct Turn {
    _turn: OwnedMutexGuard<()>,
    _slot: Slot,
}

impl Handler {
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, turn: Arc::default() }
    }

    /// What may take a while gets a thread of its own, so that the session still answers pings and
    /// signals. What is prompt is served here: to wake a thread and be woken costs more than most calls.
    async fn serve(
        &self,
        tool: Tool,
        request: CallToolRequestParams,
        turn: Turn,
        waiting: Waiting,
    ) -> Result<Answer, Failure> {
        let service = Arc::clone(&self.service);
        let call = Call::new(&service, tool, request.arguments.unwrap_or_default())?;
        let expected = call.expect(&service);
        // A recall that waits for the index is answered from a moment that is yet to come, so the others
        // need not wait for it. It still counts as waiting itself.
        let mut turn = (expected != Expected::OnceIndexed).then_some(turn);
        let _waiting = (expected == Expected::OnceIndexed).then_some(waiting);
        let serve = move || {
            let mut waits = || drop(turn.take());
            let served = catch_unwind(AssertUnwindSafe(|| call.serve(&service, &mut waits)));
            // The turn ends here and not on that thread, so that replies leave in the order of the calls.
            (served.unwrap_or_else(|_| Err(Failure::fault())), turn)
        };
        let (served, _turn) = if expected == Expected::Soon {
            serve()
        } else {
            tokio::task::spawn_blocking(serve).await.unwrap_or_else(|_| (Err(Failure::fault()), None))
        };
        served
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("warm-mcp", env!("CARGO_PKG_VERSION")).with_title("WARM memory"),
            )
            .with_instructions(catalogue::instructions(&self.service.offer))
    }

    /// A client that names a revision which has no handshake, or none that is known, gets one that has.
    async fn initialize(
        &self,
        mut client: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.negotiate_initialize(&client)?;
        client.protocol_version = answer.protocol_version.clone();
        context.peer.set_peer_info(client);
        Ok(answer)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(catalogue::all(
            &self.service.offer,
            self.service.namespaces.selectable,
        )))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let waiting = match self.service.load.arrive() {
            Ok(waiting) => waiting,
            Err(busy) => return Ok(result(Err(busy)).into()),
        };
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let turn = Turn { _turn: turn, _slot: self.service.load.slot().await };
        if context.ct.is_cancelled() {
            // A call that was cancelled while it waited is never begun; one that began runs to its end.
            return Err(ErrorData::internal_error("Cancelled", None));
        }
        let Some(tool) = self.service.offer.named(&request.name) else {
            let known: Vec<_> = self.service.offer.listed().map(Tool::name).collect();
            let known = known.join(", ");
            return Err(ErrorData::invalid_params(format!("Unknown tool. This server has: {known}."), None));
        };
        let started = Instant::now();
        let outcome = self.serve(tool, request, turn, waiting).await;
        tracing::debug!(
            tool = tool.name(),
            micros = started.elapsed().as_micros(),
            failed = outcome.as_ref().err().map(|failure| tracing::field::debug(failure.code)),
            "call"
        );
        Ok(result(outcome).into())
    }

    /// Requests that rmcp could not read, or does not know, arrive here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "The params of tools/call must be an object with `name`, a string, and \
                 `arguments`, an object.",
                None,
            ),
            "initialize" => ErrorData::invalid_params(
                "The params of initialize must be an object with `protocolVersion`, \
                 `capabilities` and `clientInfo`.",
                None,
            ),
            _ => ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "Method not found", None),
        })
    }
}

/// A failure is a result that the model reads, not an error of the protocol.
fn result(outcome: Result<Answer, Failure>) -> CallToolResult {
    match outcome {
        Ok(answer) => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
            result.structured_content = Some(answer.structured);
            result
        }
        Err(failure) => {
            let structured = json!(failure);
            let mut result = CallToolResult::error(vec![ContentBlock::text(failure.message)]);
            result.structured_content = Some(structured);
            result
        }
    }
}
