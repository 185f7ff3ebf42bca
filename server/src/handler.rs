//! The MCP handler: one per session, over any transport.
//!
//! Owns what the protocol asks of a server (who it is, what it has, the form of a reply) and the order of calls. How many
//! are served at once is the service's to say. A client may send many calls without waiting, and what they leave behind
//! must be what they would leave one after another: so each call first takes its turn in a fair queue, and so does
//! whatever else reads the memory. rmcp starts the calls of a session in the order of their arrival and tokio's
//! current-thread runtime polls them in that order, so taking the turn must stay the first thing that a call waits for.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
        ContentBlock, CustomRequest, CustomResult, ErrorCode as ProtocolCode, GetPromptRequestParams,
        GetPromptResponse, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
        ServerConfig, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::json;
use tokio::sync::{Mutex, OwnedMutexGuard};
use warm_engine::{Progress, contract::ErrorCode};

use crate::{
    client_log::{ClientLog, SetLevel},
    completion,
    load::{Slot, Waiting},
    memory::{Caller, Expected, Failure},
    progress::attend,
    prompts::{self, Prompt},
    resources::{self, Named},
    service::Service,
    subscriptions::Subscriptions,
    tools::{Answer, Call, Tool, catalogue},
};

/// One session's view of the server.
pub struct Handler {
    service: Arc<Service>,
    /// tokio's mutex is fair: it is handed on in the order in which it was asked for.
    turn: Arc<Mutex<()>>,
    subscriptions: Subscriptions,
    log: ClientLog,
    /// Whether the client stays to hear anything.
    has_session: bool,
}

/// What a call holds while it is served: its session's turn, and one of the server's slots.
struct Turn {
    _turn: OwnedMutexGuard<()>,
    _slot: Slot,
}

/// Why a request is not begun.
enum NotBegun {
    Busy(Failure),
    Cancelled,
}

impl From<NotBegun> for ErrorData {
    fn from(reason: NotBegun) -> Self {
        match reason {
            NotBegun::Busy(busy) => refused(busy),
            // Nobody hears it.
            NotBegun::Cancelled => Self::internal_error("Cancelled", None),
        }
    }
}

impl Handler {
    /// For a client that stays, or asks in the form of 2026-07-28.
    pub fn new(service: Arc<Service>) -> Self {
        let (turn, log) = Default::default();
        Self { service, turn, subscriptions: Subscriptions::default(), log, has_session: true }
    }

    /// For a client that is gone once it is answered.
    pub fn for_one_request(service: Arc<Service>) -> Self {
        Self { has_session: false, ..Self::new(service) }
    }

    /// Waits for the turn of a request. One that was cancelled while it waited is never begun; one that began runs to
    /// its end, unless it only reads.
    async fn turn(&self, context: &RequestContext<RoleServer>) -> Result<(Turn, Waiting), NotBegun> {
        let waiting = self.service.load.arrive().map_err(NotBegun::Busy)?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let turn = Turn { _turn: turn, _slot: self.service.load.slot().await };
        if context.ct.is_cancelled() { Err(NotBegun::Cancelled) } else { Ok((turn, waiting)) }
    }

    /// What may take a while gets a thread of its own, so that the session still answers pings and
    /// signals. What is prompt is served here: to wake a thread and be woken costs more than most calls.
    async fn serve<T: Send + 'static>(
        &self,
        (turn, waiting): (Turn, Waiting),
        expected: Expected,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Service, &mut Caller<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let service = Arc::clone(&self.service);
        // A recall that waits for the index is answered from a moment that is yet to come, so the others
        // need not wait for it. It still counts as waiting itself.
        let mut turn = (expected != Expected::OnceIndexed).then_some(turn);
        let _waiting = (expected == Expected::OnceIndexed).then_some(waiting);
        let progress = Arc::new(Progress::default());
        let told = Arc::clone(&progress);
        let serve = move || {
            let mut caller = Caller { waits: &mut || drop(turn.take()), progress: told };
            let served = catch_unwind(AssertUnwindSafe(|| work(&service, &mut caller)));
            service.namespaces.trim();
            // The turn ends here and not on that thread, so that replies leave in the order of the calls.
            (served.unwrap_or_else(|_| Err(Failure::fault())), turn)
        };
        let (served, _turn) = if expected == Expected::Soon {
            serve()
        } else {
            let work = tokio::task::spawn_blocking(serve);
            attend(work, &progress, context).await.unwrap_or_else(|_| (Err(Failure::fault()), None))
        };
        served
    }

    fn in_a_session(&self) -> Result<(), ErrorData> {
        let message = "Open a session with initialize first: there is none to hear in.";
        if self.has_session { Ok(()) } else { Err(ErrorData::invalid_request(message, None)) }
    }

    /// The same for what is not a tool: its failures are errors of the protocol.
    async fn read<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Service, &mut Caller<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let turn = self.turn(context).await?;
        self.serve(turn, Expected::Later, context, work).await.map_err(refused)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if resources::offered(&self.service) {
            let resources = capabilities.resources.get_or_insert_default();
            resources.subscribe = Some(true);
            resources.list_changed = resources::lists_memories(&self.service).then_some(true);
            capabilities.completions = Some(Default::default());
        }
        if Prompt::offered(&self.service.offer).next().is_some() {
            capabilities.prompts = Some(Default::default());
            capabilities.completions = Some(Default::default());
        }
        ServerConfig::new(capabilities)
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
        let mut answer = self.negotiate_initialize(&client)?;
        // Of the handshake revisions alone, so it is not among what `server/discover` names.
        answer.capabilities.logging = Some(Default::default());
        client.protocol_version = answer.protocol_version.clone();
        context.peer.set_peer_info(client);
        self.subscriptions.open();
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
        let turn = match self.turn(&context).await {
            Err(NotBegun::Busy(busy)) => return Ok(result(Err(busy)).into()),
            turn => turn?,
        };
        let Some(tool) = self.service.offer.named(&request.name) else {
            let known: Vec<_> = self.service.offer.listed().map(Tool::name).collect();
            let known = known.join(", ");
            return Err(ErrorData::invalid_params(format!("Unknown tool. This server has: {known}."), None));
        };
        let started = Instant::now();
        let outcome = match Call::new(&self.service, tool, request.arguments.unwrap_or_default()) {
            Ok(call) => {
                let expected = call.expect();
                self.serve(turn, expected, &context, |service, caller| call.serve(service, caller)).await
            }
            Err(failure) => Err(failure),
        };
        tracing::debug!(
            tool = tool.name(),
            micros = started.elapsed().as_micros(),
            failed = outcome.as_ref().err().map(|failure| tracing::field::debug(failure.code)),
            "call"
        );
        Ok(result(outcome).into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = page.and_then(|page| page.cursor);
        if self.has_session && context.meta.protocol_version().is_none() {
            self.subscriptions.asked_for_the_list(&self.service, &context.peer);
        }
        self.read(&context, |service, caller| resources::list(service, cursor, caller)).await
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates(&self.service)))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let asked = uri.clone();
        let read = self.read(&context, move |service, caller| resources::read(service, &asked, caller)).await;
        let read = read.map_err(|mut error| {
            error.data = error.data.map(|mut data| {
                data["uri"] = json!(uri);
                data
            });
            error
        })?;
        Ok(ReadResourceResult::new(vec![read]).into())
    }

    async fn set_level(
        &self,
        request: SetLevel,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !context.protocol_version().is_some_and(|version| version.has_initialize()) {
            return Err(ErrorData::new(ProtocolCode::METHOD_NOT_FOUND, "Method not found", None));
        }
        self.in_a_session()?;
        self.log.set_level(request, &context.peer);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.in_a_session()?;
        let uri = request.uri.clone();
        // A namespace that can't be opened has nothing to tell.
        self.read(&context, move |service, _| {
            let named = Named::read(service, &uri)?;
            service.namespaces.memory(named.namespace.as_deref()).map(drop)
        })
        .await?;
        self.subscriptions.subscribe(&self.service, request.uri, &context.peer).map_err(refused)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscriptions.unsubscribe(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, asked: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(self.subscriptions.accept(&self.service, asked))
    }

    async fn listen(&self, stream: SubscriptionContext) -> Result<(), ErrorData> {
        self.subscriptions.stream(&self.service, stream).await;
        Ok(())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all(&self.service)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompt = Prompt::named(&self.service, &request.name).map_err(refused)?;
        let arguments = request.arguments.unwrap_or_default();
        let told = self.read(&context, move |service, caller| prompt.get(service, arguments, caller)).await?;
        Ok(told.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completed = self.read(&context, |service, caller| completion::complete(service, request, caller));
        Ok(CompleteResult::new(completed.await?))
    }

    /// Requests that rmcp could not read, or does not know, arrive here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let unknown = || ErrorData::new(ProtocolCode::METHOD_NOT_FOUND, "Method not found", None);
        let modern = context.protocol_version().is_some_and(|version| !version.has_initialize());
        let expected = match request.method.as_str() {
            // It has these no more, however they are asked.
            "initialize" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" if modern => {
                return Err(unknown());
            }
            "tools/call" => "`name`, a string, and `arguments`, an object",
            "initialize" => "`protocolVersion`, `capabilities` and `clientInfo`",
            "logging/setLevel" => {
                "`level`, one of debug, info, notice, warning, error, critical, alert and emergency"
            }
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "`uri`, a string",
            "prompts/get" => "`name`, a string, and `arguments`, an object",
            "completion/complete" => {
                "`ref`, a prompt or a template, and `argument` with its `name` and `value`"
            }
            "subscriptions/listen" => "`notifications`, an object",
            _ => return Err(unknown()),
        };
        let message = format!("The params of {} must be an object with {expected}.", request.method);
        Err(ErrorData::invalid_params(message, None))
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

/// Where there is no model to read it, a failure is an error of the protocol. What is not found has another number in
/// each revision, which rmcp sees to.
fn refused(failure: Failure) -> ErrorData {
    let data = Some(json!({"code": failure.code}));
    match failure.code {
        ErrorCode::NotFound => ErrorData::resource_not_found(failure.message, data),
        ErrorCode::InvalidArgument | ErrorCode::TooLarge => ErrorData::invalid_params(failure.message, data),
        _ => ErrorData::internal_error(failure.message, data),
    }
}
