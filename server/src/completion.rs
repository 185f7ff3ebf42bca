//! What an argument that was begun may become: keys, prefixes and tags that the memory has.
//!
//! Owns which argument is which. Names are shown only where `list` is offered, which tells the same.

use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use warm_engine::contract::{Suggest, SuggestWhat};

use crate::{
    memory::{Caller, Failure, Reply, Request},
    prompts, resources,
    service::Service,
    tools::Tool,
};

/// Completes one argument.
pub fn complete(
    service: &Service,
    request: CompleteRequestParams,
    caller: &mut Caller<'_>,
) -> Result<CompletionInfo, Failure> {
    let argument = request.argument.name.as_str();
    let what = match &request.r#ref {
        Reference::Resource(template) => {
            if ![resources::TEMPLATE, resources::TEMPLATE_IN_NAMESPACE].contains(&template.uri.as_str()) {
                return Err(Failure::invalid(format!(
                    "The one template to complete is {}.",
                    resources::TEMPLATE
                )));
            }
            (argument == "key").then_some(SuggestWhat::Keys)
        }
        Reference::Prompt(prompt) => {
            prompts::Prompt::named(service, &prompt.name)?;
            match argument {
                "key" => Some(SuggestWhat::Keys),
                "prefix" => Some(SuggestWhat::Prefixes),
                "tag" => Some(SuggestWhat::Tags),
                _ => None,
            }
        }
        _ => {
            return Err(Failure::invalid(
                "Only arguments of prompts and of resource templates are completed.",
            ));
        }
    };
    let Some(what) = what.filter(|_| service.offer.has(Tool::List)) else {
        return Ok(CompletionInfo::default());
    };
    let namespace = request.context.as_ref().and_then(|context| context.get_argument("namespace"));
    let namespace = namespace.filter(|_| service.namespaces.selectable);
    let asked = Suggest { what, begun: request.argument.value, most: CompletionInfo::MAX_VALUES as u64 };
    let memory = service.namespaces.memory(namespace.map(String::as_str))?;
    match memory.call_or_wait(Request::Suggest(asked), caller)? {
        Reply::Suggest(suggested) => {
            let more = suggested.total > suggested.values.len() as u64;
            let total = u32::try_from(suggested.total).unwrap_or(u32::MAX);
            CompletionInfo::with_pagination(suggested.values, Some(total), more).map_err(|_| Failure::fault())
        }
        _ => Err(Failure::fault()),
    }
}
