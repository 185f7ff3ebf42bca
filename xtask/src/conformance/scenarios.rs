//! Which scenarios of the conformance suites apply to this server, and why the others do not.
//!
//! Every scenario that a suite has stands in one of its two lists; one that stands in neither fails the stage, so a
//! newer suite can't be taken up without looking at what it adds.

/// A suite at one revision of the protocol.
pub struct Suite {
    /// The name under which its package is installed.
    pub package: &'static str,
    /// The revision that it is to speak; `None` leaves it the choice.
    pub revision: Option<&'static str>,
    pub applies: &'static [&'static str],
    pub does_not: &'static [(&'static str, &'static [&'static str])],
    /// Checks within scenarios that apply, which do not.
    pub checks_do_not: &'static [(&'static str, &'static [&'static str])],
}

/// The suites call such a tool, prompt or resource by its name, and check what it answers word for word.
const NEEDS_A_FIXTURE: &str = "it asks for a tool, prompt or resource that exists only to be tested, such as \
                               test_simple_text or test://static-text";
const NO_LOGGING: &str = "the server sends no log messages to clients";
const NO_QUESTIONS: &str = "the server never asks a client for a completion, a decision or its roots";
const NO_PARAMETER_HEADERS: &str = "no tool takes a parameter from a header of its own";
const NO_EXTENSION: &str = "the server does not have that extension of the protocol";
const ANOTHER_REVISION: &str = "the scenario is not part of this revision";

/// 0.1.16, the newest of the released ones.
const RELEASED: Suite = Suite {
    package: "conformance-released",
    revision: None,
    applies: &[
        "server-initialize",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
        "server-sse-polling",
    ],
    does_not: &[(NEEDS_A_FIXTURE, &FIXTURES), (NO_LOGGING, &LOGGING), (NO_QUESTIONS, &QUESTIONS)],
    checks_do_not: &[(NEEDS_A_FIXTURE, &POLLING)],
};

/// 0.2.0-alpha.12, at the last revision that has sessions.
const NEXT_WITH_SESSIONS: Suite = Suite {
    package: "conformance-next",
    revision: Some("2025-11-25"),
    applies: &[
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
        "server-sse-polling",
    ],
    does_not: &[
        (NEEDS_A_FIXTURE, &FIXTURES),
        (NO_LOGGING, &LOGGING),
        (NO_QUESTIONS, &QUESTIONS),
        (NO_QUESTIONS, &INPUT_REQUIRED),
        (NO_PARAMETER_HEADERS, &["http-custom-header-server-validation"]),
        (NO_EXTENSION, &EXTENSIONS),
        (
            ANOTHER_REVISION,
            &[
                "server-stateless",
                "caching",
                "http-header-validation",
                "sep-2164-resource-not-found",
                "input-required-result-unsupported-methods",
            ],
        ),
    ],
    checks_do_not: &[(NEEDS_A_FIXTURE, &POLLING)],
};

/// 0.2.0-alpha.12, at the current revision.
const NEXT: Suite = Suite {
    package: "conformance-next",
    revision: Some("2026-07-28"),
    applies: &[
        "server-stateless",
        "tools-list",
        "resources-list",
        "prompts-list",
        "dns-rebinding-protection",
        "server-sse-multiple-streams",
        "caching",
        "http-header-validation",
        "sep-2164-resource-not-found",
        "input-required-result-unsupported-methods",
    ],
    does_not: &[
        (NEEDS_A_FIXTURE, &FIXTURES),
        (NO_LOGGING, &LOGGING),
        (NO_QUESTIONS, &QUESTIONS),
        (NO_QUESTIONS, &INPUT_REQUIRED),
        (NO_PARAMETER_HEADERS, &["http-custom-header-server-validation"]),
        (NO_EXTENSION, &EXTENSIONS),
        (ANOTHER_REVISION, &["server-initialize", "server-session-lifecycle", "ping", "server-sse-polling"]),
    ],
    checks_do_not: &[(
        NEEDS_A_FIXTURE,
        &[
            // test_missing_capability
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            // test_streaming_elicitation
            "sep-2575-http-server-no-independent-requests-on-stream",
            // test_logging_tool
            "sep-2575-server-no-log-without-loglevel",
        ],
    )],
};

pub const SUITES: [Suite; 3] = [RELEASED, NEXT_WITH_SESSIONS, NEXT];

const FIXTURES: [&str; 19] = [
    "completion-complete",
    "json-schema-2020-12",
    "prompts-get-embedded-resource",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "resources-read-binary",
    "resources-read-text",
    "resources-subscribe",
    "resources-templates-read",
    "resources-unsubscribe",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-error",
    "tools-call-image",
    "tools-call-mixed-content",
    "tools-call-simple-text",
    "tools-call-with-logging",
    "tools-call-with-progress",
];

/// test_reconnection
const POLLING: [&str; 1] = ["server-sse-disconnect-resume"];

const LOGGING: [&str; 1] = ["logging-set-level"];

const QUESTIONS: [&str; 4] = [
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
    "tools-call-elicitation",
    "tools-call-sampling",
];

const INPUT_REQUIRED: [&str; 13] = [
    "input-required-result-basic-elicitation",
    "input-required-result-basic-list-roots",
    "input-required-result-basic-sampling",
    "input-required-result-capability-check",
    "input-required-result-ignore-extra-params",
    "input-required-result-missing-input-response",
    "input-required-result-multi-round",
    "input-required-result-multiple-input-requests",
    "input-required-result-non-tool-request",
    "input-required-result-request-state",
    "input-required-result-result-type",
    "input-required-result-tampered-state",
    "input-required-result-validate-input",
];

const EXTENSIONS: [&str; 13] = [
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-status-notifications",
    "tasks-wire-fields",
];

impl Suite {
    /// Why a scenario or a check does not apply, if it does not.
    pub fn reason(&self, name: &str) -> Option<&'static str> {
        let all = self.does_not.iter().chain(self.checks_do_not);
        all.clone().find(|(_, names)| names.contains(&name)).map(|(reason, _)| *reason)
    }

    /// How the suite and its revision are called.
    pub fn title(&self) -> String {
        self.revision
            .map_or_else(|| self.package.to_owned(), |revision| format!("{} {revision}", self.package))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_scenario_stands_in_one_list_and_every_list_says_why() {
        for suite in &SUITES {
            let mut seen = HashSet::new();
            let others = suite.does_not.iter().flat_map(|(_, names)| *names);
            for name in suite.applies.iter().chain(others) {
                assert!(seen.insert(name), "{name} stands twice in {}", suite.title());
            }
            assert!(suite.does_not.iter().chain(suite.checks_do_not).all(|(reason, _)| !reason.is_empty()));
        }
    }
}
