//! Outputs of a child process as TCP connections within this machine, for systems on which a process cannot be given more pipes than
//! the standard three.

use std::ffi::OsString;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use super::pipe_url;

/// Pause between two looks for a connection of a process that has not opened its output yet.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Lifetime of a process: dropped when the process ends.
#[derive(Debug)]
pub(super) struct Running(#[expect(dead_code, reason = "readers see it dropped")] Arc<()>);

/// The end of an output from which this process reads. It ends when the process closes the output, or ends without having opened it.
#[derive(Debug)]
pub(crate) struct OutputReader {
    listener: TcpListener,
    connection: Option<TcpStream>,
    running: Weak<()>,
}

impl Read for OutputReader {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(connection) = &mut self.connection {
                return match connection.read(octets) {
                    // The process was killed.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
                    read => read,
                };
            }
            let has_ended = self.running.strong_count() == 0;
            match self.listener.accept() {
                Ok((connection, _)) => {
                    connection.set_nonblocking(false)?;
                    self.connection = Some(connection);
                }
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if has_ended => return Ok(0),
                Err(_) => thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

/// Gives `command` its `arguments`, with an address in place of each [`pipe_url`], and as many outputs.
///
/// # Errors
/// If the system refuses a socket.
pub(super) fn give_outputs(
    command: &mut Command,
    arguments: &[OsString],
    count: usize,
) -> io::Result<(Vec<OutputReader>, Running)> {
    let running = Arc::new(());
    let mut readers = Vec::with_capacity(count);
    let mut arguments = arguments.to_vec();
    for index in 0..count {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let url = OsString::from(format!("tcp://{}", listener.local_addr()?));
        let pipe = pipe_url(index);
        for argument in arguments.iter_mut().filter(|it| **it == pipe) {
            argument.clone_from(&url);
        }
        readers.push(OutputReader {
            listener,
            connection: None,
            running: Arc::downgrade(&running),
        });
    }
    command.args(arguments);
    Ok((readers, Running(running)))
}

#[cfg(test)]
mod tests {
    use std::process::Child;

    use super::*;
    use crate::ingest::ffmpeg::{program, words};

    fn start(line: &str, outputs: usize) -> (Child, Vec<OutputReader>, Running) {
        let mut command = Command::new(program());
        command.args(["-hide_banner", "-loglevel", "error"]);
        let arguments: Vec<_> = words(line).collect();
        let (readers, running) = give_outputs(&mut command, &arguments, outputs).unwrap();
        (command.spawn().unwrap(), readers, running)
    }

    #[test]
    fn two_outputs_of_ffmpeg_arrive_whole() {
        let line = "-f lavfi -i color=size=64x48:rate=10:duration=2 -f rawvideo -pix_fmt gray pipe:3 \
            -f lavfi -i anullsrc=r=8000:cl=mono -map 1 -t 1 -f s16le pipe:4";
        let (mut ffmpeg, mut readers, running) = start(line, 2);
        let mut sound = readers.pop().unwrap();
        let reading = thread::spawn(move || {
            let mut octets = Vec::new();
            sound.read_to_end(&mut octets).map(|_| octets.len())
        });
        let mut pictures = Vec::new();
        readers[0].read_to_end(&mut pictures).unwrap();
        assert_eq!(pictures.len(), 64 * 48 * 20);
        assert_eq!(reading.join().unwrap().unwrap(), 8_000 * 2);
        assert!(ffmpeg.wait().unwrap().success());
        drop(running);
    }

    #[test]
    fn an_output_that_was_never_opened_ends_with_the_process() {
        let (mut ffmpeg, mut readers, running) = start("-i /nowhere -f nut pipe:3", 1);
        assert!(!ffmpeg.wait().unwrap().success());
        drop(running);
        assert_eq!(readers[0].read(&mut [0; 16]).unwrap(), 0);
    }
}
