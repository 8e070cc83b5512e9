//! Which servers are near.

use std::net::{IpAddr, Ipv6Addr};

/// Whether a host is on this machine or its network: `localhost`, names under `.local` and `.internal` and without a
/// dot, loopback, private and link-local addresses.
pub(crate) fn is_local_host(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback() || address.is_private() || address.is_link_local() || address.is_unspecified()
        }
        Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => is_local_host(&address.to_string()),
            None => address == Ipv6Addr::LOCALHOST || address.is_unspecified() || is_near(address),
        },
        Err(_) => {
            let host = host.to_ascii_lowercase();
            !host.is_empty() && !host.contains('.')
                || [".localhost", ".local", ".internal", ".lan", ".home.arpa"].iter().any(|end| host.ends_with(end))
        }
    }
}

/// Unique local (fc00::/7) and link-local (fe80::/10) addresses.
fn is_near(address: Ipv6Addr) -> bool {
    address.is_unique_local() || address.is_unicast_link_local()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_its_network_are_local() {
        for host in ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]", "::1", "10.1.2.3", "192.168.0.9"] {
            assert!(is_local_host(host), "{host}");
        }
        for host in ["box", "gpu.local", "host.docker.internal", "0.0.0.0", "[fd00::1]", "[::ffff:127.0.0.1]"] {
            assert!(is_local_host(host), "{host}");
        }
        for host in ["api.openai.com", "8.8.8.8", "127.0.0.1.example.com", "local.example", "[2001:db8::1]", ""] {
            assert!(!is_local_host(host), "{host}");
        }
    }
}
