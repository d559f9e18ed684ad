//! The raw limit: a program that copies datagrams between two sockets and looks at nothing.

use std::net::SocketAddr;

use namecast_command::report::print_line;
use rustix::event::{PollFd, PollFlags, poll};

use super::port::{Port, Sending};

/// Copies datagrams between whoever sends to its port, which it prints, and `producer`, until its input ends.
///
/// It waits as forwarders do, asleep in the kernel, and once awake takes all that is there.
pub(super) fn run(producer: SocketAddr, how: Sending) -> anyhow::Result<()> {
    let (mut front, mut back) = (Port::new()?, Port::new()?);
    print_line(front.address()?)?;
    let mut consumer = None;
    let mut batch: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut used = 0;
        front.receive(|from, datagram| {
            consumer = Some(from);
            keep(&mut batch, &mut used, datagram);
        });
        back.send(producer, &batch[..used], how);
        let mut moved = used;
        used = 0;
        back.receive(|_, datagram| keep(&mut batch, &mut used, datagram));
        moved += used;
        if let Some(consumer) = consumer {
            front.send(consumer, &batch[..used], how);
        }
        if moved == 0 && !wait(&front, &back)? {
            return Ok(());
        }
    }
}

/// Sleeps until there is something to copy; false if the input has ended.
fn wait(front: &Port, back: &Port) -> anyhow::Result<bool> {
    let input = std::io::stdin();
    let mut waiting = [
        PollFd::new(front, PollFlags::IN),
        PollFd::new(back, PollFlags::IN),
        PollFd::new(&input, PollFlags::IN),
    ];
    poll(&mut waiting, None)?;
    Ok(waiting[2].revents().is_empty())
}

/// Copies a datagram into the next buffer, so that none is allocated twice.
fn keep(batch: &mut Vec<Vec<u8>>, used: &mut usize, datagram: &[u8]) {
    if batch.len() == *used {
        batch.push(Vec::new());
    }
    batch[*used].clear();
    batch[*used].extend_from_slice(datagram);
    *used += 1;
}
