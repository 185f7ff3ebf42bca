//! Who may ask: the checks that every request passes before anything else is looked at.
//!
//! `Host` keeps out pages that point a name of their own at this machine (DNS rebinding), `Origin` keeps
//! out pages of other sites in the user's browser, and the token keeps out everyone who was not given it.

use std::net::{IpAddr, SocketAddr};

use hyper::{
    HeaderMap, Request, StatusCode,
    header::{AUTHORIZATION, HOST, ORIGIN},
};
use subtle::ConstantTimeEq;

use super::options::{Listen, digest};

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("this server does not answer to that Host: add it with --allow-host")]
    Host,
    #[error("this server does not answer to that Origin: add it with --allow-origin")]
    Origin,
    #[error("send the server's token as `Authorization: Bearer TOKEN`")]
    Token,
}

impl Refused {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }
}

/// The checks of one server.
pub struct Guard {
    listen: Listen,
    /// Where it listens, which is a name for it too unless it is every address.
    address: IpAddr,
}

impl Guard {
    pub fn new(listen: Listen, address: SocketAddr) -> Self {
        Self { listen, address: address.ip() }
    }

    /// Whether everyone who reaches the server may ask.
    pub fn is_open(&self) -> bool {
        self.listen.token.is_none()
    }

    /// Whether a request may be answered. One for an `open` route needs no token.
    pub fn admit<B>(&self, request: &Request<B>, open: bool) -> Result<(), Refused> {
        let authority = request.uri().authority().map(|authority| authority.as_str());
        let host = one(request.headers(), &HOST).map_err(|()| Refused::Host)?;
        // A target that names a host too is not to be for another.
        let mut named = host.into_iter().chain(authority).peekable();
        if named.peek().is_none() || !named.all(|host| self.knows(&host.to_ascii_lowercase())) {
            return Err(Refused::Host);
        }
        match one(request.headers(), &ORIGIN).map_err(|()| Refused::Origin)? {
            Some(origin) if !self.trusts(&origin.to_ascii_lowercase()) => return Err(Refused::Origin),
            _ => {}
        }
        match &self.listen.token {
            Some(token) if !open && !bears(request.headers(), token) => Err(Refused::Token),
            _ => Ok(()),
        }
    }

    /// Whether a `Host`, with or without a port, is a name of this server.
    fn knows(&self, host: &str) -> bool {
        let name = without_port(host);
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        is_loopback(name)
            || address.is_some_and(|address| address == self.address && !address.is_unspecified())
            || self.listen.hosts.iter().any(|known| known == name || known == host)
    }

    fn trusts(&self, origin: &str) -> bool {
        let loopback = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|host| !host.contains(['/', '@']) && is_loopback(without_port(host)));
        loopback || self.listen.origins.iter().any(|known| known == origin)
    }
}

/// The value of a header that comes at most once, as text.
fn one<'a>(headers: &'a HeaderMap, name: &hyper::header::HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an IPv6 address are within brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => {
            if name.starts_with('[') == name.ends_with(']') && (name.starts_with('[') || !name.contains(':'))
            {
                name
            } else {
                host
            }
        }
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    let address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().map(IpAddr::V6).ok(),
        None => name.parse::<std::net::Ipv4Addr>().map(IpAddr::V4).ok(),
    };
    name == "localhost" || address.is_some_and(|address| address.is_loopback())
}

fn bears(headers: &HeaderMap, token: &[u8; 32]) -> bool {
    let Ok(Some(value)) = one(headers, &AUTHORIZATION) else { return false };
    let Some((scheme, given)) = value.split_once(' ') else { return false };
    scheme.eq_ignore_ascii_case("bearer") && bool::from(digest(given.trim().as_bytes()).ct_eq(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn guard(address: &str, token: Option<&str>) -> Guard {
        let listen = Listen {
            bind: address.parse().unwrap(),
            hosts: vec!["memory.example".into(), "exact.example:81".into()],
            origins: vec!["https://app.example".into()],
            token: token.map(|token| digest(token.as_bytes())),
        };
        Guard::new(listen, address.parse().unwrap())
    }

    fn request(headers: &[(&str, &str)]) -> Request<()> {
        headers.iter().fold(Request::builder().uri("/mcp"), |r, (k, v)| r.header(*k, *v)).body(()).unwrap()
    }

    fn with_host(host: &str) -> Result<(), Refused> {
        guard("127.0.0.1:8765", None).admit(&request(&[("host", host)]), false)
    }

    #[test]
    fn loopback_names_and_those_that_were_allowed_are_hosts_and_nothing_else_is() {
        let good = [
            "localhost",
            "localhost:8765",
            "127.0.0.1",
            "127.0.0.1:1",
            "127.9.9.9",
            "[::1]",
            "[::1]:8765",
            "LOCALHOST",
            "memory.example",
            "memory.example:99",
            "Memory.Example",
            "exact.example:81",
        ];
        for host in good {
            assert_eq!(with_host(host), Ok(()), "{host}");
        }
        let bad = [
            "evil.example",
            "evil.example:8765",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "exact.example",
            "exact.example:82",
            "0.0.0.0",
            "192.0.2.1",
            "",
            ":8765",
            "localhost:x",
            "[::2]",
            "::1",
            "[::1",
            "localhost:80:80",
            "localhost@evil.example",
            "user@localhost",
        ];
        for host in bad {
            assert_eq!(with_host(host), Err(Refused::Host), "{host}");
        }
        let guard = guard("127.0.0.1:8765", None);
        assert_eq!(guard.admit(&request(&[]), false), Err(Refused::Host), "none at all");
        let twice = request(&[("host", "localhost"), ("host", "evil.example")]);
        assert_eq!(guard.admit(&twice, false), Err(Refused::Host));
    }

    #[test]
    fn a_target_that_names_a_host_is_for_this_server_whatever_its_header_says() {
        let of = |uri: &str, host: Option<&str>| {
            let request =
                host.into_iter().fold(Request::builder().uri(uri), |r, host| r.header("host", host));
            guard("127.0.0.1:8765", None).admit(&request.body(()).unwrap(), false)
        };
        assert_eq!(of("http://localhost:8765/mcp", None), Ok(()));
        assert_eq!(of("http://localhost:8765/mcp", Some("localhost:8765")), Ok(()));
        for (uri, host) in [
            ("http://evil.example/mcp", None),
            ("http://evil.example/mcp", Some("localhost")),
            ("http://localhost/mcp", Some("evil.example")),
            ("http://user@localhost/mcp", None),
        ] {
            assert_eq!(of(uri, host), Err(Refused::Host), "{uri} {host:?}");
        }
    }

    #[test]
    fn the_address_that_it_listens_on_is_a_host_unless_it_is_every_address() {
        let of = |address, host| guard(address, None).admit(&request(&[("host", host)]), false);
        assert_eq!(of("192.0.2.1:8765", "192.0.2.1:8765"), Ok(()));
        assert_eq!(of("192.0.2.1:8765", "192.0.2.2:8765"), Err(Refused::Host));
        assert_eq!(of("0.0.0.0:8765", "0.0.0.0:8765"), Err(Refused::Host));
    }

    #[test]
    fn pages_of_loopback_and_those_that_were_allowed_are_origins_and_nothing_else_is() {
        let of = |origin| {
            guard("127.0.0.1:8765", None).admit(&request(&[("host", "localhost"), ("origin", origin)]), true)
        };
        let good = [
            "http://localhost",
            "http://localhost:5173",
            "https://127.0.0.1",
            "http://[::1]:3",
            "https://APP.example",
        ];
        for origin in good {
            assert_eq!(of(origin), Ok(()), "{origin}");
        }
        let bad = [
            "http://evil.example",
            "null",
            "",
            "http://localhost.evil.example",
            "https://app.example:444",
            "http://app.example",
            "file://",
            "http://localhost@evil.example",
            "http://evil.example/http://localhost",
        ];
        for origin in bad {
            assert_eq!(of(origin), Err(Refused::Origin), "{origin}");
        }
    }

    #[test]
    fn a_token_that_is_demanded_is_sent_whole_and_once() {
        let guard = guard("127.0.0.1:8765", Some(TOKEN));
        let of = |authorization: &str, open| {
            guard.admit(&request(&[("host", "localhost"), ("authorization", authorization)]), open)
        };
        assert_eq!(of(&format!("Bearer {TOKEN}"), false), Ok(()));
        assert_eq!(of(&format!("bearer {TOKEN}"), false), Ok(()));
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            TOKEN,
            "Basic 0123456789abcdef",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdeff",
        ] {
            assert_eq!(of(bad, false), Err(Refused::Token), "{bad}");
            assert_eq!(of(bad, true), Ok(()), "an open route tells nothing");
        }
        let none = request(&[("host", "localhost")]);
        assert_eq!(guard.admit(&none, false), Err(Refused::Token));
    }
}
