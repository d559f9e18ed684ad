//! Probes of the SRT listener, which detect a process that hangs.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use namecast_srt::INDUCTION;
use namecast_units::Duration;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

/// Time between two probes, and to wait for an answer.
const INTERVAL: Duration = Duration::from_millis(250);
/// Probes in a row without an answer, after which the listener hangs: 3 s, and a pusher is gone after 5 s.
const MAX_UNANSWERED: u32 = 12;

/// Waits until the listener at `address` answers no more. One that never answered may be out of reach, and is not judged.
pub(super) async fn until_silent(address: SocketAddr) {
    let socket = match connect(address).await {
        Ok(socket) => socket,
        Err(error) => {
            tracing::warn!("the SRT listener is not probed: {error}");
            return core::future::pending().await;
        }
    };
    watch(&socket, INTERVAL).await;
}

async fn watch(socket: &UdpSocket, interval: Duration) {
    let (mut unanswered, mut has_answered, mut answer) = (0, false, INDUCTION);
    while unanswered < MAX_UNANSWERED || !has_answered {
        // Whether it arrives shows in the answer.
        let _ = socket.send(&INDUCTION).await;
        match timeout(interval, socket.recv(&mut answer)).await {
            Ok(Ok(_)) => {
                (unanswered, has_answered) = (0, true);
                sleep(interval).await;
            }
            Ok(Err(_)) => {
                unanswered += 1;
                sleep(interval).await;
            }
            Err(_) => unanswered += 1,
        }
    }
}

async fn connect(address: SocketAddr) -> io::Result<UdpSocket> {
    let (any, own): (IpAddr, IpAddr) = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    let mut to = address;
    if address.ip().is_unspecified() {
        to.set_ip(own);
    }
    socket.connect(to).await?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a listener that nobody reaches, nothing is known; of one that answered twice, the silence after.
    #[tokio::test]
    async fn silence_counts_after_an_answer() {
        let listener = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let socket = connect(listener.local_addr().unwrap()).await.unwrap();
        let (answered, probes) = (2 * MAX_UNANSWERED, 4 * MAX_UNANSWERED);
        let watching = watch(&socket, Duration::from_millis(1));
        let answering = async {
            let mut octets = [0; 128];
            let mut heard = 0;
            loop {
                let (count, from) = listener.recv_from(&mut octets).await.unwrap();
                assert_eq!(octets[..count], INDUCTION);
                heard += 1;
                assert!(heard < probes, "it does not see the silence");
                if (answered..answered + 2).contains(&heard) {
                    listener.send_to(&INDUCTION, from).await.unwrap();
                }
            }
        };
        tokio::select! {
            () = watching => {}
            () = answering => {}
        }
    }
}
