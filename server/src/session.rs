//! A session on one pair of streams, whatever revision of the protocol each of its requests is in.
//!
//! Owns the rule that tells: a request that carries its revision is of that one, as 2026-07-28 has it; any other is
//! of the revision that the last `initialize` agreed on. Until there is one, such a request is refused. So a client
//! may look around in the one form and go on in the other, which rmcp's own session, bound to the form of its first
//! request, would not let it. What a request is answered is the [`Handler`]'s.

use std::borrow::Cow;

use rmcp::{
    ErrorData, RoleServer, Service,
    model::{
        ClientNotification, ClientRequest, ProtocolVersion, RequestMetaObject, ServerConfig, ServerResult,
    },
    service::{NotificationContext, RequestContext},
};

use crate::handler::Handler;

/// See the module.
pub struct Session(Handler);

impl Session {
    pub fn new(handler: Handler) -> Self {
        Self(handler)
    }
}

impl Service<RoleServer> for Session {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if context.protocol_version().is_none() && !opens(&request) {
            return Err(unopened(&context.meta));
        }
        self.0.handle_request(request, context).await
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.handle_notification(notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        Service::get_info(&self.0)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.0)
    }
}

/// Whether a request may come before anything is agreed on. One that looks around says itself what it misses.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_)
        | ClientRequest::PingRequest(_)
        | ClientRequest::DiscoverRequest(_) => true,
        // An `initialize` that can't be read is told so.
        ClientRequest::CustomRequest(request) => request.method == "initialize",
        _ => false,
    }
}

fn unopened(meta: &RequestMetaObject) -> ErrorData {
    let missing = meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).join(", ");
    ErrorData::invalid_params(
        format!(
            "This request is of no revision of the protocol. Open a session with initialize, or send in its _meta \
             what is missing: {missing}."
        ),
        None,
    )
}
