//! Which forwarder a command uses: the one that is named, or the first on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use namecast_command::report::print_error;
use namecast_net::{DEFAULT_PORT, FaceId, FaceUri, LinkState, Node};

use crate::{network_namespace, places};

/// Where NFD and ndnd listen.
const OTHERS: [&str; 3] = [
    "/run/namecast/forwarder.sock",
    "/run/nfd/nfd.sock",
    "/run/nfd.sock",
];
/// Names a forwarder to all NDN applications.
const VARIABLE: &str = "NDN_CLIENT_TRANSPORT";
/// Where ndn-cxx looks for its configuration after the user's own directory. The first file that exists is the one.
const SYSTEM_FILES: [&str; 2] = ["/usr/local/etc/ndn/client.conf", "/etc/ndn/client.conf"];
/// Octets that such a file may have.
const MAX_FILE: u64 = 1 << 16;

/// Which forwarder to use.
#[derive(Clone, Debug, Args)]
pub struct Connect {
    /// The forwarder, ours or another: unix:///PATH, tcp://HOST:PORT, udp://HOST:PORT, ws:// or wss://. Without it: what
    /// NDN_CLIENT_TRANSPORT or client.conf says, else the Unix socket of a Namecast forwarder of this user, that of NFD or ndnd, or
    /// tcp4://127.0.0.1:6363, whichever is there.
    #[arg(long, alias = "forwarder", value_name = "FACE-URI", global = true)]
    pub connect: Option<FaceUri>,
}

/// A face to the forwarder that was chosen.
pub(crate) struct Chosen {
    pub(crate) uri: FaceUri,
    pub(crate) face: FaceId,
}

impl Connect {
    /// Connects to the forwarder that is meant, and waits until the connection is up: for commands that do one thing.
    ///
    /// # Errors
    /// If there is none, with what to do.
    pub(crate) async fn reach(&self, node: &Node) -> anyhow::Result<Chosen> {
        let Some(named) = self.named()? else {
            return match discover(node).await? {
                Ok(chosen) => Ok(chosen),
                Err(tried) => bail!(
                    "no forwarder on this machine (tried {}): start one with namecast forwarder, or name one with --connect",
                    tried.join(", ")
                ),
            };
        };
        let Named { uri, by } = named;
        match try_to_reach(node, &uri).await? {
            Ok(face) => {
                tracing::info!(%uri, "connected");
                Ok(Chosen { uri, face })
            }
            Err(reason) if reason.contains("Permission denied") => bail!(
                "cannot connect to the forwarder at {uri}{by}: {reason}; have its operator set unix-mode or unix-group of [listen], or name another with --connect"
            ),
            Err(reason) => bail!(
                "no forwarder at {uri}{by}: {reason}; start one with namecast forwarder, or name another with --connect"
            ),
        }
    }

    /// Connects to the forwarder that is meant, now or as soon as it is there: for commands that go on.
    ///
    /// # Errors
    /// If what names it is no address, or the node has stopped.
    pub(crate) async fn keep(&self, node: &Node) -> anyhow::Result<Chosen> {
        let uri = match self.named()? {
            Some(named) => named.uri,
            None => match discover(node).await? {
                Ok(chosen) => return Ok(chosen),
                // Whichever is started listens there.
                Err(_) => anywhere(),
            },
        };
        let face = node.connect(uri.clone()).await?;
        Ok(Chosen { uri, face })
    }

    /// The forwarder that somebody named, if anybody did.
    fn named(&self) -> anyhow::Result<Option<Named>> {
        let own = places::home().map(|home| home.join(".ndn/client.conf"));
        let files = own.into_iter().chain(SYSTEM_FILES.map(PathBuf::from));
        let variable =
            places::environment(VARIABLE).map(|value| value.to_string_lossy().into_owned());
        named(self.connect.as_ref(), variable.as_deref(), files)
    }
}

/// A forwarder that was named.
#[derive(Debug, PartialEq, Eq)]
struct Named {
    uri: FaceUri,
    /// What named it, for people; nothing for the command line.
    by: String,
}

/// The order: option, environment, file.
fn named(
    option: Option<&FaceUri>,
    variable: Option<&str>,
    files: impl IntoIterator<Item = PathBuf>,
) -> anyhow::Result<Option<Named>> {
    if let Some(uri) = option {
        return Ok(Some(Named {
            uri: uri.clone(),
            by: String::new(),
        }));
    }
    if let Some(text) = variable {
        let uri = text.parse().context(VARIABLE)?;
        return Ok(Some(Named {
            uri,
            by: format!(", which {VARIABLE} names"),
        }));
    }
    let Some(file) = files.into_iter().find(|file| file.is_file()) else {
        return Ok(None);
    };
    let shown = file.display();
    let text = read(&file).with_context(|| format!("cannot read {shown}"))?;
    let Some(transport) = transport(&text) else {
        return Ok(None);
    };
    let uri = transport.parse();
    let uri = uri.with_context(|| format!("{shown}: transport"))?;
    Ok(Some(Named {
        uri,
        by: format!(", which {shown} names"),
    }))
}

fn read(file: &Path) -> std::io::Result<String> {
    if file.metadata()?.len() > MAX_FILE {
        let text = format!("expected at most {MAX_FILE} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text));
    }
    std::fs::read_to_string(file)
}

/// What a `client.conf` says of the forwarder: `transport=unix:///run/nfd/nfd.sock`, among comments behind `;` or `#`.
fn transport(text: &str) -> Option<&str> {
    let settings = text.lines().filter_map(|line| line.split_once('='));
    let mut transports = settings.filter(|(key, _)| key.trim() == "transport");
    transports
        .next()
        .map(|(_, value)| value.trim().trim_matches('"'))
        .filter(|value| !value.is_empty())
}

/// Where every forwarder of this machine is expected to listen.
fn anywhere() -> FaceUri {
    FaceUri::Tcp(([127, 0, 0, 1], DEFAULT_PORT).into())
}

/// Finds a forwarder on this machine, first of this network namespace; else says what was tried.
async fn discover(node: &Node) -> anyhow::Result<Result<Chosen, Vec<String>>> {
    let of_network = places::forwarder_socket_of_network().filter(|path| path.exists());
    let own = of_network
        .into_iter()
        .chain(places::forwarder_socket().ok());
    let others = OTHERS.map(PathBuf::from);
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    for path in own.chain(others).filter(|_| cfg!(unix)) {
        match network_namespace::is_elsewhere(&path).await {
            true => elsewhere.push((FaceUri::Unix(path), true)),
            false => here.push((FaceUri::Unix(path), false)),
        }
    }
    here.push((anywhere(), false));
    let mut tried = Vec::new();
    for (uri, is_elsewhere) in here.into_iter().chain(elsewhere) {
        if let Ok(face) = try_to_reach(node, &uri).await? {
            tracing::info!(%uri, "found a forwarder");
            if is_elsewhere {
                print_error(format_args!(
                    "Using the forwarder at {uri}, which runs in another network namespace or container; --connect names another"
                ));
            }
            return Ok(Ok(Chosen { uri, face }));
        }
        tried.push(uri.to_string());
    }
    Ok(Err(tried))
}

/// Makes a face to `uri`, and waits until it is up; else tells why it is not, and leaves no face.
async fn try_to_reach(node: &Node, uri: &FaceUri) -> anyhow::Result<Result<FaceId, String>> {
    let face = node.connect(uri.clone()).await?;
    let mut state = node.link_state(face).await?;
    let settled = |state: &LinkState| !matches!(state, LinkState::Connecting);
    let settled = state.wait_for(settled).await?.clone();
    if let LinkState::Down(reason) = settled {
        node.remove_face(face).await?;
        return Ok(Err(reason));
    }
    Ok(Ok(face))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> FaceUri {
        text.parse().unwrap()
    }

    #[test]
    fn the_option_goes_before_the_environment_and_that_before_the_first_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let user = file("user.conf", "; transport=tcp://x\ntransport=unix:///user\n");
        let system = file("system.conf", "transport=unix:///system\n");
        let silent = file("silent.conf", "pib=pib-sqlite3\n");
        let absent = directory.path().join("absent.conf");
        let option = uri("tcp://option.example");
        let environment = Some("udp://environment.example");
        let chosen = |option, environment, files: [&PathBuf; 2]| {
            let named = named(option, environment, files.map(Clone::clone)).unwrap();
            named.map(|named| named.uri.to_string())
        };
        let both = [&user, &system];
        assert_eq!(
            chosen(Some(&option), environment, both).as_deref(),
            Some("tcp://option.example:6363")
        );
        assert_eq!(
            chosen(None, environment, both).as_deref(),
            Some("udp://environment.example:6363")
        );
        assert_eq!(chosen(None, None, both).as_deref(), Some("unix:///user"));
        assert_eq!(
            chosen(None, None, [&absent, &system]).as_deref(),
            Some("unix:///system")
        );
        // As with ndn-cxx, only the first file counts.
        assert_eq!(chosen(None, None, [&silent, &system]), None);
        assert_eq!(chosen(None, None, [&absent, &absent]), None);
        let wrong = file("wrong.conf", "transport = nonsense");
        let error = named(None, None, [wrong.clone()]).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("wrong.conf: transport") && text.contains("unix:///PATH"),
            "{text}"
        );
        let error = named(None, Some("nonsense"), [wrong]).unwrap_err();
        assert!(format!("{error:#}").starts_with(VARIABLE), "{error:#}");
    }

    #[test]
    fn client_files_are_read_as_ndn_cxx_writes_them() {
        let text =
            "; comment = x\n#transport=tcp://no\n transport = \"unix:///run/nfd/nfd.sock\" \npib=x";
        assert_eq!(transport(text), Some("unix:///run/nfd/nfd.sock"));
        assert_eq!(transport("transport=\n"), None);
    }
}
