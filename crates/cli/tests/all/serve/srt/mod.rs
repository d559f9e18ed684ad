//! SRT at its limits: hostile datagrams, a listener that is killed, encryption, and a machine without libsrt.

use super::*;
use crate::program::fetch;

/// Handshakes of SRT, as draft-sharabayko-srt-01 has them in section 3.2.1.
const INDUCTION: u32 = 1;
const CONCLUSION: u32 = u32::MAX;
const CONTROL: [u8; 8] = [0x80, 0, 0, 0, 0, 0, 0, 0];
/// A handshake without extensions: header and contents.
const HANDSHAKE: usize = 64;
/// Datagrams that fit a socket's buffer of any machine.
const BATCH: usize = 50;

/// A handshake with `extensions`: pairs of type and contents.
fn handshake(request: u32, cookie: u32, extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut octets = CONTROL.to_vec();
    let version = if request == INDUCTION { 4 } else { 5 };
    // Extension field: all three kinds, which allows any; in an induction 2, for datagrams.
    let field = if request == INDUCTION { 2 } else { 7 };
    let words = [
        0,
        0,
        version,
        field,
        0x1234,
        1_500,
        8_192,
        request,
        77,
        cookie,
        0x0100_007f,
        0,
        0,
        0,
    ];
    octets.extend(words.iter().flat_map(|word: &u32| word.to_be_bytes()));
    assert_eq!(octets.len(), HANDSHAKE);
    for (kind, contents) in extensions {
        octets.extend(kind.to_be_bytes());
        octets.extend((contents.len() as u16 / 4).to_be_bytes());
        octets.extend(*contents);
    }
    octets
}

/// Each bit of the first [`HANDSHAKE`] octets flipped, and a length one less and one more.
fn neighbours(octets: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let flipped = (0..HANDSHAKE.min(octets.len()) * 8).map(|bit| {
        let mut octets = octets.to_vec();
        octets[bit / 8] ^= 1 << (bit % 8);
        octets
    });
    let shorter = octets[..octets.len() - 1].to_vec();
    let longer = [octets, &[0]].concat();
    flipped.chain([octets.to_vec(), shorter, longer])
}

/// A stranger with a socket.
struct Stranger(UdpSocket);

impl Stranger {
    fn connect(server: &Server) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.srt_socket()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        Self(socket)
    }

    /// Sends datagrams, and waits now and then until the listener has read them, which an answer shows. Those sent to a listener that
    /// is down are lost, as on any link.
    fn send(&self, datagrams: impl IntoIterator<Item = Vec<u8>>) {
        for (number, datagram) in datagrams.into_iter().enumerate() {
            let _ = self.0.send(&datagram);
            if number % BATCH == 0 {
                self.cookie();
            }
        }
        self.cookie();
    }

    /// Sends inductions until one is answered; returns the cookie of the answer.
    fn cookie(&self) -> u32 {
        until("answer of the SRT listener", || {
            let _ = self.0.send(&handshake(INDUCTION, 0, &[]));
            let mut octets = [0; 2_048];
            while let Ok(count) = self.0.recv(&mut octets) {
                let word = |at: usize| u32::from_be_bytes(octets[at..at + 4].try_into().unwrap());
                if count >= HANDSHAKE && octets[..2] == CONTROL[..2] && word(36) == INDUCTION {
                    return Some(word(44));
                }
            }
            None
        })
    }
}

impl Server {
    fn health(&self) -> u16 {
        fetch(&self.metrics.replace("/metrics", "/health")).0
    }

    fn restarts(&self) -> u64 {
        let (_, text) = fetch(&self.metrics);
        let line = "namecast_listener_restarts_total{listener=\"srt\"} ";
        let count = text.lines().find_map(|it| it.strip_prefix(line)).unwrap();
        count.parse().unwrap()
    }

    /// Process of the SRT listener.
    fn listener(&self) -> u32 {
        until("process of the SRT listener", || {
            let line = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let mut children = self.children().into_iter();
            children.find(|pid| line(pid).starts_with(b"namecast\0srt-listener\0"))
        })
    }

    fn published(&self, name: &str) -> u64 {
        let stats = newest_stats(&self.home.path().join("serve.json"));
        let frames = stats.and_then(|it| it["streams"][name]["frames_published"].as_u64());
        frames.unwrap_or(0)
    }

    fn goes_on(&self, name: &str) {
        let before = self.published(name);
        until("frame", || {
            (self.published(name) > before + PICTURES).then_some(())
        });
    }
}

/// The stranger's datagrams change nothing for the one who pushes, nor for the next one.
#[test]
fn hostile_datagrams_end_no_listener_and_no_push() {
    let server = Server::start();
    let _pusher = Pusher::start(&format!("{}cam?key=s3cret", server.srt));
    server.event("begun", "/cam");
    let listener = server.listener();
    let stranger = Stranger::connect(&server);
    // 16 octets of a control packet of type 0x7fff, which nothing defines.
    let short = vec![0xff, 0xff, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    stranger.send([short.clone()]);
    stranger.send((0..=short.len()).map(|len| short[..len].to_vec()));
    stranger.send(neighbours(&short));
    let empty = [0; 4];
    for cookie in [0, stranger.cookie()] {
        for kind in (0..=9).chain([u16::MAX]) {
            let extended = handshake(CONCLUSION, cookie, &[(kind, &empty)]);
            assert_eq!(extended.len(), 72);
            stranger.send([extended]);
        }
        for kind in [6, 8] {
            stranger.send(neighbours(&handshake(
                CONCLUSION,
                cookie,
                &[(kind, &empty)],
            )));
        }
        // Version 1.5.1, flags, no latency; then the stream id `cam`, in swapped octets, without a key.
        let request = [0, 1, 5, 1, 0, 0, 0, 0xbf, 0, 0, 0, 0];
        let full: [(u16, &[u8]); 2] = [(1, &request), (5, b"\0mac\0\0\0\0")];
        stranger.send(neighbours(&handshake(CONCLUSION, cookie, &full)));
        stranger
            .send((0..100).map(|len| handshake(CONCLUSION, cookie, &full)[..len.min(88)].to_vec()));
    }
    server.send_garbage();
    assert_eq!(server.listener(), listener, "it is not the same process");
    assert_eq!((server.restarts(), server.health()), (0, 200));
    server.goes_on("/cam");
    let _next = Pusher::start(&format!("{}desk?key=s3cret", server.srt));
    server.event("begun", "/desk");
    server.goes_on("/desk");
    server.goes_on("/cam");
    assert_eq!(server.counter("admitted"), Some(2));
}

/// While somebody else has its port, the listener that was killed cannot come back, and `/health` says so.
#[test]
fn a_listener_that_was_killed_is_started_again() {
    let server = Server::start();
    let names = ["/cam", "/desk"];
    let push = |name: &str| {
        let path = name.trim_start_matches('/');
        Pusher::start(&format!("{}{path}?key=s3cret", server.srt))
    };
    let _pushers = names.map(push);
    for name in names {
        server.event("begun", name);
    }
    let killed = server.listener();
    let kill = |pid: u32| {
        let sent = Command::new("kill")
            .args(["-KILL", &pid.to_string()])
            .status();
        assert!(sent.unwrap().success());
    };
    let taken = until("port", || {
        kill(server.listener());
        UdpSocket::bind(server.srt_socket()).ok()
    });
    until("end of health", || (server.health() == 503).then_some(()));
    for name in names {
        server.event("ended", name);
    }
    drop(taken);
    until("health", || (server.health() == 200).then_some(()));
    assert!(server.restarts() >= 1);
    assert_ne!(server.listener(), killed);
    let _next = names.map(push);
    for name in names {
        server.event("begun", name);
    }
    for name in names {
        server.goes_on(name);
    }
}

/// Its process is there, and nothing that it should do is done.
#[test]
fn a_listener_that_hangs_is_started_again() {
    let server = Server::start();
    let hanging = server.listener();
    // The server's own probe was answered before, once there are figures of two seconds.
    until("second object of the statistics", || {
        let stats = fs::read_to_string(server.home.path().join("serve.json")).ok()?;
        (stats.lines().count() > 2).then_some(())
    });
    let sent = Command::new("kill")
        .args(["-STOP", &hanging.to_string()])
        .status();
    assert!(sent.unwrap().success());
    until("restart", || (server.restarts() == 1).then_some(()));
    assert_ne!(server.listener(), hanging);
    let _pusher = Pusher::start(&format!("{}cam?key=s3cret", server.srt));
    server.event("begun", "/cam");
    server.goes_on("/cam");
}

#[test]
fn encrypted_pushes_need_the_passphrase() {
    let passphrase = "correct horse";
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("passphrase");
    fs::write(&file, format!("{passphrase}\n")).unwrap();
    let server = Server::start_with(&format!(
        "--ladder copy --srt-passphrase-file {}",
        file.display()
    ));
    let address = |options: &str, name: &str| {
        let (start, id) = server.srt.split_once('?').unwrap();
        format!("{start}?{options}{id}{name}?key=s3cret")
    };
    Pusher::start(&address("", "cam")).refused();
    Pusher::start(&address("passphrase=wrong horse&pbkeylen=16&", "cam")).refused();
    until("the count of both", || {
        (server.counter("refused_passphrase") == Some(2)).then_some(())
    });
    let pushers = [("/cam", 16), ("/desk", 32)].map(|(name, octets)| {
        let options = format!("passphrase={passphrase}&pbkeylen={octets}&");
        let pusher = Pusher::start(&address(&options, name.trim_start_matches('/')));
        server.event("begun", name);
        pusher
    });
    assert_eq!(server.counter("malformed"), Some(0));
    assert_eq!(server.counter("refused_passphrase"), Some(2));
    drop(pushers);
}

#[test]
fn srt_without_its_library_says_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let serve = |arguments: &str| {
        let line = format!("serve --rtmp off --port 0 --json --duration 100ms {arguments}");
        let mut command = command(home.path(), &line);
        command.env("NAMECAST_LIBSRT", home.path().join("nothing.so"));
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (status, said) = serve("--srt 127.0.0.1:0");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot load libsrt from"), "{said}");
    let (status, said) = serve("");
    assert_eq!(status, Some(0), "{said}");
}
