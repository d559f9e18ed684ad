//! OSC for a desk: presses that arrive by UDP and TCP.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use namecast_apps::cues::Press;
use namecast_apps::cues::osc::{Frames, MAX_PACKET, OscError, decode, encode_reply};
use namecast_units::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

/// Where a desk hears OSC: QLab's port.
pub(super) const DEFAULT_ADDRESS: &str = "127.0.0.1:53000";
/// Presses that wait for the desk.
const MAX_WAITING: usize = 64;
/// TCP connections at a time; further ones wait.
const MAX_CONNECTIONS: usize = 16;
/// Octets read at once.
const READ_SIZE: usize = 4_096;
/// A connection that is not read for this time is closed.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// A press that arrived.
pub(super) struct Pressed {
    pub(super) press: Press,
    /// Takes the problem if nothing was sent; `None`: the sender hears no answer.
    pub(super) answer: Option<oneshot::Sender<Option<String>>>,
}

type Presses = mpsc::Sender<Result<Pressed, OscError>>;

/// Hears OSC by UDP and TCP. Returns what arrives, and the address.
///
/// # Errors
/// If the address is taken.
pub(super) async fn listen(
    address: SocketAddr,
) -> anyhow::Result<(mpsc::Receiver<Result<Pressed, OscError>>, SocketAddr)> {
    let taken = || format!("cannot hear OSC on {address}");
    let listener = TcpListener::bind(address).await.with_context(taken)?;
    let address = listener.local_addr()?;
    let socket = UdpSocket::bind(address).await.with_context(taken)?;
    let (presses, pressed) = mpsc::channel(MAX_WAITING);
    tokio::spawn(hear_datagrams(socket, presses.clone()));
    tokio::spawn(accept(listener, presses));
    Ok((pressed, address))
}

async fn hear_datagrams(socket: UdpSocket, presses: Presses) {
    let mut buffer = vec![0; MAX_PACKET];
    loop {
        // An error is that of an earlier answer, and the next datagram may come.
        let Ok(length) = socket.recv(&mut buffer).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let read = match decode(&buffer[..length]) {
            Ok(read) => read.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        for press in read {
            let pressed = press.map(|press| Pressed {
                press,
                answer: None,
            });
            if presses.send(pressed).await.is_err() {
                return;
            }
        }
    }
}

async fn accept(listener: TcpListener, presses: Presses) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            // No file is left for it, for instance.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let presses = presses.clone();
        tokio::spawn(async move {
            // It ends with the sender.
            let _ = hear_stream(stream, presses).await;
            drop(permit);
        });
    }
}

async fn hear_stream(mut stream: TcpStream, presses: Presses) -> anyhow::Result<()> {
    let mut frames = Frames::default();
    let mut buffer = [0; READ_SIZE];
    loop {
        let length = stream.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        let packets = match frames.read(&buffer[..length]) {
            Ok(packets) => packets,
            Err(error) => {
                presses.send(Err(error.clone())).await?;
                return Err(error.into());
            }
        };
        for packet in packets {
            let problem = obey(&packet, &presses).await?;
            let reply = frames.frame(&encode_reply(problem.as_deref())?);
            timeout(WRITE_TIMEOUT, stream.write_all(&reply)).await??;
        }
    }
}

/// Has the presses of a packet done. Returns the first problem.
async fn obey(packet: &[u8], presses: &Presses) -> anyhow::Result<Option<String>> {
    let read = match decode(packet) {
        Ok(read) => read,
        Err(error) => {
            let problem = error.to_string();
            presses.send(Err(error)).await?;
            return Ok(Some(problem));
        }
    };
    let mut problem = None;
    for press in read {
        let (answer, answered) = oneshot::channel();
        let pressed = Pressed {
            press,
            answer: Some(answer),
        };
        presses.send(Ok(pressed)).await?;
        problem = problem.or(answered.await?);
    }
    Ok(problem)
}
