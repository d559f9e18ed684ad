//! RTMP, as OBS, ffmpeg, GStreamer and hardware encoders push it: one port for all, which listens all the time.
//!
//! `rtmp://host/app/NAME?key=SECRET`: the application may be any one word; what follows it is the name.

mod amf;
mod chunks;
mod session;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use namecast_media::ingest::source::Container;
use namecast_units::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Admitted, Gate, Pushed, Refusal};
pub use session::RtmpError;
use session::{Session, SessionEvent};

const PROTOCOL: &str = "RTMP";
/// Connections at a time, those that have not said what they want included.
const MAX_CONNECTIONS: usize = 64;
/// How long somebody may take to say what they want.
const MAX_GREETING: Duration = Duration::from_secs(5);
/// How long somebody who was refused has to hear why.
const MAX_FAREWELL: Duration = Duration::from_secs(1);
/// Octets that wait for whoever publishes a stream; the pusher waits where there are more.
const BUFFERED: usize = 1 << 18;
/// Octets read from a connection at once.
const READ_SIZE: usize = 1 << 16;
/// Signature, version 1, sound and pictures, length of this, and of the tag before the first.
const FLV_HEADER: [u8; 13] = [b'F', b'L', b'V', 1, 5, 0, 0, 0, 9, 0, 0, 0, 0];
const FLV_TAG_HEADER: usize = 11;

/// Listens until it is dropped, which ends its connections, too.
#[derive(Debug)]
pub struct RtmpListener {
    address: SocketAddr,
    /// Aborted when it is dropped.
    _tasks: JoinSet<()>,
}

impl RtmpListener {
    /// Listens at `address`, and admits through `gate`.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn bind(address: SocketAddr, gate: Gate) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, gate));
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

async fn accept(listener: TcpListener, gate: Gate) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Fails for want of descriptors, or if the peer has left: neither ends the listener.
                let Ok((stream, from)) = accepted else {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    let why = format!("there are {MAX_CONNECTIONS} connections already");
                    gate.refuse(PROTOCOL, from, Refusal::Malformed(why));
                    continue;
                };
                let gate = gate.clone();
                connections.spawn(async move {
                    if let Err(why) = attend(stream, from, &gate).await {
                        gate.refuse(PROTOCOL, from, why);
                    }
                    drop(place);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection to its end.
async fn attend(stream: TcpStream, from: SocketAddr, gate: &Gate) -> Result<(), Refusal> {
    let mut connection = Connection {
        stream,
        session: Session::new(),
        octets: vec![0; READ_SIZE],
    };
    let admitted = match timeout(MAX_GREETING, connection.greet(gate)).await {
        Ok(Ok(Some(admitted))) => admitted,
        Ok(Ok(None)) => return Ok(()),
        Ok(Err(why)) => {
            // They hear why, unless they have left or do not listen.
            let _ = timeout(MAX_FAREWELL, connection.refuse(&why)).await;
            return Err(why);
        }
        Err(_) => {
            let seconds = MAX_GREETING.as_secs();
            let why = format!("no 'publish' came within {seconds} s");
            return Err(Refusal::Malformed(why));
        }
    };
    let (ours, theirs) = tokio::io::duplex(BUFFERED);
    let pushed = Pushed {
        admitted,
        octets: Box::new(theirs),
        container: Container::Flv,
        protocol: PROTOCOL,
        from,
    };
    if gate.hand_over(pushed).await {
        connection.carry(ours).await?;
    }
    Ok(())
}

struct Connection {
    stream: TcpStream,
    session: Session,
    octets: Vec<u8>,
}

impl Connection {
    /// Goes on until somebody was admitted; `None` if they left without a word.
    async fn greet(&mut self, gate: &Gate) -> Result<Option<Admitted>, Refusal> {
        loop {
            if !self.receive().await? {
                return Ok(None);
            }
            while let Some(event) = self.session.next_event() {
                if let SessionEvent::Publish {
                    application,
                    stream,
                } = event
                {
                    let (path, key) = wanted(&application, &stream);
                    let admitted = gate.admit(&path, key).await?;
                    self.session.accept();
                    self.send().await;
                    return Ok(Some(admitted));
                }
            }
        }
    }

    async fn refuse(&mut self, why: &Refusal) {
        self.session.refuse(&why.to_string());
        self.send().await;
        // To close with octets unread would take back what was sent.
        let _ = self.stream.shutdown().await;
        while matches!(self.stream.read(&mut self.octets).await, Ok(count) if count > 0) {}
    }

    /// Carries what is pushed, as FLV, until the pusher leaves or nobody reads it any more.
    async fn carry(mut self, to: DuplexStream) -> Result<(), Refusal> {
        let (mut unread, mut to): (ReadHalf<_>, WriteHalf<_>) = tokio::io::split(to);
        if to.write_all(&FLV_HEADER).await.is_err() {
            return Ok(());
        }
        loop {
            while let Some(event) = self.session.next_event() {
                let SessionEvent::Media {
                    kind,
                    time,
                    payload,
                } = event
                else {
                    return Ok(());
                };
                if to.write_all(&flv_tag(kind, time, &payload)).await.is_err() {
                    return Ok(());
                }
            }
            tokio::select! {
                received = self.receive() => if !received? {
                    return Ok(());
                },
                // Nothing is ever sent this way: it ends when the other end is dropped.
                _ = unread.read_u8() => return Ok(()),
            }
        }
    }

    /// Receives once, and answers. Returns false if the peer has left.
    async fn receive(&mut self) -> Result<bool, Refusal> {
        let count = self.stream.read(&mut self.octets).await.unwrap_or(0);
        let received = self.session.receive(&self.octets[..count]);
        received.map_err(|error| Refusal::Malformed(error.to_string()))?;
        self.send().await;
        Ok(count > 0)
    }

    async fn send(&mut self) {
        let output = self.session.take_output();
        // Of a connection that broke the next read tells.
        let _ = self.stream.write_all(&output).await;
    }
}

/// The name and the key that somebody shows: the application is any word, as `app` in `rtmp://host/app/NAME?key=SECRET`; further
/// ones belong to the name. Some encoders append the key to the server's address.
fn wanted<'a>(application: &'a str, stream: &'a str) -> (String, Option<&'a str>) {
    let (application, server_query) = application.split_once('?').unwrap_or((application, ""));
    let (stream, query) = stream.split_once('?').unwrap_or((stream, ""));
    let more = application.trim_matches('/').split_once('/');
    let path = match more {
        Some((_, more)) => format!("{more}/{stream}"),
        None => stream.to_owned(),
    };
    let mut fields = query.split('&').chain(server_query.split('&'));
    (path, fields.find_map(|field| field.strip_prefix("key=")))
}

/// A tag of FLV: header, payload, and the length of both.
fn flv_tag(kind: u8, time: u32, payload: &[u8]) -> Vec<u8> {
    // Messages are shorter than 2^24.
    let len = payload.len() as u32;
    let [highest, time @ ..] = time.to_be_bytes();
    let mut tag = Vec::with_capacity(payload.len() + FLV_TAG_HEADER + 4);
    tag.push(kind);
    tag.extend_from_slice(&len.to_be_bytes()[1..]);
    tag.extend(time);
    tag.push(highest);
    tag.extend([0, 0, 0]);
    tag.extend_from_slice(payload);
    tag.extend((len + FLV_TAG_HEADER as u32).to_be_bytes());
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As OBS, ffmpeg and GStreamer part an address.
    #[test]
    fn names_and_keys_are_found_where_encoders_put_them() {
        for (application, stream, path, key) in [
            ("app", "cam?key=s", "cam", Some("s")),
            ("live", "cam", "cam", None),
            ("app/studio", "cam?user=x&key=s", "studio/cam", Some("s")),
            ("app?key=s", "cam", "cam", Some("s")),
            ("app/", "studio/cam", "studio/cam", None),
            ("", "cam?key=", "cam", Some("")),
        ] {
            assert_eq!(wanted(application, stream), (path.to_owned(), key));
        }
    }

    /// A picture of two octets after 4 h 40 min, which need more than 24 bits.
    #[test]
    fn tags_are_as_flv_has_them() {
        let tag = flv_tag(9, 0x0102_0304, &[7, 8]);
        let expected = [9, 0, 0, 2, 2, 3, 4, 1, 0, 0, 0, 7, 8, 0, 0, 0, 13];
        assert_eq!(tag, expected);
    }
}
