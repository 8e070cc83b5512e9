//! Through which proxy a server is reached.

use std::net::IpAddr;

use reqwest::Url;

use super::host::is_local_host;
use crate::models::Environment;

/// Proxies by the scheme of the server, and the servers that are reached without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProxyRules {
    http: Option<Url>,
    https: Option<Url>,
    without: Vec<Exception>,
}

/// A server, or several, that is reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    All,
    /// `localhost`: this machine under any of its names and addresses.
    ThisMachine,
    /// A name and everything under it.
    Domain {
        name: String,
        port: Option<u16>,
    },
    Network {
        address: IpAddr,
        bits: u32,
        port: Option<u16>,
    },
}

impl ProxyRules {
    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say; names in lower case win.
    ///
    /// # Errors
    /// Names the variable whose value is no URL.
    pub(super) fn from_environment(environment: &Environment) -> Result<Self, String> {
        let variable = |name: &str| {
            let (lower, upper) = (name.to_ascii_lowercase(), name.to_ascii_uppercase());
            let value = |name: String| Some((environment.get(&name)?.trim().to_owned(), name));
            value(lower).or_else(|| value(upper)).filter(|(value, _)| !value.is_empty())
        };
        let proxy = |name: &str| match variable(name) {
            None => Ok(None),
            Some((value, name)) => match proxy_url(&value) {
                Some(url) => Ok(Some(url)),
                // The value is not repeated: it may hold a password.
                None => Err(format!("The variable {name} is not the URL of a proxy, such as http://proxy:3128.")),
            },
        };
        let all = proxy("all_proxy")?;
        let http = proxy("http_proxy")?.or_else(|| all.clone());
        let https = proxy("https_proxy")?.or(all);
        let without = variable("no_proxy").map(|(list, _)| exceptions(&list)).unwrap_or_default();
        Ok(Self { http, https, without })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// The proxy for a server.
    pub(super) fn proxy_for(&self, server: &Url) -> Option<&Url> {
        let proxy = match server.scheme() {
            "https" => self.https.as_ref(),
            _ => self.http.as_ref(),
        }?;
        let host = server.host_str()?.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        let port = server.port_or_known_default();
        (!self.without.iter().any(|exception| exception.holds(host, port))).then_some(proxy)
    }
}

fn proxy_url(value: &str) -> Option<Url> {
    let with_scheme = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    Url::parse(&with_scheme).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn exceptions(list: &str) -> Vec<Exception> {
    let entries = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|entry| !entry.is_empty());
    entries.map(Exception::read).collect()
}

impl Exception {
    fn read(entry: &str) -> Self {
        if entry == "*" {
            return Self::All;
        }
        let (host, port) = split_port(entry);
        if host.eq_ignore_ascii_case("localhost") && port.is_none() {
            return Self::ThisMachine;
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let (address, bits) = match bare.split_once('/') {
            Some((address, bits)) => (address.parse().ok(), bits.parse().ok()),
            None => (bare.parse().ok(), Some(128)),
        };
        if let (Some(address), Some(bits)) = (address, bits) {
            return Self::Network { address, bits, port };
        }
        let name = host.trim_start_matches("*.").trim_matches('.').to_ascii_lowercase();
        Self::Domain { name, port }
    }

    fn holds(&self, host: &str, port: Option<u16>) -> bool {
        let fits = |wanted: &Option<u16>| wanted.is_none() || *wanted == port;
        match self {
            Self::All => true,
            Self::ThisMachine => {
                let loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
                loopback || host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost")
            }
            Self::Domain { name, port } => {
                let host = host.to_ascii_lowercase();
                let below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                below && !name.is_empty() && fits(port)
            }
            Self::Network { address, bits, port } => {
                host.parse().is_ok_and(|host| is_within(host, *address, *bits)) && fits(port)
            }
        }
    }
}

/// `host:port`; an address of version 6 has a port only behind brackets.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

fn is_within(host: IpAddr, network: IpAddr, bits: u32) -> bool {
    let prefix = |value: u128, width: u32| value.checked_shr(width - bits.min(width)).unwrap_or(0);
    match (host.to_canonical(), network.to_canonical()) {
        (IpAddr::V4(host), IpAddr::V4(network)) => {
            prefix(u32::from(host).into(), 32) == prefix(u32::from(network).into(), 32)
        }
        (IpAddr::V6(host), IpAddr::V6(network)) => prefix(host.into(), 128) == prefix(network.into(), 128),
        _ => false,
    }
}

/// Whether a URL is of a server on this machine or network.
pub(super) fn is_local(url: &Url) -> bool {
    url.host_str().is_some_and(is_local_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules<const COUNT: usize>(variables: [(&str, &str); COUNT]) -> ProxyRules {
        ProxyRules::from_environment(&Environment::from(variables)).unwrap()
    }

    fn proxy(rules: &ProxyRules, server: &str) -> Option<String> {
        rules.proxy_for(&Url::parse(server).unwrap()).map(Url::to_string)
    }

    #[test]
    fn a_proxy_is_chosen_by_the_servers_scheme() {
        let rules =
            rules([("HTTP_PROXY", "one:1"), ("https_proxy", "https://two:2"), ("HTTPS_PROXY", "http://three:3")]);
        assert_eq!(proxy(&rules, "http://a.com").as_deref(), Some("http://one:1/"));
        assert_eq!(proxy(&rules, "https://a.com").as_deref(), Some("https://two:2/"));
        let all = self::rules([("ALL_PROXY", "http://all:1"), ("http_proxy", "http://one:1")]);
        assert_eq!(proxy(&all, "https://a.com").as_deref(), Some("http://all:1/"));
        assert_eq!(proxy(&all, "http://a.com").as_deref(), Some("http://one:1/"));
        assert!(self::rules([("NO_PROXY", "*")]).is_empty());
    }

    #[test]
    fn exceptions_name_hosts_suffixes_addresses_networks_and_this_machine() {
        let without = |list: &str, server: &str| {
            proxy(&rules([("ALL_PROXY", "http://p:1"), ("NO_PROXY", list)]), server).is_none()
        };
        for (list, server) in [
            ("*", "http://a.com"),
            ("a.com", "http://A.com"),
            ("a.com", "http://b.a.com"),
            ("x, .a.com", "https://b.a.com"),
            ("*.a.com", "https://b.a.com"),
            ("a.com:8080", "http://a.com:8080"),
            ("a.com:443", "https://a.com"),
            ("127.0.0.1", "http://127.0.0.1:99"),
            ("localhost", "http://127.0.0.1:99"),
            ("localhost", "http://localhost"),
            ("localhost", "http://[::1]:8"),
            ("10.0.0.0/8", "http://10.9.8.7"),
            ("0.0.0.0/0", "http://1.2.3.4"),
            ("[::1]:8", "http://[::1]:8"),
            ("fd00::/8", "http://[fd12::1]"),
            ("b c", "http://c"),
        ] {
            assert!(without(list, server), "{list} {server}");
        }
        for (list, server) in [
            ("a.com", "http://ba.com"),
            ("a.com:1", "http://a.com"),
            ("127.0.0.1", "http://127.0.0.2"),
            ("10.0.0.0/8", "http://11.0.0.1"),
            ("", "http://a.com"),
            (".", "http://a.com"),
            ("localhost", "http://a.com"),
        ] {
            assert!(!without(list, server), "{list} {server}");
        }
    }

    #[test]
    fn a_value_that_is_no_url_is_told_without_repeating_it() {
        for value in ["ftp://user:secret@x", "http://", "::"] {
            let error = ProxyRules::from_environment(&Environment::from([("HTTPS_PROXY", value)])).unwrap_err();
            assert!(error.contains("HTTPS_PROXY") && !error.contains("secret"), "{error}");
        }
    }
}
