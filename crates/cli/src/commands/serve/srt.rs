//! SRT of `serve`: where it listens, whether it is encrypted, and what is said where libsrt is missing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Args;
use namecast_net::supervision::ListenerState;

use super::super::forwarder::Socket;
use super::not_had;
use crate::push::Gate;
use crate::push::srt::{PASSPHRASE, SrtError, SrtListener};
use crate::telemetry::Telemetry;

/// Where SRT is taken unless another address is given.
const DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9_000);

/// Options of SRT.
#[derive(Clone, Debug, Args)]
pub struct Srt {
    /// Accept SRT here, for srt://ADDRESS:PORT?streamid=NAME; 'off' for not at all. Needs libsrt; without this option and without libsrt,
    /// there is no SRT [default: 127.0.0.1:9000].
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub srt: Option<Socket>,
    /// Encrypt SRT by the passphrase on the first line of this file, 10 to 79 characters: pushers need the same one.
    #[arg(long, value_name = "FILE")]
    pub srt_passphrase_file: Option<PathBuf>,
}

impl Srt {
    /// Where to listen, if at all.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self.srt {
            Some(Socket(address)) => address,
            None => Some(DEFAULT),
        }
    }

    fn passphrase(&self) -> anyhow::Result<Option<String>> {
        let Some(path) = &self.srt_passphrase_file else {
            return Ok(None);
        };
        let passphrase = first_line(path)?;
        ensure!(
            PASSPHRASE.contains(&passphrase.len()),
            "the passphrase in {} has {} characters: SRT takes {} to {}",
            path.display(),
            passphrase.len(),
            PASSPHRASE.start(),
            PASSPHRASE.end()
        );
        Ok(Some(passphrase))
    }

    /// Listens, if that is wanted. A sentence says why not where it was not asked for.
    ///
    /// # Errors
    /// If SRT was requested and is unavailable.
    pub(super) async fn listen(
        &self,
        gate: &Gate,
        telemetry: &Telemetry,
    ) -> anyhow::Result<Result<Option<SrtListener>, String>> {
        let passphrase = self.passphrase()?;
        let Some(address) = self.address() else {
            return Ok(Ok(None));
        };
        let is_asked_for = self.srt.is_some() || passphrase.is_some();
        let state = ListenerState::new("srt");
        let bound = SrtListener::bind(address, passphrase, gate.clone(), state.clone()).await;
        match bound {
            Ok(listener) => {
                telemetry.observe_listener(&state);
                Ok(Ok(Some(listener)))
            }
            Err(SrtError::NoLibrary(why)) if is_asked_for => bail!(why),
            Err(SrtError::NoLibrary(why)) => Ok(Err(why)),
            Err(error @ SrtError::Bind(_)) => Err(error).with_context(|| not_had("srt", address)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads the first line of a file, without spaces at its ends.
fn first_line(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}
