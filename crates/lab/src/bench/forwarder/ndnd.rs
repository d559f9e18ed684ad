//! ndnd's forwarder, to compare with.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use namecast_units::Duration;
use tempfile::TempDir;

use super::super::measure::namecast;
use super::measured::Measured;

/// Time that starting may take.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// Starts it with one forwarding thread and a cache like ours in packets, and routes everything to `producer`.
pub(super) fn start(
    executable: &Path,
    producer: SocketAddr,
) -> anyhow::Result<(Measured, SocketAddr, TempDir)> {
    let directory = tempfile::tempdir()?;
    let socket = directory.path().join("ndnd.sock");
    let file = directory.path().join("ndnd.yml");
    // It does not say which port it was given, so it is told one that was free just now.
    let entry = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let text = format!(
        "core: {{ log_level: WARN }}\n\
         faces:\n\
         \x20 udp: {{ enabled_unicast: true, enabled_multicast: false, port_unicast: {} }}\n\
         \x20 tcp: {{ enabled: false }}\n\
         \x20 unix: {{ enabled: true, socket_path: {} }}\n\
         \x20 websocket: {{ enabled: false }}\n\
         fw: {{ threads: 1 }}\n\
         tables: {{ content_store: {{ capacity: 65535 }} }}\n",
        entry.port(),
        socket.display()
    );
    std::fs::write(&file, text)?;
    let mut command = Command::new(executable);
    command.args(["fw", "run"]).arg(&file);
    let program = Measured::start(command, 0..1)?;
    let started = Instant::now();
    while !socket.exists() {
        anyhow::ensure!(started.elapsed() < START_TIMEOUT, "ndnd does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let peer = format!("udp4://{producer}");
    manage(&socket, &["face", "create", &peer])?;
    manage(&socket, &["route", "add", "/", &peer])?;
    Ok((program, entry, directory))
}

/// Commands the forwarder at `socket`.
fn manage(socket: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let output = namecast()?
        .args(arguments)
        .arg("--connect")
        .arg(format!("unix://{}", socket.display()))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{arguments:?}: {said}");
    Ok(())
}
