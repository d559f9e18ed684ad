//! A changed configuration file, applied to the forwarder that runs.
//!
//! | changes at once                                  | needs a restart                                         |
//! |--------------------------------------------------|---------------------------------------------------------|
//! | `[[face]]` without an interface, and `[[route]]` to one | all other sections, and faces with an interface  |
//! | `[[strategy]]`                                   |                                                         |
//! | `deny`                                           |                                                         |
//! | `admit` and `serve` of `[content-store]`         | the rest of `[content-store]`                           |
//! | `tls-cert` and `tls-key` of `[web]`              | the rest of `[web]`                                     |

use std::path::PathBuf;

use anyhow::Context;
use namecast_forward::StrategyKind;
use namecast_net::management::{Client, ControlParameters};
use namecast_net::{FaceId, FaceUri, Node};
use namecast_packet::Name;
use toml::Table;

use super::{Settings, StaticRoute, text_of};
use crate::manage::arguments::Origin;

/// Tables whose items are compared one by one.
const LISTS: [&str; 3] = ["face", "route", "strategy"];
/// Setting outside of tables that changes at once.
const DENY: &str = "deny";
/// Settings of tables that change at once.
const AT_ONCE: [(&str, &str); 4] = [
    ("content-store", "admit"),
    ("content-store", "serve"),
    ("web", "tls-cert"),
    ("web", "tls-key"),
];
/// The strategy where none is chosen.
const DEFAULT_STRATEGY: StrategyKind = StrategyKind::BestRoute;

/// The file that a forwarder runs by.
#[derive(Debug)]
pub struct Running {
    path: PathBuf,
    text: String,
    settings: Settings,
}

impl Running {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// All that is wrong with it, and where.
    pub fn read(path: PathBuf) -> anyhow::Result<Self> {
        let text = text_of(&path)?;
        let settings = Settings::parse(&path, &text)?;
        Ok(Self {
            path,
            text,
            settings,
        })
    }

    /// What it says.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Reads the file again, and changes `node` to what it says now. Returns what was done, and what takes a restart.
    ///
    /// # Errors
    /// All that is wrong with the file, of which nothing is applied then; or what the node refused.
    pub async fn reload(&mut self, node: &Node) -> anyhow::Result<Vec<String>> {
        let new = Self::read(self.path.clone())?;
        let mut done = Vec::new();
        let mut change = Change {
            node,
            client: Client::of_node(node).await?,
            done: &mut done,
        };
        let applied = change.apply(&self.settings, &new.settings).await;
        let restart = only_at_start(&self.text, &new.text);
        // What was not applied in spite of this is not tried for ever: the next reload compares with the file.
        *self = new;
        applied?;
        if !restart.is_empty() {
            done.push(format!("restart the forwarder for {}", restart.join(", ")));
        }
        Ok(done)
    }
}

/// One change of a node.
struct Change<'a> {
    node: &'a Node,
    client: Client,
    done: &'a mut Vec<String>,
}

impl Change<'_> {
    async fn apply(&mut self, old: &Settings, new: &Settings) -> anyhow::Result<()> {
        if old.cache != new.cache {
            new.configure_cache(&mut self.client).await?;
            self.done.push("content store changed".to_owned());
        }
        if old.deny != new.deny {
            self.node.deny(new.deny.clone()).await?;
            self.done.push("deny changed".to_owned());
        }
        self.faces(old, new).await?;
        self.routes(old, new).await?;
        self.strategies(&old.strategies, &new.strategies).await
    }

    /// Ends faces that the file has no more, and makes those that it did not have, each with its routes.
    async fn faces(&mut self, old: &Settings, new: &Settings) -> anyhow::Result<()> {
        for gone in old.faces.iter().filter(|face| !new.faces.contains(face)) {
            if gone.interface.is_none()
                && let Some(number) = self.find(&gone.uri).await?
            {
                self.node.remove_face(number).await?;
                self.done.push(format!("face to {} removed", gone.uri));
            }
        }
        for face in new.faces.iter().filter(|face| !old.faces.contains(face)) {
            if face.interface.is_none() {
                let made = self.node.connect_with(face.uri.clone(), &face.options);
                let made = made.await;
                let number = made.with_context(|| format!("the face to {}", face.uri))?;
                new.route(&mut self.client, number, &face.uri, None).await?;
                self.done.push(format!("face to {} made", face.uri));
            }
        }
        Ok(())
    }

    /// Changes routes to faces that stay.
    async fn routes(&mut self, old: &Settings, new: &Settings) -> anyhow::Result<()> {
        let stays = |route: &&StaticRoute| {
            let is_its = |face: &&super::StaticFace| face.uri == route.face;
            let face = new.faces.iter().find(is_its);
            face.is_some_and(|face| face.interface.is_none() && old.faces.contains(face))
        };
        let gone = old
            .routes
            .iter()
            .filter(|route| !new.routes.contains(route));
        let come = new
            .routes
            .iter()
            .filter(|route| !old.routes.contains(route));
        // A route whose cost changed is registered over: taken away first, it would be missed.
        let is_replaced = |route: &StaticRoute| {
            let is_same =
                |other: &StaticRoute| (&other.prefix, &other.face) == (&route.prefix, &route.face);
            new.routes.iter().any(is_same)
        };
        for route in come.filter(stays) {
            self.change_route(route, "rib/register").await?;
            self.done
                .push(format!("{} goes to {}", route.prefix, route.face));
        }
        for route in gone.filter(stays).filter(|route| !is_replaced(route)) {
            self.change_route(route, "rib/unregister").await?;
            let text = format!("{} does not go to {} any more", route.prefix, route.face);
            self.done.push(text);
        }
        Ok(())
    }

    async fn change_route(&mut self, route: &StaticRoute, verb: &str) -> anyhow::Result<()> {
        let is_added = verb == "rib/register";
        let face = self.find(&route.face).await?;
        let face = face.with_context(|| format!("the face to {} is gone", route.face))?;
        let parameters = ControlParameters {
            name: Some(route.prefix.clone()),
            face: Some(face.number()),
            origin: Some(Origin::STATIC.0),
            cost: is_added.then_some(route.cost),
            flags: is_added.then_some(route.flags),
            ..ControlParameters::default()
        };
        let changed = self.client.command(verb, &parameters).await;
        changed.with_context(|| format!("the route of {} to {}", route.prefix, route.face))?;
        Ok(())
    }

    async fn strategies(
        &mut self,
        old: &[(Name, StrategyKind)],
        new: &[(Name, StrategyKind)],
    ) -> anyhow::Result<()> {
        let is_chosen = |prefix: &Name| new.iter().any(|(chosen, _)| chosen == prefix);
        for (prefix, _) in old.iter().filter(|(prefix, _)| !is_chosen(prefix)) {
            // There is always one for all names.
            let strategy = prefix.is_empty().then(|| DEFAULT_STRATEGY.name());
            self.choose(prefix, strategy).await?;
        }
        for (prefix, strategy) in new.iter().filter(|choice| !old.contains(choice)) {
            self.choose(prefix, Some(strategy.name())).await?;
        }
        Ok(())
    }

    async fn choose(&mut self, prefix: &Name, strategy: Option<Name>) -> anyhow::Result<()> {
        let verb = match strategy {
            Some(_) => "strategy-choice/set",
            None => "strategy-choice/unset",
        };
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            strategy,
            ..ControlParameters::default()
        };
        let chosen = self.client.command(verb, &parameters).await;
        chosen.with_context(|| format!("the strategy of {prefix}"))?;
        self.done.push(format!("strategy of {prefix} changed"));
        Ok(())
    }

    async fn find(&self, uri: &FaceUri) -> anyhow::Result<Option<FaceId>> {
        let uri = uri.to_string();
        let status = self.node.status().await?;
        let face = status.faces.iter().find(|face| face.remote == uri);
        Ok(face.map(|face| FaceId::from_number(face.id)))
    }
}

/// The parts of the file that changed and that are only looked at when a forwarder starts.
fn only_at_start(old: &str, new: &str) -> Vec<String> {
    let [old, new] = [old, new].map(|text| text.parse::<Table>().unwrap_or_default());
    let mut names: Vec<_> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    let part = |file: &Table, name: &str| {
        let mut part = file.get(name).cloned();
        if let Some(table) = part.as_mut().and_then(toml::Value::as_table_mut) {
            table.retain(|setting, _| !AT_ONCE.contains(&(name, setting)));
        }
        // With and without its heading, an empty table is the same.
        part.filter(|part| part.as_table().is_none_or(|table| !table.is_empty()))
    };
    names.retain(|name| *name != DENY);
    let has_changed = |name: &&String| match LISTS.contains(&name.as_str()) {
        true => with_interface(&old, name) != with_interface(&new, name),
        false => part(&old, name) != part(&new, name),
    };
    let changed = names.into_iter().filter(has_changed);
    changed.map(|name| format!("[{name}]")).collect()
}

/// The items of a list that need an interface.
fn with_interface(file: &Table, name: &str) -> Vec<toml::Value> {
    let items = file.get(name).and_then(toml::Value::as_array);
    let items = items.into_iter().flatten();
    let items = items.filter(|item| item.get("interface").is_some());
    items.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_restart_is_named() {
        let old = "threads = 1\ndeny = [\"::1\"]\n[web]\ntls-cert = \"a\"\n[content-store]\nserve = true\n";
        let same =
            "threads = 1\n[content-store]\nserve = false\n[[face]]\nuri = \"udp4://127.0.0.1:1\"";
        assert_eq!(only_at_start(old, same), Vec::<String>::new());
        let other = "threads = 2\n[web]\nhost-names = [\"x\"]\n[content-store]\ncapacity = \"1 MiB\"\n\
                     [[face]]\nuri = \"ether://[02:00:00:00:00:01]\"\ninterface = \"eth0\"";
        assert_eq!(
            only_at_start(old, other),
            ["[content-store]", "[face]", "[threads]", "[web]"]
        );
    }

    const FILE: &str = r#"
listen = { udp = [], tcp = [], unix = [] }
[[face]]
uri = "udp4://127.0.0.1:9"
[[face]]
uri = "udp4://127.0.0.1:10"
[[route]]
prefix = "/a"
face = "udp4://127.0.0.1:9"
[[route]]
prefix = "/b"
face = "udp4://127.0.0.1:9"
[[strategy]]
prefix = "/s"
name = "multicast"
"#;
    const CHANGED: &str = r#"
deny = ["192.0.2.0/24"]
listen = { udp = [], tcp = [], unix = [] }
content-store = { serve = false }
[[face]]
uri = "udp4://127.0.0.1:9"
[[face]]
uri = "udp4://127.0.0.1:11"
[[route]]
prefix = "/a"
face = "udp4://127.0.0.1:9"
cost = 7
[[route]]
prefix = "/c"
face = "udp4://127.0.0.1:11"
[[strategy]]
prefix = "/"
name = "asf"
"#;

    #[tokio::test]
    async fn a_running_forwarder_becomes_what_its_file_says() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("namecast.toml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write(FILE);
        let mut running = Running::read(path.clone()).unwrap();
        let (node, _listeners) = running.settings().start().await.unwrap();
        let is = async || {
            let status = node.status().await.unwrap();
            let faces = status.faces.iter().map(|face| face.remote.clone());
            let faces = faces.filter(|remote| remote.starts_with("udp4"));
            let routes = status.routes.iter();
            let routes = routes.map(|it| format!("{} {}", it.prefix, it.cost));
            let routes = routes.filter(|route| !route.starts_with("/local"));
            let strategies = status.strategies.iter();
            let strategies = strategies.map(|it| it.prefix.to_string());
            let mut all: Vec<_> = faces.chain(routes).chain(strategies).collect();
            all.sort();
            all
        };
        let before = [
            "/",
            "/a 0",
            "/b 0",
            "/s",
            "udp4://127.0.0.1:10",
            "udp4://127.0.0.1:9",
        ];
        assert_eq!(is().await, before);
        // A wrong file changes nothing.
        write(&format!("{CHANGED}\nthreads = \"many\""));
        assert!(running.reload(&node).await.is_err());
        assert_eq!(is().await, before);
        write(CHANGED);
        let done = running.reload(&node).await.unwrap();
        assert_eq!(done.len(), 8, "{done:?}");
        let deny = &node.config().deny;
        assert!(deny.contains("192.0.2.7".parse().unwrap()));
        let after = [
            "/",
            "/a 7",
            "/c 0",
            "udp4://127.0.0.1:11",
            "udp4://127.0.0.1:9",
        ];
        assert_eq!(is().await, after);
        assert_eq!(running.reload(&node).await.unwrap(), Vec::<String>::new());
        node.shutdown().await;
    }
}
