//! `namecast cs`.

use anyhow::Context;
use namecast_command::report::{columns, print, print_line};
use namecast_net::management::{ADMIT, ControlParameters, CsInfo, SERVE};
use namecast_packet::Name;
use namecast_units::ByteSize;
use serde_json::json;

use super::arguments::{CsWhat, Switch, Target};
use super::connection::Forwarder;
use super::print_json;

/// Does what is asked for.
pub(super) async fn run(
    forwarder: &mut Forwarder,
    what: CsWhat,
    target: &Target,
) -> anyhow::Result<()> {
    match what {
        CsWhat::Info => {}
        CsWhat::Config {
            capacity,
            admit,
            serve,
        } => {
            let parameters = parameters(capacity, admit, serve);
            forwarder.command("cs/config", &parameters).await?;
        }
        CsWhat::Erase { prefix, count } => {
            let erased = erase(forwarder, &prefix, count).await?;
            match target.json {
                true => print_json(&json!({ "prefix": prefix.to_string(), "erased": erased }))?,
                false => print_line(format_args!("{erased} packets below {prefix} are gone"))?,
            }
            return Ok(());
        }
    }
    let info: Vec<CsInfo> = forwarder.list("cs/info").await?;
    let info = info
        .first()
        .context("the forwarder tells nothing of a content store")?;
    match target.json {
        true => print_json(info)?,
        false => print(describe(info))?,
    }
    Ok(())
}

/// Erases in as many turns as the forwarder wants. Gives how many packets went.
async fn erase(
    forwarder: &mut Forwarder,
    prefix: &Name,
    count: Option<u64>,
) -> anyhow::Result<u64> {
    let mut erased = 0;
    loop {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            count: count.map(|count| count - erased),
            ..ControlParameters::default()
        };
        let done = forwarder.command("cs/erase", &parameters).await?;
        let now = done.count.unwrap_or_default();
        erased += now;
        // The capacity of one turn is told only if there is more to do.
        let is_complete = done.capacity.is_none() || now == 0;
        if is_complete || count.is_some_and(|count| erased >= count) {
            return Ok(erased);
        }
    }
}

fn parameters(
    capacity: Option<u64>,
    admit: Option<Switch>,
    serve: Option<Switch>,
) -> ControlParameters {
    let (mut flags, mut mask) = (0, 0);
    for (flag, switch) in [(ADMIT, admit), (SERVE, serve)] {
        if let Some(switch) = switch {
            mask |= flag;
            flags |= if switch == Switch::On { flag } else { 0 };
        }
    }
    ControlParameters {
        capacity,
        flags: (mask != 0).then_some(flags),
        mask: (mask != 0).then_some(mask),
        ..ControlParameters::default()
    }
}

/// The content store in words.
pub(super) fn describe(info: &CsInfo) -> String {
    let switch = |flag| if info.flags & flag != 0 { "on" } else { "off" };
    let asked = info.hits + info.misses;
    let share = match asked {
        0 => String::new(),
        asked => format!(" ({:.1} %)", info.hits as f64 * 100.0 / asked as f64),
    };
    let size = |octets: Option<u64>| octets.map(ByteSize::bytes);
    let memory = size(info.memory).zip(size(info.memory_capacity));
    let packets = match memory {
        Some(_) => info.entries.to_string(),
        None => format!("{} of at most {}", info.entries, info.capacity),
    };
    let memory = memory.map(|(memory, capacity)| format!("{memory} of at most {capacity}"));
    let rows = [
        ("packets", packets),
        ("memory", memory.unwrap_or_else(|| "not told".to_owned())),
        ("admit", switch(ADMIT).to_owned()),
        ("serve", switch(SERVE).to_owned()),
        (
            "answered",
            format!("{} of {asked} Interests{share}", info.hits),
        ),
    ];
    columns(&rows.map(|(what, text)| [what.to_owned(), text]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_told_in_words() {
        let info = CsInfo {
            capacity: 100,
            flags: ADMIT,
            entries: 7,
            hits: 1,
            misses: 3,
            ..CsInfo::default()
        };
        let expected = "\
packets   7 of at most 100
memory    not told
admit     on
serve     off
answered  1 of 4 Interests (25.0 %)
";
        assert_eq!(describe(&info), expected);
        let ours = CsInfo {
            memory: Some(700),
            memory_capacity: Some(64 << 20),
            ..info
        };
        let expected = "packets   7\nmemory    700 B of at most 64.0 MiB\n";
        assert!(describe(&ours).starts_with(expected));
        assert!(describe(&CsInfo::default()).contains("0 of 0 Interests\n"));
    }
}
