//! libsrt, loaded at run time: the functions that a listener calls, behind safe ones.
//!
//! Signatures and numbers are those of `srt.h`, the same from 1.4.2 to 1.5.

#![expect(
    unsafe_code,
    reason = "libsrt is C++ with a C interface: loading it and calling it is unsafe, and done here only"
)]

use core::ffi::{CStr, c_char, c_int, c_void};
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;

use socket2::SockAddr;

use crate::frames::MAX_STREAM_ID;

/// Environment variable that names another file than [`NAMES`].
const VARIABLE: &str = "NAMECAST_LIBSRT";
/// Files that are tried in this order.
#[cfg(target_os = "macos")]
const NAMES: &[&str] = &[
    "libsrt.dylib",
    "/opt/homebrew/lib/libsrt.dylib",
    "/usr/local/lib/libsrt.dylib",
];
#[cfg(windows)]
const NAMES: &[&str] = &["srt.dll", "libsrt.dll"];
#[cfg(not(any(target_os = "macos", windows)))]
const NAMES: &[&str] = &[
    "libsrt-gnutls.so.1.5",
    "libsrt.so.1.5",
    "libsrt.so.1.4",
    "libsrt-gnutls.so.1.4",
];

/// libsrt's error, for all functions.
const ERROR: c_int = -1;
/// Only critical messages of libsrt reach standard error: strangers cause the others.
const LOG_CRITICAL: c_int = 2;
/// Handshakes that wait for [`Library::accept`].
const BACKLOG: c_int = 16;
/// Octets of an address that libsrt passes: its own type is a union with room for IPv6.
const ADDRESS: usize = 28;

/// An option of a socket, by libsrt's number.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub(crate) enum Number {
    /// Receiver latency in milliseconds.
    ReceiverLatency = 43,
    /// Whether an IPv6 socket refuses IPv4.
    Ipv6Only = 54,
    /// Silence in milliseconds after which a peer is gone.
    PeerIdle = 55,
}
const PASSPHRASE: c_int = 26;
const STREAM_ID: c_int = 46;

/// A socket, by libsrt's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Socket(pub(crate) c_int);

/// A handshake that waits to be accepted or rejected.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) socket: Socket,
    pub(crate) peer: SocketAddr,
    pub(crate) stream_id: String,
}

/// Decides on a handshake: an error is the code of its rejection.
type Hook = Box<dyn Fn(&Handshake) -> Result<(), i32> + Send + Sync>;
type RawHook =
    unsafe extern "C" fn(*mut c_void, c_int, c_int, *const c_void, *const c_char) -> c_int;

/// The hook of the one listener of this process, and the library that calls it.
static HOOK: OnceLock<(&'static Library, Hook)> = OnceLock::new();

macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[derive(Debug)]
        struct Functions { $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?),* }

        impl Functions {
            /// # Safety
            /// `library` must be libsrt, and stay loaded.
            unsafe fn find(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: the signatures are those of `srt.h`.
                unsafe { Ok(Self { $($name: *library.get(stringify!($name))?),* }) }
            }
        }
    };
}

functions! {
    srt_startup() -> c_int;
    srt_setloglevel(c_int);
    srt_create_socket() -> c_int;
    srt_setsockflag(c_int, c_int, *const c_void, c_int) -> c_int;
    srt_getsockflag(c_int, c_int, *mut c_void, *mut c_int) -> c_int;
    srt_bind(c_int, *const c_void, c_int) -> c_int;
    srt_getsockname(c_int, *mut c_void, *mut c_int) -> c_int;
    srt_listen(c_int, c_int) -> c_int;
    srt_listen_callback(c_int, RawHook, *mut c_void) -> c_int;
    srt_setrejectreason(c_int, c_int) -> c_int;
    srt_accept(c_int, *mut c_void, *mut c_int) -> c_int;
    srt_recvmsg(c_int, *mut c_char, c_int) -> c_int;
    srt_close(c_int) -> c_int;
    srt_getlasterror_str() -> *const c_char;
}

/// The loaded library.
#[derive(Debug)]
pub(crate) struct Library(Functions);

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error(
        "SRT needs libsrt, which is not on this machine: install `libsrt1.5-gnutls` or `libsrt1.5-openssl` (Debian), `srt` (Homebrew), or name its file in {VARIABLE}"
    )]
    Missing,
    #[error("cannot load libsrt from {} (see {VARIABLE}): {error}", file.display())]
    Named {
        file: OsString,
        error: libloading::Error,
    },
    #[error("libsrt is too old, 1.4.2 or later is needed: {0}")]
    Old(libloading::Error),
    #[error("libsrt does not start")]
    Start,
}

impl Library {
    /// Loads libsrt for the rest of the process.
    pub(crate) fn load() -> Result<&'static Self, LoadError> {
        // Threads of libsrt run until the process ends, so it is never unloaded.
        let library: &'static libloading::Library = Box::leak(Box::new(open()?));
        // SAFETY: the file is libsrt by its name, and is never unloaded.
        let functions = unsafe { Functions::find(library) }.map_err(LoadError::Old)?;
        // SAFETY: called once, before all others.
        let started = unsafe { (functions.srt_startup)() };
        if started == ERROR {
            return Err(LoadError::Start);
        }
        // SAFETY: takes a number.
        unsafe { (functions.srt_setloglevel)(LOG_CRITICAL) };
        Ok(Box::leak(Box::new(Self(functions))))
    }

    /// Makes a socket.
    pub(crate) fn socket(&self) -> io::Result<Socket> {
        // SAFETY: takes nothing.
        self.check(unsafe { (self.0.srt_create_socket)() })
            .map(Socket)
    }

    /// Sets an option that is a number.
    pub(crate) fn set(&self, socket: Socket, option: Number, value: i32) -> io::Result<()> {
        self.set_octets(socket, option as c_int, &value.to_ne_bytes())
    }

    /// Encrypts all connections of a listener.
    pub(crate) fn set_passphrase(&self, socket: Socket, passphrase: &str) -> io::Result<()> {
        self.set_octets(socket, PASSPHRASE, passphrase.as_bytes())
    }

    fn set_octets(&self, socket: Socket, option: c_int, value: &[u8]) -> io::Result<()> {
        let (start, len) = (value.as_ptr().cast(), value.len() as c_int);
        // SAFETY: `value` is as long as it says; libsrt copies it.
        let set = unsafe { (self.0.srt_setsockflag)(socket.0, option, start, len) };
        self.check(set).map(drop)
    }

    /// Returns an option that is a number.
    pub(crate) fn get(&self, socket: Socket, option: Number) -> io::Result<i32> {
        let mut value = [0; 4];
        self.get_octets(socket, option as c_int, &mut value)?;
        Ok(i32::from_ne_bytes(value))
    }

    /// Returns the stream ID of a connection.
    pub(crate) fn stream_id(&self, socket: Socket) -> io::Result<String> {
        // libsrt ends it with a zero.
        let mut value = [0; MAX_STREAM_ID + 1];
        let len = self.get_octets(socket, STREAM_ID, &mut value)?;
        let value = value.get(..len).unwrap_or_default();
        Ok(String::from_utf8_lossy(value).into_owned())
    }

    fn get_octets(&self, socket: Socket, option: c_int, value: &mut [u8]) -> io::Result<usize> {
        let mut len = value.len() as c_int;
        let start = value.as_mut_ptr().cast();
        // SAFETY: libsrt writes at most `len` octets, and no option of ours is longer than its buffer.
        let got = unsafe { (self.0.srt_getsockflag)(socket.0, option, start, &mut len) };
        self.check(got)?;
        Ok(usize::try_from(len).map_or(0, |len| len.min(value.len())))
    }

    /// Binds a socket; returns the bound address.
    pub(crate) fn bind(&self, socket: Socket, address: SocketAddr) -> io::Result<SocketAddr> {
        let raw = SockAddr::from(address);
        // SAFETY: the address is as long as it says; libsrt copies it.
        let bound = unsafe { (self.0.srt_bind)(socket.0, raw.as_ptr().cast(), raw.len() as c_int) };
        self.check(bound)?;
        let name = self.0.srt_getsockname;
        // SAFETY: `filled` passes room for any address, and its length.
        self.filled(|room, len| unsafe { name(socket.0, room, len) })
            .map(|(_, address)| address)
    }

    /// Has `hook` decide on handshakes, on threads of libsrt; once in a process.
    pub(crate) fn decide_by(&'static self, hook: Hook) {
        let is_first = HOOK.set((self, hook)).is_ok();
        assert!(is_first, "a process has one listener");
    }

    /// Listens.
    pub(crate) fn listen(&self, socket: Socket) -> io::Result<()> {
        // SAFETY: `decide` is as `srt.h` wants it, and needs no opaque value.
        let set = unsafe { (self.0.srt_listen_callback)(socket.0, decide, core::ptr::null_mut()) };
        self.check(set)?;
        // SAFETY: takes numbers.
        self.check(unsafe { (self.0.srt_listen)(socket.0, BACKLOG) })
            .map(drop)
    }

    /// Waits for a connection.
    pub(crate) fn accept(&self, listener: Socket) -> io::Result<(Socket, SocketAddr)> {
        let accept = self.0.srt_accept;
        // SAFETY: `filled` passes room for any address, and its length.
        self.filled(|room, len| unsafe { accept(listener.0, room, len) })
            .map(|(socket, peer)| (Socket(socket), peer))
    }

    /// Waits for a packet; returns its length, 0 at the end.
    pub(crate) fn receive(&self, socket: Socket, to: &mut [u8]) -> io::Result<usize> {
        let (start, len) = (to.as_mut_ptr().cast(), to.len() as c_int);
        // SAFETY: libsrt writes at most `len` octets.
        let received = self.check(unsafe { (self.0.srt_recvmsg)(socket.0, start, len) })?;
        Ok(usize::try_from(received).map_or(0, |received| received.min(to.len())))
    }

    /// Closes a socket and wakes the thread that waits for it. Does nothing if it is closed already.
    pub(crate) fn close(&self, socket: Socket) {
        // SAFETY: takes a number, of which libsrt knows whether it is a socket.
        unsafe { (self.0.srt_close)(socket.0) };
    }

    /// Passes room for an address to a function of libsrt; returns what both give.
    fn filled(
        &self,
        fill: impl FnOnce(*mut c_void, *mut c_int) -> c_int,
    ) -> io::Result<(c_int, SocketAddr)> {
        // SAFETY: libsrt writes an address of IPv4 or IPv6 and its length, or fails.
        let (filled, address) =
            unsafe { SockAddr::try_init(|room, len| self.check(fill(room.cast(), len.cast()))) }?;
        let address = address.as_socket();
        let address = address.ok_or_else(|| io::Error::other("libsrt gave no IP address"))?;
        Ok((filled, address))
    }

    /// Returns `result`, or libsrt's text of the last error of this thread.
    fn check(&self, result: c_int) -> io::Result<c_int> {
        if result != ERROR {
            return Ok(result);
        }
        // SAFETY: libsrt returns a text that lasts until the next call on this thread.
        let text = unsafe { CStr::from_ptr((self.0.srt_getlasterror_str)()) };
        Err(io::Error::other(text.to_string_lossy().into_owned()))
    }
}

fn open() -> Result<libloading::Library, LoadError> {
    if let Some(file) = std::env::var_os(VARIABLE) {
        // SAFETY: who sets the variable answers for the file.
        let opened = unsafe { libloading::Library::new(&file) };
        return opened.map_err(|error| LoadError::Named { file, error });
    }
    // SAFETY: libsrt starts nothing before `srt_startup`.
    let mut found = NAMES
        .iter()
        .filter_map(|name| unsafe { libloading::Library::new(*name) }.ok());
    found.next().ok_or(LoadError::Missing)
}

/// Asks [`HOOK`] about a handshake. A panic ends the process: this is `extern "C"`.
unsafe extern "C" fn decide(
    _: *mut c_void,
    socket: c_int,
    _version: c_int,
    peer: *const c_void,
    stream_id: *const c_char,
) -> c_int {
    let Some((library, hook)) = HOOK.get() else {
        return ERROR;
    };
    // SAFETY: libsrt passes a union that has room for IPv6, and `SockAddr` has room for it.
    let copied = unsafe {
        SockAddr::try_init(|room, len| {
            core::ptr::copy_nonoverlapping(peer.cast::<u8>(), room.cast(), ADDRESS);
            *len = ADDRESS as _;
            Ok(())
        })
    };
    let Some(peer) = copied.ok().and_then(|(_, peer)| peer.as_socket()) else {
        return ERROR;
    };
    // SAFETY: libsrt passes an array that ends with a zero.
    let stream_id = unsafe { CStr::from_ptr(stream_id) };
    let handshake = Handshake {
        socket: Socket(socket),
        peer,
        stream_id: stream_id.to_string_lossy().into_owned(),
    };
    match hook(&handshake) {
        Ok(()) => 0,
        Err(code) => {
            // SAFETY: takes numbers.
            unsafe { (library.0.srt_setrejectreason)(socket, code) };
            ERROR
        }
    }
}

/// Ends the process at once. Destructors of libsrt, which `std::process::exit` runs, may wait for its threads.
pub(crate) fn end_process(status: i32) -> ! {
    unsafe extern "C" {
        safe fn _exit(status: c_int) -> !;
    }
    _exit(status)
}
