//! The command `namecast impair`.

use std::process::Command;

fn namecast(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_namecast"))
        .args(arguments)
        .output()
        .expect("cargo has built it");
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (
        output.status.success(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_bad_file_is_refused_with_its_line() {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path().join("links.toml");
    std::fs::write(&path, "[forward]\nrate = \"5M\"\nspeed = 3\n").expect("there is room");
    let path = path.to_str().expect("it is text");
    let (succeeds, _, errors) = namecast(&["impair", "--listen", "127.0.0.1:0", "--config", path]);
    assert!(!succeeds);
    assert!(
        errors.contains("links.toml:3: unknown field `speed`, expected"),
        "{errors}"
    );
}

/// The last line of the statistics is marked, and says what the run was.
#[test]
fn the_command_tells_what_happened() {
    let directory = tempfile::tempdir().expect("there is room");
    let stats = directory.path().join("stats.json");
    let stats = stats.to_str().expect("it is text");
    let (succeeds, output, errors) = namecast(&[
        "impair",
        "--listen",
        "127.0.0.1:0",
        "--rate",
        "1M",
        "--duration",
        "10ms",
        "--stats",
        stats,
        "--json",
        "--metrics",
        "127.0.0.1:0",
    ]);
    assert!(succeeds, "{errors}");
    let mut lines = output
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let observed = lines.next().expect("a line");
    let url = observed["metrics"].as_str();
    assert!(url.is_some_and(|url| url.starts_with("http://127.0.0.1:") && !url.contains(":0/")));
    let first = lines.next().expect("a line");
    assert!(
        first["listen"]
            .as_str()
            .is_some_and(|listen| listen.starts_with("127.0.0.1:"))
    );
    let lines = std::fs::read_to_string(stats).expect("it was written");
    let last: serde_json::Value =
        serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["final"], true);
    assert_eq!(last["disturbed"], false);
    assert_eq!(last["forward"]["received"], 0);
    assert!(last["error_ms"]["p99"].is_number());
}
