//! What the documentation says may be typed.

use clap::CommandFactory;
use namecast_media::ingest::source::Input;
use namecast_units::ByteSize;

use super::*;

fn parse(line: &str) -> Result<Command, String> {
    let parsed = Arguments::try_parse_from(line.split_whitespace());
    parsed
        .map(|parsed| parsed.command)
        .map_err(|error| error.to_string())
}

#[test]
fn the_definition_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn defaults_are_the_documented_ones() {
    let Ok(Command::Demo(demo)) = parse("namecast demo") else {
        panic!("demo needs no arguments");
    };
    assert_eq!(demo.name.to_string(), "/demo");
    assert_eq!(demo.media.inputs(), [Input::Test]);
    assert_eq!(demo.media.encoding.ladder, None);
    let cutting = namecast_stream::SegmenterConfig::default();
    let given = (
        demo.media.encoding.segment_size as usize,
        demo.media.encoding.fec as usize,
    );
    assert_eq!(given, (cutting.segment_size, cutting.parity_percent));
    assert_eq!((demo.page.port, demo.page.listen), (8_080, false));
    assert_eq!(demo.run.duration, None);
}

#[test]
fn a_title_is_one_line() {
    let titled = |title: &str| {
        let words = ["namecast", "publish", "/cam", "--title", title];
        Arguments::try_parse_from(words).map_err(|error| error.to_string())
    };
    assert!(titled("The view from here").is_ok());
    for wrong in ["", "two\nlines", &"x".repeat(201)] {
        let refused = titled(wrong).unwrap_err();
        assert!(refused.contains("1 to 200 octets"), "{refused}");
    }
}

#[test]
fn what_is_packaged_has_a_ladder_of_its_own_unless_one_is_named() {
    let packaged = |options: &str| {
        let Ok(Command::Publish(mut publish)) = parse(&format!("namecast publish /tv {options}"))
        else {
            panic!("documented");
        };
        let segment = publish.packaging.choose(&mut publish.media);
        let ladder = publish.media.encoding.ladder.map(|it| it.to_string());
        (segment.map(|it| it.as_secs()), ladder)
    };
    let ladder = |text: &str| Some(text.to_owned());
    assert_eq!(packaged(""), (None, None));
    assert_eq!(
        packaged("--package hls"),
        (Some(4), ladder("300k,1M,2500k"))
    );
    let named = packaged("--package hls --segment 2s --ladder 1M");
    assert_eq!(named, (Some(2), ladder("1M")));
    let refused = parse("namecast publish /tv --package hls --segment 100ms").unwrap_err();
    assert!(refused.contains("write 1s to 30s"), "{refused}");
    assert!(parse("namecast publish /tv --segment 2s").is_err());
}

#[test]
fn the_documented_options_are_understood() {
    let line = "namecast publish /cam --input film.mp4 --loop --ladder 500k,2M --segment-size 1200 --fec 50% \
                --connect udp4://10.0.0.1:6363 --stats s.json --duration 90s";
    let Ok(Command::Publish(publish)) = parse(line) else {
        panic!("documented");
    };
    assert_eq!(publish.media.inputs(), [Input::File("film.mp4".into())]);
    assert_eq!(
        (
            publish.media.encoding.segment_size,
            publish.media.encoding.fec
        ),
        (1_200, 50)
    );
    let connect = publish.connect.connect.map(|uri| uri.to_string());
    assert_eq!(connect.as_deref(), Some("udp4://10.0.0.1:6363"));
    let Ok(Command::Cs(cs)) = parse("namecast cs info --forwarder wss://router.example/ws/") else {
        panic!("what it was called before");
    };
    let connect = cs.target.connect.connect.map(|uri| uri.to_string());
    assert_eq!(connect.as_deref(), Some("wss://router.example:443/ws/"));
    assert_eq!(publish.run.duration, Some(Duration::from_secs(90)));
    let Ok(Command::Watch(watch)) =
        parse("namecast watch /cam --output - --target 250ms --rung 1M")
    else {
        panic!("documented");
    };
    assert_eq!(watch.target, Some(Duration::from_millis(250)));
    assert!(watch.from.is_none());
    assert!(parse("namecast watch /x --from -1m30s").is_ok());
    let Ok(Command::Forwarder(forwarder)) = parse("namecast forwarder --udp off --unix /tmp/n")
    else {
        panic!("documented");
    };
    assert_eq!(forwarder.udp, Some(forwarder::Socket(None)));
    assert_eq!(forwarder.tcp, None);
}

#[test]
fn errors_say_what_to_write_instead() {
    let refused = |line: &str| parse(line).unwrap_err();
    assert!(refused("namecast demo --fec 200%").contains("write 0% to 100%"));
    assert!(refused("namecast demo --ladder fast").contains("write 200k, 1M"));
    assert!(refused("namecast demo --codec mpeg2").contains("h264, vp8, vp9 or av1"));
    assert!(refused("namecast demo --duration soon").contains("write 100ms, 5s"));
    assert!(refused("namecast watch /x --connect 1.2.3.4").contains("udp://"));
    assert!(refused("namecast demo --segment-size 9000").contains("8000"));
}

/// Whether any word may be a value of an option.
fn is_text(argument: &clap::Arg) -> bool {
    let kind = argument.get_value_parser().type_id();
    [
        core::any::TypeId::of::<String>(),
        core::any::TypeId::of::<PathBuf>(),
        core::any::TypeId::of::<namecast_media::record::Destination>(),
        core::any::TypeId::of::<namecast_packet::Name>(),
        core::any::TypeId::of::<ticket::Ticket>(),
        core::any::TypeId::of::<Input>(),
        core::any::TypeId::of::<namecast_media::voice::Sink>(),
    ]
    .iter()
    .any(|text| kind == *text)
        || argument.get_id() == "interface"
}

/// Every option of every command that takes a value, and the first positional argument, with the words that lead to it.
fn each_argument(
    command: &clap::Command,
    path: &[String],
    found: &mut impl FnMut(&[String], &clap::Arg),
) {
    let arguments = command.get_arguments();
    for argument in arguments.filter(|argument| argument.get_action().takes_values()) {
        found(path, argument);
    }
    for inner in command.get_subcommands() {
        let path = [path, &[inner.get_name().to_owned()]].concat();
        each_argument(inner, &path, found);
    }
}

/// What is wrong with how `value` is refused, if it should be.
fn problem(
    argument: &clap::Arg,
    value: &str,
    parsed: Result<clap::ArgMatches, clap::Error>,
) -> Option<String> {
    use clap::error::ErrorKind;

    let may_be_taken = is_text(argument) || value != "abc";
    let error = match parsed {
        Ok(_) => return (!may_be_taken).then(|| "taken".to_owned()),
        Err(error) => error,
    };
    let said = error.to_string();
    let is_good = match error.kind() {
        ErrorKind::ValueValidation => said.contains("write "),
        ErrorKind::InvalidValue => {
            said.contains("possible values") || said.contains("a value is required")
        }
        // The value was taken, and others are missing.
        ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand => may_be_taken,
        _ => false,
    };
    (!is_good || error.exit_code() != 2).then_some(said)
}

/// Generated from the command tree: whatever is written where something else is expected, is refused with exit status 2 and a
/// sentence that says what to write, and no text passes for a number.
#[test]
fn values_of_the_wrong_kind_are_refused_with_what_to_write() {
    const WRONG: [&str; 5] = ["-1", "abc", "1e99", "", "99999999999999999999"];
    let mut command = Arguments::command();
    command.build();
    let (mut lines, mut problems) = (0, Vec::new());
    let tree = command.clone();
    each_argument(&tree, &["namecast".to_owned()], &mut |path, argument| {
        for value in WRONG {
            let mut line = path.to_vec();
            match (argument.get_long(), argument.get_index()) {
                (Some(long), _) => line.push(format!("--{long}={value}")),
                (None, Some(1)) => line.extend(["--".to_owned(), value.to_owned()]),
                _ => continue,
            }
            lines += 1;
            let parsed = command.try_get_matches_from_mut(&line);
            let problem = problem(argument, value, parsed);
            problems.extend(problem.map(|problem| format!("{}: {problem}", line.join(" "))));
        }
    });
    assert!(lines > 500, "{lines}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn archives_keep_by_age_and_size() {
    let Ok(Command::Archive(archive)) =
        parse("namecast archive /x --store s3://b/p --keep 24h --keep-size 10G")
    else {
        panic!("documented");
    };
    assert_eq!(archive.keep.keep, Some(Duration::from_secs(86_400)));
    assert_eq!(
        archive.keep.keep_size,
        Some(ByteSize::bytes(10_000_000_000))
    );
    assert!(parse("namecast archive /x --keep-size 0").is_err());
    assert!(parse("namecast archive /x --keep-size 5X").is_err());
}

/// The second sound is named so, lines come as they are, and all is over when each is.
#[tokio::test]
async fn several_inputs_are_published_together() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let sound = |name| {
        let line = "-nostdin -loglevel error -f lavfi -i sine=duration=0.2";
        let mut command = std::process::Command::new("ffmpeg");
        let status = command.args(line.split(' ')).arg(file(name)).status();
        assert!(status.unwrap().success());
    };
    sound("a.wav");
    sound("b.wav");
    std::fs::write(file("lines"), "one\ntwo\r\n").unwrap();
    let line = format!(
        "namecast publish /x --input {} --input {} --data gps={}",
        file("a.wav"),
        file("b.wav"),
        file("lines")
    );
    let Ok(Command::Publish(publish)) = parse(&line) else {
        panic!("documented");
    };
    let mut sources = sources::Sources::open(&publish.media).await.unwrap();
    let names = sources.streams.iter().map(|stream| stream.name.as_str());
    assert!(names.eq(["audio", "audio-2", "gps"]));
    let (mut frames, mut lines) = (std::collections::BTreeMap::new(), Vec::new());
    loop {
        match sources.next().await {
            sources::Came::Frame(stream, _) => *frames.entry(stream).or_insert(0) += 1,
            sources::Came::Sample(stream, line) => {
                assert_eq!(stream, "gps");
                lines.push(line);
            }
            sources::Came::Trouble(text) => panic!("{text}"),
            sources::Came::Over(outcome) => break outcome.unwrap(),
        }
    }
    assert!(frames["audio"] >= 9 && frames["audio-2"] >= 9, "{frames:?}");
    assert_eq!(lines, ["one", "two"]);
    let Ok(Command::Publish(twice)) = parse("namecast publish /x --input - --data gps=-") else {
        panic!("documented");
    };
    let refused = sources::Sources::open(&twice.media).await.err().unwrap();
    assert!(refused.to_string().contains("can be read once"));
}

/// Everything but the last word is a file.
#[test]
fn send_takes_files_and_a_name() {
    let Ok(Command::Send(send)) = parse("namecast send film.mkv notes.txt /alice/film --until 3")
    else {
        panic!("documented");
    };
    let files: Vec<_> = send.files.iter().map(|file| file.to_str()).collect();
    assert_eq!(files, [Some("film.mkv"), Some("notes.txt")]);
    assert_eq!(
        (send.name.to_string().as_str(), send.until),
        ("/alice/film", Some(3))
    );
    assert!(parse("namecast send /alice/film").is_err(), "no file");
    let both = parse("namecast receive /alice/film --into here --output there");
    assert!(both.is_err(), "two places for one file");
}
