//! A forwarder's management for people: `namecast face`, `route`, `strategy`, `cs`, `list`, `status`, `top` and `trace`.
//!
//! Whatever these commands do goes over NFD's management protocol, so they serve NFD and ndnd as well.

pub mod arguments;
mod connection;
mod cs;
mod face;
mod list;
mod route;
mod status;
mod strategy;
mod top;
mod trace;

use namecast_command::report::print_line;
use serde::Serialize;

use arguments::Target;
use connection::Forwarder;

/// One of the commands, of which all have a forwarder to ask.
#[derive(Debug)]
pub(crate) enum Managed {
    Face(arguments::Face),
    Route(arguments::Route),
    Strategy(arguments::Strategy),
    Cs(arguments::Cs),
    List(arguments::List),
    Status(Target),
    Top(arguments::Top),
    Trace(arguments::Trace),
}

impl Managed {
    const fn target(&self) -> &Target {
        match self {
            Self::Face(face) => &face.target,
            Self::Route(route) => &route.target,
            Self::Strategy(strategy) => &strategy.target,
            Self::Cs(cs) => &cs.target,
            Self::List(list) => &list.target,
            Self::Status(target) => target,
            Self::Top(top) => &top.target,
            Self::Trace(trace) => &trace.target,
        }
    }
}

/// Does what was asked for.
///
/// # Errors
/// What went wrong, with what to do next.
pub(crate) async fn run(command: Managed) -> anyhow::Result<()> {
    let target = command.target().clone();
    let mut forwarder = Forwarder::connect(&target).await?;
    let done = match command {
        Managed::Face(face) => face::run(&mut forwarder, face.what, &target).await,
        Managed::Route(route) => route::run(&mut forwarder, route.what, &target).await,
        Managed::Strategy(strategy) => strategy::run(&mut forwarder, strategy.what, &target).await,
        Managed::Cs(cs) => cs::run(&mut forwarder, cs.what, &target).await,
        Managed::List(list) => list::run(&mut forwarder, &list).await,
        Managed::Status(_) => status::run(&mut forwarder, &target).await,
        Managed::Top(top) => top::run(&mut forwarder, &top).await,
        Managed::Trace(trace) => trace::run(&mut forwarder, &trace).await,
    };
    forwarder.close().await;
    done
}

fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_line(serde_json::to_string_pretty(value)?)?;
    Ok(())
}

/// The names of the flags that are set.
fn flag_names(flags: u64, names: &[(u64, &str)]) -> String {
    let set = names.iter().filter(|(flag, _)| flags & flag != 0);
    let set: Vec<_> = set.map(|(_, name)| *name).collect();
    match set[..] {
        [] => "–".to_owned(),
        _ => set.join(","),
    }
}
