//! `namecast status --port`: the state of a Namecast node on this machine, from its web server.

use anyhow::{Context, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use namecast_command::report::{print, print_line, printable};

/// Largest answer that is read, in octets.
const MAX_ANSWER: u64 = 16 << 20;

/// Prints the state once.
pub(super) async fn run(port: u16, as_json: bool) -> anyhow::Result<()> {
    let text = fetch(port).await?;
    let status: Value = serde_json::from_str(&text).context("this is not a Namecast node")?;
    if as_json {
        print_line(format_args!("{status:#}"))?;
    } else {
        print(describe(&status))?;
    }
    Ok(())
}

async fn fetch(port: u16) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.with_context(|| {
        format!("no node's web server on port {port}: start one with namecast demo or namecast forwarder, or name its --port")
    })?;
    let request = format!("GET /status.json HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut answer).await?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        bail!("what listens on port {port} does not speak HTTP: name the node's port with --port");
    };
    if !head.starts_with("HTTP/1.0 200") && !head.starts_with("HTTP/1.1 200") {
        let line = head.lines().next().unwrap_or_default();
        bail!(
            "what listens on port {port} has no /status.json ({line}): name the node's port with --port"
        );
    }
    Ok(body.to_owned())
}

fn describe(status: &Value) -> String {
    let node = &status["node"];
    let mut lines = vec![format!(
        "up {:.0} s, {} Interests and {} Data in, {} answered from the cache, {} aggregated",
        node["uptime_seconds"].as_f64().unwrap_or_default(),
        node["incoming"]["interests"],
        node["incoming"]["data"],
        node["content_store_hits"],
        node["aggregated"],
    )];
    for face in node["faces"].as_array().into_iter().flatten() {
        lines.push(format!(
            "face {:<4} {:<32} in {:>9} frames, out {:>9} frames",
            face["id"],
            face["remote"].as_str().unwrap_or_default(),
            face["incoming"]["frames"],
            face["outgoing"]["frames"],
        ));
    }
    for route in node["routes"].as_array().into_iter().flatten() {
        let prefix = route["prefix"].as_str().unwrap_or_default();
        lines.push(format!(
            "route {prefix} to face {}, cost {}",
            route["face"], route["cost"]
        ));
    }
    for source in node["sources"].as_array().into_iter().flatten() {
        let addresses = source["source"].as_str().unwrap_or_default();
        lines.push(format!("{} faces from {addresses}", source["faces"]));
    }
    for (reason, count) in node["drops"].as_object().into_iter().flatten() {
        lines.push(format!("dropped {count}: {reason}"));
    }
    if let Some(publisher) = status["publisher"].as_object() {
        lines.push(format!(
            "publisher: {} frames, {} Interests waiting, {} Data sent",
            publisher["frames_published"], publisher["interests_pending"], publisher["data_sent"]
        ));
    }
    let lines = lines.iter().map(|line| format!("{}\n", printable(line)));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_reads_well_and_a_strange_one_does_not_hurt() {
        let status = json!({
            "node": {
                "uptime_seconds": 12.3, "incoming": {"interests": 5, "data": 7}, "content_store_hits": 1, "aggregated": 2,
                "faces": [{"id": 3, "remote": "udp4://127.0.0.1:9", "incoming": {"frames": 5}, "outgoing": {"frames": 7}}],
                "routes": [{"prefix": "/demo", "face": 3, "cost": 0}], "drops": {"no_route": 4},
                "sources": [{"source": "192.0.2.0/24", "faces": 2}],
            },
        });
        let text = describe(&status);
        assert!(
            text.starts_with("up 12 s, 5 Interests and 7 Data in, 1 answered"),
            "{text}"
        );
        assert!(text.contains("udp4://127.0.0.1:9"), "{text}");
        assert!(
            text.contains(
                "route /demo to face 3, cost 0\n2 faces from 192.0.2.0/24\ndropped 4: no_route\n"
            ),
            "{text}"
        );
        assert!(describe(&json!([])).starts_with("up 0 s"));
    }
}
