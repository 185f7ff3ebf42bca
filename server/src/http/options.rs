//! What is chosen for the server over HTTP.
//!
//! Owns the rules that keep it safe by default: it listens on loopback unless it is told otherwise in so many
//! words and has a token. The token comes from the environment alone, since a command line is for all to see.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};

use clap::{Args, ValueEnum};
use sha2::{Digest, Sha256};

use crate::options::{Chosen, or_empty};

/// Where the token comes from.
const TOKEN: &str = "WARM_MCP_TOKEN";
/// Fewer characters can be guessed.
const SHORTEST_TOKEN: usize = 16;

const DEFAULT_BIND: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8765));

/// How clients reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// On stdin and stdout: one client, which starts the server.
    #[default]
    Stdio,
    /// Over HTTP: any number of clients. WARM_MCP_TOKEN demands a bearer token.
    Http,
}

/// How the server is reached.
#[derive(Args)]
#[command(next_help_heading = "Serving over HTTP")]
pub struct HttpOptions {
    /// How clients reach the server: stdio or http [default: stdio]
    #[arg(
        long,
        global = true,
        value_name = "TRANSPORT",
        env = "WARM_MCP_TRANSPORT",
        value_parser = or_empty(transport)
    )]
    transport: Option<Chosen<Transport>>,

    /// Where to listen; port 0 picks a free one [default: 127.0.0.1:8765]
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS:PORT",
        env = "WARM_MCP_BIND",
        value_parser = or_empty(address)
    )]
    bind: Option<Chosen<SocketAddr>>,

    /// A host name that clients may use besides the loopback ones; may be repeated
    #[arg(long, global = true, value_name = "HOST", env = "WARM_MCP_ALLOW_HOST", value_delimiter = ',')]
    allow_host: Vec<String>,

    /// An origin that a browser's page may have besides loopback, such as https://example.com; may be repeated
    #[arg(long, global = true, value_name = "ORIGIN", env = "WARM_MCP_ALLOW_ORIGIN", value_delimiter = ',')]
    allow_origin: Vec<String>,

    /// Listen beyond this machine; needs a token
    #[arg(long, global = true, env = "WARM_MCP_ALLOW_REMOTE", value_parser = clap::builder::FalseyValueParser::new())]
    allow_remote: bool,
}

fn transport(text: &str) -> Result<Transport, String> {
    Transport::from_str(text, false).map_err(|_| "give stdio or http".to_owned())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "give an address and a port, such as 127.0.0.1:8765 or [::1]:8765".to_owned())
}

/// Where to listen and whom to answer.
pub struct Listen {
    pub bind: SocketAddr,
    /// In lower case.
    pub hosts: Vec<String>,
    /// In lower case.
    pub origins: Vec<String>,
    /// The digest of the token that is demanded.
    pub token: Option<[u8; 32]>,
}

impl Listen {
    /// Takes the address, so that one that is taken is known before anything else is done.
    pub fn bind(&self) -> Result<TcpListener, String> {
        let bound = TcpListener::bind(self.bind);
        let bound = bound.and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
        bound.map_err(|error| {
            format!(
                "can't listen on {}: {error}.\nChoose another address with --bind ADDRESS:PORT.",
                self.bind
            )
        })
    }
}

impl HttpOptions {
    /// How clients reach the server.
    pub fn transport(&self) -> Transport {
        self.transport.flatten().unwrap_or_default()
    }

    /// What was chosen, if it is safe. Errors are for a person to read.
    pub fn listen(&self) -> Result<Listen, String> {
        self.with_token(std::env::var_os(TOKEN))
    }

    fn with_token(&self, token: Option<std::ffi::OsString>) -> Result<Listen, String> {
        // A set-up form may leave the variable set but empty, which means that none was chosen.
        let token = token.filter(|token| !token.is_empty());
        let token = token.map(|token| usable(&token.to_string_lossy())).transpose()?;
        let bind = self.bind.flatten().unwrap_or(DEFAULT_BIND);
        if !bind.ip().is_loopback() {
            if !self.allow_remote {
                return Err(format!(
                    "{} can be reached from other machines.\n\
                     Add --allow-remote and set {TOKEN} if that is meant, or bind to 127.0.0.1.",
                    bind
                ));
            }
            if token.is_none() {
                return Err(format!(
                    "{} can be reached from other machines, and no token is demanded.\n\
                     Set {TOKEN} to at least {SHORTEST_TOKEN} random characters.",
                    bind
                ));
            }
        }
        let lower = |names: &[String]| {
            let names = names.iter().map(|name| name.trim().to_ascii_lowercase());
            names.filter(|name| !name.is_empty()).collect()
        };
        let origins: Vec<String> = lower(&self.allow_origin);
        if let Some(origin) = origins.iter().find(|origin| !is_origin(origin)) {
            return Err(format!(
                "--allow-origin {origin} is no origin.\nGive scheme and host, such as https://example.com."
            ));
        }
        Ok(Listen { bind, hosts: lower(&self.allow_host), origins, token })
    }
}

fn usable(token: &str) -> Result<[u8; 32], String> {
    let printable = token.chars().all(|c| c.is_ascii_graphic());
    if token.len() < SHORTEST_TOKEN || !printable {
        return Err(format!(
            "{TOKEN} is not usable: give at least {SHORTEST_TOKEN} characters, printable ASCII without spaces."
        ));
    }
    Ok(digest(token.as_bytes()))
}

/// What tokens are compared by: of the same length for all of them.
pub fn digest(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

fn is_origin(origin: &str) -> bool {
    let rest = origin.split_once("://").map(|(scheme, rest)| (matches!(scheme, "http" | "https"), rest));
    rest.is_some_and(|(known, rest)| known && !rest.is_empty() && !rest.contains(['/', '?', '#', '@']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(bind: &str, allow_remote: bool, token: Option<&str>) -> Result<Listen, String> {
        let options = HttpOptions {
            transport: Some(Some(Transport::Http)),
            bind: Some(Some(bind.parse().unwrap())),
            allow_host: vec!["Memory.Example".into(), String::new()],
            allow_origin: vec!["https://Example.com".into()],
            allow_remote,
        };
        options.with_token(token.map(Into::into))
    }

    const GOOD: &str = "0123456789abcdef";

    #[test]
    fn beyond_this_machine_takes_the_word_and_a_token() {
        assert!(listen("127.0.0.1:1", false, None).is_ok());
        assert!(listen("[::1]:1", false, None).is_ok());
        for bind in ["0.0.0.0:1", "192.0.2.1:1", "[::]:1"] {
            assert!(listen(bind, false, Some(GOOD)).err().unwrap().contains("--allow-remote"));
            assert!(listen(bind, true, None).err().unwrap().contains(TOKEN));
            assert!(listen(bind, true, Some(GOOD)).is_ok());
        }
    }

    #[test]
    fn a_token_that_can_be_guessed_or_not_be_sent_is_refused_and_not_repeated() {
        for bad in ["fifteen-letters", "0123456789 abcdef", "0123456789abcdé"] {
            let refused = listen("127.0.0.1:1", false, Some(bad)).err().unwrap();
            assert!(refused.contains("16 characters") && !refused.contains(bad), "{refused}");
        }
        assert!(listen("127.0.0.1:1", false, Some("")).unwrap().token.is_none());
        assert_eq!(listen("127.0.0.1:1", false, Some(GOOD)).unwrap().token, Some(digest(GOOD.as_bytes())));
    }

    #[test]
    fn names_are_compared_in_lower_case_and_an_origin_is_one() {
        let listen = listen("127.0.0.1:1", false, None).unwrap();
        assert_eq!(
            (listen.hosts[0].as_str(), listen.origins[0].as_str()),
            ("memory.example", "https://example.com")
        );
        for bad in ["example.com", "https://", "https://example.com/path", "ftp://example.com"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }
}
