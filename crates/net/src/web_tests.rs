use super::*;
use axum::http::HeaderValue;

const HERE: &str = "127.0.0.1";
const AWAY: &str = "198.51.100.7";
const PROXY: &str = "10.0.0.2";
const PAGES: &[PageSource] = &[(Scheme::Http, 8080), (Scheme::Https, 8443)];

/// A node that is called cam.example, lets pages of watch.example in, and has a proxy.
fn config() -> WebConfig {
    WebConfig {
        host_names: vec!["cam.example".to_owned()],
        allow_origins: vec!["https://watch.example".to_owned()],
        trusted_proxies: vec![PROXY.parse().unwrap()],
        ..WebConfig::default()
    }
}

/// As [`config`], but for every page.
fn public() -> WebConfig {
    WebConfig {
        allow_origins: vec![ANY_ORIGIN.to_owned()],
        ..config()
    }
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let line = |&(name, value): &(&'static str, &str)| {
        let name = header::HeaderName::from_static(name);
        (name, HeaderValue::from_str(value).unwrap())
    };
    lines.iter().map(line).collect()
}

fn request<'a>(peer: &str, authority: &'a str, headers: &'a HeaderMap) -> WebRequest<'a> {
    WebRequest {
        peer: Some(peer.parse().unwrap()),
        scheme: Scheme::Http,
        authority: Some(authority),
        headers,
        purpose: Purpose::Face,
    }
}

/// Who comes from `peer` to `authority` for a face, over plain HTTP; the status if he is refused.
fn face(
    config: &WebConfig,
    peer: &str,
    authority: &str,
    lines: &[(&'static str, &str)],
) -> Result<Visitor, u16> {
    let headers = headers(lines);
    let judged = config.judge(PAGES, &request(peer, authority, &headers));
    judged.map_err(|refusal| refusal.status().as_u16())
}

fn page(origin: &str) -> [(&'static str, &str); 1] {
    [("origin", origin)]
}

#[test]
fn pages_of_this_node_on_this_machine_are_local() {
    for (peer, host) in [
        (HERE, "127.0.0.1:8080"),
        ("::1", "[::1]:8080"),
        ("::ffff:127.0.0.1", "localhost:8080"),
        (HERE, "LOCALHOST:8080"),
        (HERE, "cam.example:8080"),
        // A development server or a tunnel that passes Host and Origin on.
        (HERE, "127.0.0.1:5173"),
        (HERE, "localhost"),
    ] {
        let origin = format!("http://{}", host.to_lowercase());
        let visitor = face(&config(), peer, host, &page(&origin));
        assert_eq!(visitor, Ok(Visitor::Local), "{host}");
    }
}

#[test]
fn names_that_were_rebound_to_this_machine_are_refused_whatever_else_they_say() {
    for host in [
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example:8080",
        "cam.example.evil.example",
        "localhost.:8080",
    ] {
        let origin = format!("http://{host}");
        for config in [config(), public()] {
            assert_eq!(
                face(&config, HERE, host, &page(&origin)),
                Err(421),
                "{host}"
            );
            assert_eq!(face(&config, HERE, host, &[]), Err(421), "{host}");
        }
    }
    for host in [
        "",
        "a b",
        "[::1",
        "127.0.0.1:x",
        "[127.0.0.1]",
        "user@localhost",
    ] {
        assert_eq!(face(&config(), HERE, host, &[]), Err(400), "{host}");
    }
}

#[test]
fn pages_of_other_sites_are_refused_unless_they_are_allowed() {
    for origin in [
        "https://evil.example",
        "http://127.0.0.1.evil.example",
        "null",
        "",
        "file://",
        // Other servers on this machine, and this one by another name or scheme.
        "http://127.0.0.1:3000",
        "http://127.0.0.1",
        "https://127.0.0.1:8080",
        "http://localhost.evil.example:8080",
        "https://watch.example.evil.example",
        "http://watch.example",
    ] {
        let visitor = face(&config(), HERE, "127.0.0.1:8080", &page(origin));
        assert_eq!(visitor, Err(403), "{origin}");
    }
    let allowed = page("https://watch.example");
    for (peer, host) in [(HERE, "127.0.0.1:8080"), (AWAY, "cam.example")] {
        assert_eq!(face(&config(), peer, host, &allowed), Ok(Visitor::Stranger));
    }
    let two = [
        ("origin", "http://127.0.0.1:8080"),
        ("origin", "https://evil.example"),
    ];
    assert_eq!(face(&config(), HERE, "127.0.0.1:8080", &two), Err(403));
}

/// `*` is for nodes on the internet: a page anywhere must not find the machines and networks of those who look at it.
#[test]
fn any_page_may_use_a_public_node_but_not_by_addresses_of_private_networks() {
    let anywhere = page("https://anywhere.example");
    for host in ["cam.example", "198.51.100.1:8080", "[2001:db8::1]:8080"] {
        let visitor = face(&public(), AWAY, host, &anywhere);
        assert_eq!(visitor, Ok(Visitor::Stranger), "{host}");
    }
    for host in [
        "127.0.0.1:8080",
        "localhost:8080",
        "0.0.0.0:8080",
        "[::]:8080",
        "[::1]:8080",
        "[::ffff:10.0.0.1]:8080",
        "10.0.0.1:8080",
        "172.16.0.1:8080",
        "192.168.1.5:8443",
        "169.254.1.1",
        "100.64.0.1",
        "[fd00::1]:8080",
        "[fe80::1]:8080",
    ] {
        assert_eq!(face(&public(), HERE, host, &anywhere), Err(403), "{host}");
    }
}

#[test]
fn whoever_names_no_origin_is_a_stranger() {
    let host = "127.0.0.1:8080";
    assert_eq!(face(&config(), HERE, host, &[]), Ok(Visitor::Stranger));
    assert_eq!(face(&config(), AWAY, host, &[]), Ok(Visitor::Stranger));
    let tested = WebConfig {
        websocket_local: true,
        ..config()
    };
    assert_eq!(face(&tested, HERE, host, &[]), Ok(Visitor::Local));
    assert_eq!(face(&tested, AWAY, host, &[]), Ok(Visitor::Stranger));
    let forwarded = [("x-forwarded-for", AWAY)];
    assert_eq!(face(&tested, HERE, host, &forwarded), Ok(Visitor::Stranger));
}

#[test]
fn whoever_comes_through_a_proxy_that_is_not_trusted_is_a_stranger() {
    for name in [
        "forwarded",
        "via",
        "x-real-ip",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-anything",
    ] {
        let lines = [("origin", "http://127.0.0.1:8080"), (name, "127.0.0.1")];
        let visitor = face(&config(), HERE, "127.0.0.1:8080", &lines);
        assert_eq!(visitor, Ok(Visitor::Stranger), "{name}");
    }
    // Nor may it say which host was meant.
    let lines = [("x-forwarded-host", "cam.example")];
    assert_eq!(face(&config(), HERE, "evil.example", &lines), Err(421));
}

#[test]
fn own_pages_behind_a_trusted_proxy_are_own_pages_but_never_local() {
    let lines = [
        ("origin", "https://cam.example"),
        ("x-forwarded-for", AWAY),
        ("x-forwarded-proto", "https"),
    ];
    let own = Ok(Visitor::OwnPage);
    assert_eq!(face(&config(), PROXY, "cam.example", &lines), own);
    let mut named = lines.to_vec();
    named.push(("x-forwarded-host", "cam.example"));
    assert_eq!(face(&config(), PROXY, "127.0.0.1:8080", &named), own);
    named.last_mut().unwrap().1 = "evil.example";
    assert_eq!(face(&config(), PROXY, "127.0.0.1:8080", &named), Err(421));
    // On this machine, and with headers or without.
    let here = WebConfig {
        trusted_proxies: vec![HERE.parse().unwrap()],
        ..config()
    };
    assert_eq!(face(&here, HERE, "cam.example", &lines), own);
    let plain = page("http://127.0.0.1:8080");
    assert_eq!(face(&here, HERE, "127.0.0.1:8080", &plain), own);
    let foreign = [
        ("origin", "https://evil.example"),
        ("x-forwarded-for", AWAY),
    ];
    assert_eq!(face(&here, HERE, "cam.example", &foreign), Err(403));
}

#[test]
fn own_pages_on_other_machines_are_not_local() {
    let host = "192.168.1.5:8443";
    let headers = headers(&page("https://192.168.1.5:8443"));
    let secure = WebRequest {
        scheme: Scheme::Https,
        ..request(AWAY, host, &headers)
    };
    assert_eq!(config().judge(PAGES, &secure), Ok(Visitor::OwnPage));
    let unknown = WebRequest {
        peer: None,
        ..secure
    };
    assert_eq!(config().judge(PAGES, &unknown), Ok(Visitor::OwnPage));
}

/// A WebTransport server has a port of its own, and is always reached over TLS.
#[test]
fn own_pages_may_use_the_webtransport_server_beside_theirs() {
    for (origin, authority, expected) in [
        ("http://127.0.0.1:8080", "127.0.0.1:9000", true),
        ("http://localhost:8080", "127.0.0.1:9000", true),
        ("https://192.168.1.5:8443", "192.168.1.5:9000", true),
        ("https://cam.example", "cam.example:9000", true),
        ("http://cam.example", "cam.example:9000", false),
        ("http://127.0.0.1:8443", "127.0.0.1:9000", false),
        ("http://127.0.0.1:3000", "127.0.0.1:9000", false),
        ("http://192.168.1.6:8080", "192.168.1.5:9000", false),
        ("https://evil.example", "127.0.0.1:9000", false),
    ] {
        let headers = headers(&page(origin));
        let session = WebRequest {
            scheme: Scheme::Https,
            ..request(AWAY, authority, &headers)
        };
        let is_own = config().judge(PAGES, &session) == Ok(Visitor::OwnPage);
        assert_eq!(is_own, expected, "{origin} at {authority}");
    }
}

/// Browsers name no origin where a page reads from its own server.
#[test]
fn reading_is_local_from_this_machine_only_and_not_for_pages_of_other_sites() {
    let read = |peer, lines: &[(&'static str, &str)]| {
        let headers = headers(lines);
        let request = WebRequest {
            purpose: Purpose::Read,
            ..request(peer, "127.0.0.1:8080", &headers)
        };
        config()
            .judge(PAGES, &request)
            .map_err(|refusal| refusal.status().as_u16())
    };
    assert_eq!(read(HERE, &[]), Ok(Visitor::Local));
    for (site, expected) in [
        ("same-origin", Visitor::Local),
        ("none", Visitor::Local),
        ("same-site", Visitor::Stranger),
        ("cross-site", Visitor::Stranger),
    ] {
        assert_eq!(read(HERE, &[("sec-fetch-site", site)]), Ok(expected));
    }
    assert_eq!(read(HERE, &page("https://evil.example")), Err(403));
    assert_eq!(read(HERE, &[("via", "1.1 proxy")]), Ok(Visitor::Stranger));
    assert_eq!(read(AWAY, &[]), Ok(Visitor::OwnPage));
}

#[test]
fn only_allowed_pages_read_across_origins() {
    let reader = |config: &WebConfig, host, origin| {
        let headers = headers(&page(origin));
        let reader = config.reader(&request(AWAY, host, &headers));
        reader.map(str::to_owned)
    };
    let watch = "https://watch.example";
    assert_eq!(
        reader(&config(), "cam.example", watch).as_deref(),
        Some(watch)
    );
    assert_eq!(reader(&config(), "evil.example", watch), None);
    assert_eq!(
        reader(&config(), "cam.example", "https://evil.example"),
        None
    );
    let anywhere = "https://anywhere.example";
    assert_eq!(
        reader(&public(), "cam.example", anywhere).as_deref(),
        Some(anywhere)
    );
    assert_eq!(reader(&public(), "127.0.0.1:8080", anywhere), None);
}

#[test]
fn a_request_says_once_whom_it_is_for() {
    let host = |lines: &[(&'static str, &str)], uri: &'static str| {
        authority(&axum::http::Uri::from_static(uri), &headers(lines)).map(str::to_owned)
    };
    let one = [("host", "localhost")];
    assert_eq!(host(&one, "/ws").as_deref(), Some("localhost"));
    assert_eq!(
        host(&one, "http://localhost/ws").as_deref(),
        Some("localhost")
    );
    assert_eq!(host(&one, "http://evil.example/ws"), None);
    assert_eq!(host(&[one[0], ("host", "evil.example")], "/ws"), None);
    assert_eq!(host(&[], "/ws"), None);
}

#[test]
fn a_refusal_says_which_setting_lets_in_who_was_refused() {
    let foreign = Refusal::ForeignOrigin("https://a.example".to_owned()).to_string();
    assert!(
        foreign.contains("add \"https://a.example\" to allow-origins"),
        "{foreign}"
    );
    let host = Refusal::ForeignHost("a.example".to_owned()).to_string();
    assert!(host.contains("host-names"), "{host}");
}

#[test]
fn origins_that_can_be_allowed_are_told_from_addresses_of_pages() {
    for origin in ["https://a.example", "http://[::1]:80", "null"] {
        assert!(is_origin(origin), "{origin}");
    }
    for text in [
        "a.example",
        "https://a.example/",
        "ftp://a.example",
        "*",
        "",
    ] {
        assert!(!is_origin(text), "{text}");
    }
}

/// Only a trusted proxy's words count, and only what it appended itself: a client may have written anything before that.
#[test]
fn a_request_comes_from_whom_a_trusted_proxy_names() {
    let config = WebConfig {
        trusted_proxies: ["192.0.2.1", "192.0.2.2"]
            .map(|it| it.parse().unwrap())
            .into(),
        ..WebConfig::default()
    };
    for (peer, forwarded, expected) in [
        ("198.51.100.7", &["203.0.113.9"][..], "198.51.100.7"),
        ("192.0.2.1", &["203.0.113.9"], "203.0.113.9"),
        ("192.0.2.1", &["127.0.0.1, 203.0.113.9"], "203.0.113.9"),
        (
            "192.0.2.1",
            &["127.0.0.1", "203.0.113.9, 192.0.2.2"],
            "203.0.113.9",
        ),
        ("::ffff:192.0.2.1", &["2001:db8::1"], "2001:db8::1"),
        ("192.0.2.1", &["203.0.113.9, unknown"], "192.0.2.1"),
        ("192.0.2.1", &[], "192.0.2.1"),
    ] {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        let peer = peer.parse().unwrap();
        let found = config.address(Some(peer), &headers);
        assert_eq!(
            found,
            Some(expected.parse().unwrap()),
            "{peer} {forwarded:?}"
        );
    }
}
