//! Dependencies between our crates go one way. Those of tests count: a test that needs a higher layer belongs there.

use super::Finding;
use super::workspace::Member;

/// Crates that know no clock, socket, thread or random source.
const CORE: [&str; 6] = [
    "namecast-units",
    "namecast-packet",
    "namecast-forward",
    "namecast-stream",
    "namecast-apps",
    "namecast-netem",
];

/// What a core crate cannot want: each of these brings a clock, sockets, threads or entropy.
const RUNTIMES: [&str; 10] = [
    "async-std",
    "axum",
    "getrandom",
    "mio",
    "quinn",
    "quinn-udp",
    "rayon",
    "socket2",
    "tokio",
    "wtransport",
];

/// The crates of ours that `name` may depend on; none if the crate is not known.
fn allowed(name: &str) -> Option<Vec<&'static str>> {
    let runtimes = ["namecast-sim", "namecast-net"];
    let libraries = [
        "namecast",
        "namecast-command",
        "namecast-media",
        "namecast-lab",
    ];
    Some(match name {
        "namecast-units" => vec![],
        "namecast-packet" | "namecast-netem" => vec!["namecast-units"],
        // These two never see each other: whatever they tell each other is on the wire, or it could not be deployed.
        "namecast-forward" | "namecast-stream" => vec!["namecast-packet", "namecast-units"],
        "namecast-apps" => vec!["namecast-stream", "namecast-packet", "namecast-units"],
        "namecast-srt" => vec!["namecast-units"],
        "namecast-archive" => vec!["namecast-stream", "namecast-packet", "namecast-units"],
        "namecast-sim" | "namecast-net" => CORE.to_vec(),
        "namecast-web" | "namecast-python" => [&CORE[..], &runtimes].concat(),
        "namecast" => [&CORE[..], &["namecast-net"]].concat(),
        "namecast-media" => vec![
            "namecast-apps",
            "namecast-stream",
            "namecast-packet",
            "namecast-units",
        ],
        "namecast-command" => [&CORE[..], &["namecast-net"]].concat(),
        "namecast-fuzz" => [
            &CORE[..],
            &["namecast-media", "namecast-net", "namecast-srt"],
        ]
        .concat(),
        "namecast-lab" => [&CORE[..], &runtimes, &libraries[..3]].concat(),
        "namecast-cli" => [
            &CORE[..],
            &runtimes,
            &libraries,
            &["namecast-archive", "namecast-srt"],
        ]
        .concat(),
        "xtask" | "namecast-bindgen" => vec![],
        _ => return None,
    })
}

/// Finds dependencies that point the wrong way.
pub(crate) fn check(members: &[Member]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in members {
        let Some(allowed) = allowed(&member.name) else {
            let message = "crate without a layer: give it one in xtask/src/tidy/layers.rs";
            findings.push(Finding::new(&member.name, "layers", message));
            continue;
        };
        for dependency in &member.dependencies {
            let ours = members.iter().any(|other| other.name == *dependency);
            if ours && !allowed.contains(&dependency.as_str()) {
                let message = format!("must not depend on {dependency}, not even in tests");
                findings.push(Finding::new(&member.name, "layers", message));
            }
            if CORE.contains(&member.name.as_str()) && RUNTIMES.contains(&dependency.as_str()) {
                let message = format!(
                    "core crates take time and randomness as arguments: {dependency} belongs in a runtime"
                );
                findings.push(Finding::new(&member.name, "layers", message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(list: &[(&str, &[&str])]) -> Vec<Member> {
        let member = |(name, dependencies): &(&str, &[&str])| Member {
            name: format!("namecast-{name}"),
            directory: format!("crates/{name}"),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        };
        list.iter().map(member).collect()
    }

    fn places(list: &[(&str, &[&str])]) -> Vec<String> {
        check(&members(list))
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.message))
            .collect()
    }

    #[test]
    fn the_design_passes() {
        let found = places(&[
            ("units", &["rand_xoshiro"]),
            ("packet", &["namecast-units", "bytes"]),
            ("forward", &["namecast-packet", "namecast-units"]),
            ("stream", &["namecast-packet", "namecast-units"]),
            (
                "apps",
                &["namecast-stream", "namecast-packet", "namecast-units"],
            ),
            ("net", &["namecast-forward", "namecast-apps", "tokio"]),
            ("cli", &["namecast-net", "namecast-forward", "tokio"]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn forward_and_stream_never_meet() {
        let base: (&str, &[&str]) = ("forward", &[]);
        let found = places(&[base, ("stream", &["namecast-forward"])]);
        assert_eq!(
            found,
            ["namecast-stream: must not depend on namecast-forward, not even in tests"]
        );
        let found = places(&[("forward", &["namecast-stream"]), ("stream", &[])]);
        assert_eq!(
            found,
            ["namecast-forward: must not depend on namecast-stream, not even in tests"]
        );
    }

    #[test]
    fn upward_and_sideways_are_found() {
        assert_eq!(
            places(&[("units", &["namecast-packet"]), ("packet", &[])]).len(),
            1
        );
        assert_eq!(
            places(&[("apps", &["namecast-forward"]), ("forward", &[])]).len(),
            1
        );
        assert_eq!(
            places(&[("net", &["namecast-sim"]), ("sim", &["namecast-net"])]).len(),
            2
        );
        assert_eq!(places(&[("net", &["namecast-cli"]), ("cli", &[])]).len(), 1);
        assert_eq!(places(&[("lab", &["namecast-cli"]), ("cli", &[])]).len(), 1);
        assert_eq!(
            places(&[("media", &["namecast-net"]), ("net", &[])]).len(),
            1
        );
    }

    #[test]
    fn a_runtime_in_the_core_is_found() {
        assert_eq!(places(&[("stream", &["tokio"])]).len(), 1);
        assert_eq!(places(&[("net", &["tokio"])]).len(), 0);
    }

    #[test]
    fn a_crate_that_nobody_placed_is_found() {
        assert_eq!(places(&[("extra", &[])]).len(), 1);
    }
}
