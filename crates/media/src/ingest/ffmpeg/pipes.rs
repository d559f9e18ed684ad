//! Outputs of a child process as pipes beyond the standard three.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::process::Command;

use command_fds::{CommandFdExt, FdMapping};

use super::{FIRST_PIPE, enlarge};

/// The end of an output from which this process reads.
pub(crate) type OutputReader = io::PipeReader;

/// Lifetime of a process: dropped when the process ends. Pipes close by themselves.
#[derive(Debug)]
pub(super) struct Running;

/// Gives `command` its `arguments` and as many outputs.
///
/// # Errors
/// If the system refuses a pipe.
pub(super) fn give_outputs(
    command: &mut Command,
    arguments: &[OsString],
    count: usize,
) -> io::Result<(Vec<OutputReader>, Running)> {
    command.args(arguments);
    let mut readers = Vec::with_capacity(count);
    let mut mappings = Vec::with_capacity(count);
    for child_fd in (FIRST_PIPE..).take(count) {
        let (reader, writer) = io::pipe()?;
        enlarge(&reader);
        readers.push(reader);
        mappings.push(FdMapping {
            parent_fd: OwnedFd::from(writer),
            child_fd,
        });
    }
    command
        .fd_mappings(mappings)
        .expect("each pipe has its own number");
    Ok((readers, Running))
}
