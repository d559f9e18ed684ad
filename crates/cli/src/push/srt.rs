//! SRT, as OBS, ffmpeg and hardware encoders push it: one port for all, told apart by stream id.
//!
//! `srt://host:9000?streamid=NAME?key=SECRET`, as RTMP has it, or in the form of SRT's guidelines `#!::r=NAME,key=SECRET`.

use std::io;
use std::net::SocketAddr;

use futures_util::StreamExt;
use namecast_media::ingest::source::Container;
use namecast_units::Duration;
use srt_tokio::access::{RejectReason, ServerRejectReason};
use srt_tokio::{ConnectionRequest, SrtIncoming, SrtListener as Listener, SrtSocket};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::{Gate, Pushed, Refusal};

const PROTOCOL: &str = "SRT";
/// Requests that are being looked at, and connections.
const MAX_CONNECTIONS: usize = 64;
/// How long lost packets are waited for, where the pusher does not ask for more: twenty times what a network at home takes.
const LATENCY: Duration = Duration::from_millis(60);
/// A pusher that does not answer for so long is gone.
const MAX_IDLE: Duration = Duration::from_secs(5);
/// Octets that wait for whoever publishes a stream.
const BUFFERED: usize = 1 << 18;
/// Starts the stream ids of SRT's guidelines.
const GUIDELINES: &str = "#!::";

/// Listens until it is dropped.
#[derive(Debug)]
pub struct SrtListener {
    address: SocketAddr,
    /// Aborted when it is dropped.
    _tasks: JoinSet<()>,
}

impl SrtListener {
    /// Listens at `address`, and admits through `gate`.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn bind(address: SocketAddr, gate: Gate) -> io::Result<Self> {
        let socket = UdpSocket::bind(address).await?;
        let address = socket.local_addr()?;
        let listener = Listener::builder().set(|options| {
            options.receiver.latency = LATENCY;
            options.session.peer_idle_timeout = MAX_IDLE;
        });
        let (listener, incoming) = listener.socket(socket).bind(address).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, incoming, gate));
        Ok(Self {
            address,
            _tasks: tasks,
        })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(_listener: Listener, mut incoming: SrtIncoming, gate: Gate) {
    let mut connections = JoinSet::new();
    let incoming = incoming.incoming();
    loop {
        tokio::select! {
            Some(request) = incoming.next(), if connections.len() < MAX_CONNECTIONS => {
                let gate = gate.clone();
                connections.spawn(async move {
                    let from = request.remote();
                    if let Err(why) = attend(request, &gate).await {
                        gate.refuse(PROTOCOL, from, why);
                    }
                });
            }
            Some(_) = connections.join_next() => {}
            else => return,
        }
    }
}

/// Serves one connection to its end.
async fn attend(request: ConnectionRequest, gate: &Gate) -> Result<(), Refusal> {
    let from = request.remote();
    let id = request.stream_id().map_or("", |id| id.as_str());
    let (path, key) = wanted(id);
    let admitted = match gate.admit(path, key).await {
        Ok(admitted) => admitted,
        Err(why) => {
            // Whoever has left needs no answer.
            let _ = request.reject(RejectReason::Server(code(&why))).await;
            return Err(why);
        }
    };
    let broken = |error: io::Error| Refusal::Malformed(error.to_string());
    let socket = request.accept(None).await.map_err(broken)?;
    let (ours, theirs) = tokio::io::duplex(BUFFERED);
    let pushed = Pushed {
        admitted,
        octets: Box::new(theirs),
        container: Container::MpegTs,
        protocol: PROTOCOL,
        from,
        seen: None,
    };
    if gate.hand_over(pushed).await {
        carry(socket, ours).await;
    }
    Ok(())
}

/// Carries what is pushed until the pusher leaves or nobody reads it any more.
async fn carry(mut socket: SrtSocket, to: DuplexStream) {
    let (mut unread, mut to) = tokio::io::split(to);
    loop {
        tokio::select! {
            received = socket.next() => {
                let Some(Ok((_, payload))) = received else { break };
                if to.write_all(&payload).await.is_err() {
                    break;
                }
            }
            // Nothing is ever sent this way: it ends when the other end is dropped.
            _ = unread.read_u8() => break,
        }
    }
    // Whoever has left needs no goodbye.
    let _ = socket.close_and_finish().await;
}

/// The name and the key in a stream id.
fn wanted(id: &str) -> (&str, Option<&str>) {
    let Some(fields) = id.strip_prefix(GUIDELINES) else {
        let (path, query) = id.split_once('?').unwrap_or((id, ""));
        return (path, field(query.split('&'), "key="));
    };
    let path = field(fields.split(','), "r=");
    (path.unwrap_or_default(), field(fields.split(','), "key="))
}

fn field<'a>(mut fields: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    fields.find_map(|field| field.strip_prefix(name))
}

/// The nearest of SRT's codes: it has no sentences.
const fn code(why: &Refusal) -> ServerRejectReason {
    match why {
        Refusal::Key => ServerRejectReason::Unauthorized,
        Refusal::Name | Refusal::Codec(_) | Refusal::Malformed(_) => ServerRejectReason::BadRequest,
        Refusal::Taken(_) => ServerRejectReason::Conflict,
        Refusal::Full | Refusal::Names => ServerRejectReason::Overload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_ids_have_a_name_and_a_key() {
        for (id, path, key) in [
            ("studio/cam?key=s", "studio/cam", Some("s")),
            ("cam", "cam", None),
            ("#!::r=cam,m=publish,key=s", "cam", Some("s")),
            ("#!::u=x", "", None),
            ("", "", None),
        ] {
            assert_eq!(wanted(id), (path, key));
        }
    }
}
