//! Which figures Prometheus reads, and what they are called there.

/// A command, and the tables of its own figures.
#[derive(Debug)]
pub(crate) struct Command {
    /// Its name.
    pub(super) name: &'static str,
    pub(super) tables: &'static [Table],
}

/// Metrics of one kind of thing.
#[derive(Debug)]
pub(crate) struct Table {
    /// What their names begin with, after `namecast_`.
    pub(super) prefix: &'static str,
    /// Where they are among all figures. Steps of a path are separated by dots: `name` is a field; `name{label}` every entry of a map,
    /// with its key as label; `name[label=field,…]` every element of a list, with these of its fields as labels; `name=word`, as
    /// the last step, 1 if the field is that word, else 0. Paths that end with `_ms` or `_bps` are in milliseconds and bits per
    /// second.
    pub(super) root: &'static str,
    pub(super) metrics: &'static [Metric],
}

/// Kind, name, path below the root with constant labels behind a space, and what it is.
pub(super) type Metric = (Kind, &'static str, &'static str, &'static str);

/// What can be done with the numbers of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// It is as it is now.
    Gauge,
    /// Counts of durations, by size.
    Histogram,
}

use Kind::{Counter, Gauge, Histogram};

pub(crate) static FORWARDER: Command = command("forwarder", &[]);
pub(crate) static PUBLISH: Command = command("publish", &[PUBLISHER]);
pub(crate) static DEMO: Command = command("demo", &[PUBLISHER, KEPT]);
pub(crate) static SERVE: Command = command("serve", &[PUSHED, GATE]);
pub(crate) static WATCH: Command = command("watch", &[WATCHER, VIDEO_AND_AUDIO]);
pub(crate) static ARCHIVE: Command = command("archive", &[ARCHIVED]);
pub(crate) static EXCHANGE: Command = command("exchange", &[SESSION]);
pub(crate) static TALK: Command = command("talk", &[SESSION, SOUND]);
#[cfg(unix)]
pub(crate) static REMOTE: Command = command("remote", &[SESSION, TERMINAL]);
pub(crate) static PUT: Command = command("put", &[OBJECT]);
pub(crate) static SEND: Command = command("send", &[OBJECT]);
pub(crate) static RECEIVE: Command = command("receive", &[RECEIVED]);
pub(crate) static PING: Command = command("ping", &[PINGS]);
#[cfg(feature = "lab")]
pub(crate) static IMPAIR: Command = command("impair", &[RELAY]);

/// What every command has: its health, and a node.
pub(super) static COMMON: [Table; 5] = [
    table("", "health", HEALTH),
    table("", "node", NODE),
    table("web_", "web", WEB),
    table("", "supervised", SUPERVISED),
    table("trace_", "trace", TRACED),
];
const PUBLISHER: Table = table("publisher_", "own", PUBLISHED);
const PUSHED: Table = table("publisher_", "own.streams{name}", PUBLISHED);
const GATE: Table = table("push_", "own", PUSHES);
const WATCHER: Table = table("watcher_", "own", WATCHED);
const VIDEO_AND_AUDIO: Table = table("watcher_", "own", PLAYED);
const ARCHIVED: Table = table("archive_", "own", KEEPING);
const KEPT: Table = table("archive_", "own.archive", KEEPING);
const SESSION: Table = table("session_", "own", CALLED);
const SOUND: Table = table("sound_", "own.sound", HEARD);
#[cfg(unix)]
const TERMINAL: Table = table("remote_", "own", TYPED);
const OBJECT: Table = table("object_", "own", SERVED);
const RECEIVED: Table = table("receiver_", "own", OBTAINED);
const PINGS: Table = table("ping_", "own", PINGED);
#[cfg(feature = "lab")]
const RELAY: Table = table("impair_", "own", RELAYED);

const fn command(name: &'static str, tables: &'static [Table]) -> Command {
    Command { name, tables }
}

const fn table(prefix: &'static str, root: &'static str, metrics: &'static [Metric]) -> Table {
    Table {
        prefix,
        root,
        metrics,
    }
}

const HEALTH: &[Metric] = &[(Gauge, "healthy", "ok", "Whether /health says ok")];

const TRACED: &[Metric] = &[
    (
        Counter,
        "frames",
        "written outcome=written",
        "Frames traced, or not",
    ),
    (Counter, "frames", "missed outcome=missed", ""),
    (Counter, "frames", "beyond outcome=beyond_size", ""),
    (Counter, "frames", "failed outcome=failed", ""),
];

#[rustfmt::skip]
const SUPERVISED: &[Metric] = &[
    (Gauge, "listener_up", "listeners[listener=listener].up", "Whether a listener of the command listens"),
    (Counter, "listener_restarts", "listeners[listener=listener].restarts", "Times that a listener was started again after it had ended"),
];

#[rustfmt::skip]
const WEB: &[Metric] = &[
    (Counter, "connections", "servers[server=uri].accepted", "Connections to the web servers of page and metrics"),
    (Gauge, "connections_open", "servers[server=uri].open", "Of these, those that are open"),
    (Counter, "refused", "servers[server=uri].refused{reason}", "Connections refused, and by that of metrics requests of foreign pages"),
];

#[rustfmt::skip]
const NODE: &[Metric] = &[
    (Gauge, "uptime_seconds", "uptime_seconds", "Time since the node started"),
    (Gauge, "fib_prefixes", "routed_prefixes", "Prefixes that have a next hop"),
    (Gauge, "pit_interests", "pending_interests", "Interests that wait for Data"),
    (Gauge, "cached_packets", "cached_packets", "Data packets in the content store"),
    (Counter, "cache_hits", "content_store_hits", "Interests that the content store answered"),
    (Counter, "cache_misses", "content_store_misses", "Interests that it could not answer"),
    (Counter, "aggregated_interests", "aggregated", "Interests that waited for an equal one's Data"),
    (Counter, "satisfied_interests", "satisfied", "Interests that Data satisfied"),
    (Counter, "unsatisfied_interests", "unsatisfied", "Interests that expired or were refused"),
    (Histogram, "retrieval_seconds", "retrieval", "Data retrieval delay: from an Interest that left to its Data"),
    (Counter, "unsolicited_cached", "unsolicited_cached", "Data cached that nobody had requested"),
    (Counter, "routes_learned", "routes_learned", "Routes made from prefix announcements"),
    (Counter, "announcements_refused", "announcements_refused", "Prefix announcements that nothing was made of"),
    (Counter, "announcements_out_of_period", "announcements_out_of_period", "Of these, those outside of their period of validity"),
    (Counter, "rate_tags_set", "feedback.rate_tags_set", "Data from the content store sent with the rate behind it"),
    (Counter, "feedback_refused", "feedback.refused", "Rates, hop counts and sources of neighbours that make no sense"),
    (Counter, "feedback_flows_refused", "feedback.flows_refused", "Data of flows that found no place to be measured"),
    (Counter, "path_labels_followed", "feedback.labels_followed", "Interests sent to the next hop that their label names"),
    (Counter, "path_labels_refused", "feedback.labels_refused", "Path labels that lead nowhere"),
    (Counter, "path_labels_aggregated", "feedback.labels_aggregated", "Interests with path labels that waited for another's Data"),
    (Counter, "path_discoveries", "feedback.discoveries", "Interests sent to discover a path"),
    (Counter, "path_discoveries_refused", "feedback.discoveries_refused", "Such Interests answered from the content store, as too many came"),
    (Gauge, "readvertise_daemons", "readvertising.daemons", "Whether a routing daemon is there"),
    (Gauge, "readvertise_prefixes", "readvertising.prefixes", "Prefixes that a routing daemon is to spread"),
    (Gauge, "readvertise_told", "readvertising.told", "Of these, those that it has agreed to"),
    (Counter, "readvertise_commands", "readvertising.registered outcome=registered", "Commands to the routing daemon"),
    (Counter, "readvertise_commands", "readvertising.unregistered outcome=unregistered", ""),
    (Counter, "readvertise_commands", "readvertising.failed outcome=failed", ""),
    (Counter, "tickets_issued", "tickets.issued", "Links that let a page publish a name"),
    (Counter, "tickets_shown", "tickets.admitted outcome=admitted", "Such links that pages used, or tried to"),
    (Counter, "tickets_shown", "tickets.resumed outcome=resumed", ""),
    (Counter, "tickets_shown", "tickets.refused_token outcome=refused_token", ""),
    (Counter, "tickets_shown", "tickets.refused_used outcome=refused_used", ""),
    (Counter, "tickets_shown", "tickets.refused_expired outcome=refused_expired", ""),
    (Counter, "tickets_shown", "tickets.refused_name outcome=refused_name", ""),
    (Counter, "tickets_shown", "tickets.refused_origin outcome=refused_origin", ""),
    (Counter, "rights_admitted", "rights.admitted", "Registrations by members of [[trust]] roots"),
    (Counter, "rights_refused", "rights.refused{reason}", "Such registrations refused"),
    (Counter, "packets", "incoming.interests direction=in,kind=interest", "Network packets"),
    (Counter, "packets", "incoming.data direction=in,kind=data", ""),
    (Counter, "packets", "incoming.nacks direction=in,kind=nack", ""),
    (Counter, "packets", "outgoing.interests direction=out,kind=interest", ""),
    (Counter, "packets", "outgoing.data direction=out,kind=data", ""),
    (Counter, "packets", "outgoing.nacks direction=out,kind=nack", ""),
    (Counter, "frames", "incoming.frames direction=in", "Link packets"),
    (Counter, "frames", "outgoing.frames direction=out", ""),
    (Counter, "traffic_bytes", "incoming.octets direction=in", "Bytes of link packets"),
    (Counter, "traffic_bytes", "outgoing.octets direction=out", ""),
    (Counter, "bundles", "bundles{what}", "What became of bundles"),
    (Counter, "any_next", "any_next{what}", "Requests for any next packets, their Data, and reasons for refusals"),
    (Counter, "drops", "drops{reason}", "What the forwarder dropped"),
    (Counter, "link_drops", "link_drops{reason}", "What links and listeners lost"),
    (Gauge, "source_faces", "sources[source=source].faces", "Faces that those made who come from the same /24 or /56, of the 16 with most"),
    (Counter, "listener_accepted", "listeners[listener=uri].accepted", "Peers that came to a listener and got a face"),
    (Gauge, "listener_open", "listeners[listener=uri].open", "Of these, those whose face is there"),
    (Counter, "listener_drops", "listeners[listener=uri].drops{reason}", "What listeners refused and lost"),
    (Counter, "kernel_drops", "listeners[listener=uri].kernel_drops", "Datagrams that the kernel dropped, as a socket's buffer was full"),
    (Counter, "strategy_interests", "strategies[prefix=prefix,strategy=strategy].interests", "Interests that a strategy decided on"),
    (Counter, "strategy_retransmissions", "strategies[prefix=prefix,strategy=strategy].retransmissions", "Of these, sent again while pending"),
    (Counter, "strategy_suppressed", "strategies[prefix=prefix,strategy=strategy].suppressed", "Of these, held back as an equal one was on its way"),
    (Counter, "strategy_rejected", "strategies[prefix=prefix,strategy=strategy].rejected", "Of these, refused as there was no next hop"),
    (Counter, "strategy_satisfied", "strategies[prefix=prefix,strategy=strategy].satisfied", "Pending Interests that Data satisfied"),
    (Counter, "strategy_timeouts", "strategies[prefix=prefix,strategy=strategy].timeouts", "Pending Interests whose time ran out"),
    (Counter, "strategy_nacks", "strategies[prefix=prefix,strategy=strategy].nacks", "Nacks from next hops"),
    (Gauge, "face_up", "faces[face=id,remote=remote].state=up", "Whether the peer of a face can be reached"),
    (Counter, "face_packets", "faces[face=id,remote=remote].incoming.interests direction=in,kind=interest", "Network packets of a face"),
    (Counter, "face_packets", "faces[face=id,remote=remote].incoming.data direction=in,kind=data", ""),
    (Counter, "face_packets", "faces[face=id,remote=remote].incoming.nacks direction=in,kind=nack", ""),
    (Counter, "face_packets", "faces[face=id,remote=remote].outgoing.interests direction=out,kind=interest", ""),
    (Counter, "face_packets", "faces[face=id,remote=remote].outgoing.data direction=out,kind=data", ""),
    (Counter, "face_packets", "faces[face=id,remote=remote].outgoing.nacks direction=out,kind=nack", ""),
    (Counter, "face_bytes", "faces[face=id,remote=remote].incoming.octets direction=in", "Bytes of a face's link packets"),
    (Counter, "face_bytes", "faces[face=id,remote=remote].outgoing.octets direction=out", ""),
    (Counter, "face_bundles", "faces[face=id,remote=remote].bundles{what}", "What became of a face's bundles"),
    (Counter, "face_drops", "faces[face=id,remote=remote].drops{reason}", "What the forwarder dropped of a face"),
    (Counter, "face_link_drops", "faces[face=id,remote=remote].link_drops{reason}", "What a face's link lost"),
];

#[rustfmt::skip]
const PUBLISHED: &[Metric] = &[
    (Counter, "frames", "frames_published", "Frames and sound packets published, at all bitrates"),
    (Counter, "frames_refused", "frames_refused", "Frames that were encoded but not published"),
    (Counter, "frames_captured", "frames_captured", "Raw frames that came from the inputs"),
    (Counter, "frames_lost", "frames_lost", "Raw frames lost since an encoder was down"),
    (Counter, "encoder_restarts", "encoder_restarts", "Times an encoder was started again"),
    (Counter, "inputs_failed", "inputs_failed", "Inputs that failed while others went on"),
    (Counter, "input_silences", "input_silences", "Times that a live input gave nothing for five seconds"),
    (Counter, "input_damages", "input_damages", "Damages of inputs that were passed over"),
    (Histogram, "encoding_seconds", "encode_times", "From capture to the end of encoding"),
    (Counter, "interests", "interests_received", "Interests received"),
    (Counter, "interests_answered", "interests_answered_at_once waited=no", "Interests answered"),
    (Counter, "interests_answered", "interests_answered_after_waiting waited=yes", ""),
    (Counter, "interests_dropped", "interests_dropped", "Interests not answered"),
    (Gauge, "interests_pending", "interests_pending", "Interests that wait for their sample"),
    (Counter, "data", "data_sent", "Data packets sent"),
    (Counter, "payload_bytes", "payload_octets", "Bytes of encoded samples"),
    (Counter, "wire_bytes", "wire_octets", "Bytes of their packets, parity included"),
    (Gauge, "cache_bytes", "cache_octets", "Memory that cached samples take"),
    (Counter, "malformed", "malformed", "Packets that broke the format"),
    (Gauge, "readers", "sealed.readers", "Readers of what is sealed"),
    (Counter, "samples_sealed", "sealed.samples", "Samples sealed"),
    (Counter, "key_boxes", "sealed.boxes", "Key boxes published"),
    (Counter, "key_changes", "sealed.generations", "Times that all keys of sealed samples were changed"),
    (Counter, "reader_keys_refused", "sealed.bad_keys", "Readers whose X25519 key cannot be used"),
    (Counter, "key_box_interests", "sealed.interests", "Interests for key boxes"),
    (Counter, "key_box_interests_dropped", "sealed.refused reason=no_such_box", "Interests for key boxes dropped"),
    (Counter, "key_box_interests_dropped", "sealed.dropped_full reason=full", ""),
    (Counter, "segments", "package.segments_published", "Segments of a package, at all bitrates"),
];

#[rustfmt::skip]
const PUSHES: &[Metric] = &[
    (Counter, "admitted", "admitted", "Streams that were let in"),
    (Gauge, "open", "open", "Of these, those that are pushed now"),
    (Counter, "changed", "changed", "Streams that began anew with another codec, other sound or another track"),
    (Counter, "refused", "refused_key reason=key", "Streams that were refused"),
    (Counter, "refused", "refused_passphrase reason=passphrase", ""),
    (Counter, "refused", "refused_name reason=name", ""),
    (Counter, "refused", "refused_taken reason=taken", ""),
    (Counter, "refused", "refused_full reason=full", ""),
    (Counter, "refused", "refused_paused reason=paused", ""),
    (Counter, "refused", "refused_codec reason=codec", ""),
    (Counter, "refused", "refused_picture reason=picture", ""),
    (Counter, "refused", "refused_frame_rate reason=frame_rate", ""),
    (Counter, "refused", "refused_bitrate reason=bitrate", ""),
    (Counter, "malformed", "malformed", "Connections that broke their protocol or a bound"),
];

#[rustfmt::skip]
const WATCHED: &[Metric] = &[
    (Gauge, "playing", "state=playing", "Whether frames are coming"),
    (Gauge, "live", "liveness=live", "Whether what is shown is live"),
    (Histogram, "latency_seconds", "latency.histogram", "From the capture of a frame to its display"),
    (Gauge, "join_seconds", "join_ms", "From the first Interest to the first complete key sample"),
    (Counter, "rejoins", "rejoins", "Times that the watcher joined again by itself"),
    (Gauge, "rtt_seconds", "rtt_ms", "Time from Interest to Data for Data that existed already, smoothed"),
    (Gauge, "rtt_min_seconds", "rtt_min_ms", "Least such time of the last 10 s"),
    (Gauge, "queueing_seconds", "path.queueing_ms", "Time that packets queue on the path"),
    (Gauge, "path_loss_ratio", "path.loss", "Share of packets lost in the last 3 s"),
    (Gauge, "capacity_bytes_per_second", "path.capacity_bps", "What the path carries"),
    (Gauge, "goodput_bytes_per_second", "goodput_bps", "Payload of complete samples over the last second"),
    (Gauge, "throughput_bytes_per_second", "throughput_bps", "Data received over the last second, everything counted"),
    (Gauge, "controller_bytes_per_second", "controller_rate_bps", "Rate that the controller allows"),
    (Gauge, "target_seconds", "target_ms", "Playout target, reordering included"),
    (Gauge, "reorder_seconds", "reorder_ms", "Time that pictures take to be reordered"),
    (Gauge, "cache_hit_ratio", "cache_hit_share", "Share of samples that were not produced for this watcher"),
    (Counter, "interests", "interests_sent", "Interests that left"),
    (Counter, "interests_retransmitted", "interests_retransmitted", "Of those, sent again"),
    (Counter, "interests_timed_out", "interests_timed_out", "Interests whose timer ran out"),
    (Counter, "interests_nacked", "interests_nacked", "Interests that came back with a Nack"),
    (Gauge, "interests_pending", "interests_pending", "Interests not yet answered"),
    (Counter, "samples_opened", "sealed.opened", "Sealed samples that were opened"),
    (Counter, "samples_unopened", "sealed.not_a_reader reason=not_a_reader", "Sealed samples that were not opened"),
    (Counter, "samples_unopened", "sealed.before_joining reason=before_joining", ""),
    (Counter, "samples_unopened", "sealed.box_missing reason=box_missing", ""),
    (Counter, "samples_unopened", "sealed.damaged reason=damaged", ""),
    (Counter, "samples_unopened", "sealed.undecodable reason=undecodable", ""),
    (Counter, "rosters_held_back", "rosters_held_back", "Versions of the roster that the publisher has and that did not arrive"),
    (Counter, "key_box_packets", "sealed.boxes", "Packets of key boxes received"),
    (Counter, "verification_failures", "verification_failures", "Packets whose signature or digest was wrong"),
    (Counter, "packets_unexpected", "packets_unexpected", "Packets malformed, or that nobody had requested"),
];

#[rustfmt::skip]
const PLAYED: &[Metric] = &[
    (Counter, "samples", "video.received stream=video,outcome=received", "Samples that came, or did not"),
    (Counter, "samples", "video.lost stream=video,outcome=lost", ""),
    (Counter, "samples", "audio.received stream=audio,outcome=received", ""),
    (Counter, "samples", "audio.lost stream=audio,outcome=lost", ""),
    (Counter, "frames_late", "video.late stream=video", "Frames complete only after they were due"),
    (Counter, "frames_late", "audio.late stream=audio", ""),
    (Counter, "skips", "video.skips stream=video", "Times that playback skipped to a later key sample"),
    (Counter, "skips", "audio.skips stream=audio", ""),
    (Counter, "recovered", "video.recovered_fec stream=video,by=parity", "Samples completed by repair"),
    (Counter, "recovered", "video.recovered_retransmission stream=video,by=retransmission", ""),
    (Counter, "recovered", "audio.recovered_fec stream=audio,by=parity", ""),
    (Counter, "recovered", "audio.recovered_retransmission stream=audio,by=retransmission", ""),
    (Counter, "repair_bytes", "video.repair_bytes stream=video", "Bytes received that were requested in repair"),
    (Counter, "repair_bytes", "audio.repair_bytes stream=audio", ""),
    (Gauge, "buffer_seconds", "video.buffer_ms stream=video", "Complete frames ahead of the one due now"),
    (Gauge, "buffer_seconds", "audio.buffer_ms stream=audio", ""),
];

#[rustfmt::skip]
const KEEPING: &[Metric] = &[
    (Counter, "samples", "samples outcome=complete", "Samples kept, or not"),
    (Counter, "samples", "samples_incomplete outcome=incomplete", ""),
    (Counter, "samples", "samples_missing outcome=missing", ""),
    (Gauge, "backlog_samples", "backlog", "Samples that are published and not kept yet"),
    (Counter, "written_bytes", "bytes_written", "Bytes written"),
    (Gauge, "chunks", "chunks", "Chunks kept"),
    (Gauge, "size_bytes", "octets", "Bytes kept"),
    (Gauge, "oldest_timestamp_seconds", "since", "When the oldest chunk was begun, in seconds since 1970"),
    (Counter, "chunks_deleted", "chunks_deleted", "Chunks deleted by age and size"),
    (Counter, "records_damaged", "records_damaged", "Damaged records that were met"),
    (Counter, "store_failures", "store_failures", "Times that writing, or the directory or bucket, failed"),
    (Counter, "verification_failures", "verification_failures", "Packets that were not what was signed"),
    (Counter, "interests", "interests_received", "Interests received"),
    (Counter, "interests_answered", "interests_answered", "Of those, answered"),
    (Counter, "interests_not_found", "interests_not_found", "Of those, refused as nothing is kept under their name"),
    (Counter, "interests_dropped", "interests_dropped", "Of those, dropped as too many waited, or looking took too long"),
];

#[rustfmt::skip]
const CALLED: &[Metric] = &[
    (Gauge, "rtt_seconds", "rtt_ms", "Round-trip time of the call, smoothed"),
    (Counter, "packets", "packets_sent direction=out", "Packets of the last call"),
    (Counter, "packets", "packets_received direction=in", ""),
    (Counter, "packets_repeated", "packets_repeated", "Packets sent more than once"),
    (Counter, "packets_given_up", "packets_given_up", "Packets that never came"),
    (Counter, "packets_refused", "packets_replayed reason=replayed", "Packets that were refused"),
    (Counter, "packets_refused", "packets_forged reason=forged", ""),
    (Counter, "interests", "interests_sent", "Interests that left"),
    (Counter, "interests_retransmitted", "interests_retransmitted", "Of those, sent again"),
    (Counter, "moved_bytes", "bytes_sent direction=out", "Bytes of content moved"),
    (Counter, "moved_bytes", "bytes_received direction=in", ""),
    (Counter, "setups_refused", "setups_refused{reason}", "Calls that were refused"),
];

#[rustfmt::skip]
const HEARD: &[Metric] = &[
    (Counter, "packets_spoken", "packets_spoken", "Packets of sound sent"),
    (Counter, "packets_played", "packets_played", "Packets of sound played"),
    (Counter, "packets_concealed", "packets_concealed", "Packets replaced by an estimate"),
    (Counter, "packets_late", "packets_late", "Packets that came after their time"),
    (Gauge, "delay_seconds", "mouth_to_ear_ms.p50 percentile=50", "From microphone to loudspeaker"),
    (Gauge, "delay_seconds", "mouth_to_ear_ms.p95 percentile=95", ""),
];

#[cfg(unix)]
#[rustfmt::skip]
const TYPED: &[Metric] = &[
    (Gauge, "echo_seconds", "echo_ms.p50 percentile=50", "From a key to what the program prints for it"),
    (Gauge, "echo_seconds", "echo_ms.p99 percentile=99", ""),
];

#[rustfmt::skip]
const SERVED: &[Metric] = &[
    (Gauge, "size_bytes", "size", "Bytes of the object"),
    (Counter, "segments_sent", "provided", "Segments sent for requests of any next"),
    (Counter, "parity_sent", "parity", "Parity segments sent"),
    (Counter, "interests_answered", "answered", "Interests for names answered"),
    (Counter, "interests_refused", "refused", "Interests sent back with a Nack"),
    (Counter, "malformed", "malformed", "Packets that broke the format"),
    (Counter, "reports", "reports", "Reports of receivers"),
    (Gauge, "receiving", "receiving", "Receivers that report and lack something"),
    (Counter, "complete", "complete", "Receivers that reported all"),
];

#[rustfmt::skip]
const OBTAINED: &[Metric] = &[
    (Gauge, "size_bytes", "size", "Bytes of what is sent"),
    (Gauge, "segments_missing", "missing", "Segments that are needed yet"),
    (Counter, "segments", "received", "Segments received that were missing"),
    (Counter, "segments_any_next", "received_any_next", "Of these, for requests of any next"),
    (Counter, "segments_from_neighbours", "received_from_neighbours", "Of these, requested of neighbours while others came"),
    (Counter, "segments_served", "served", "Segments that neighbours got"),
    (Counter, "duplicates", "duplicates", "Segments received that were not missing"),
    (Counter, "forged", "forged", "Segments whose signature or content is wrong"),
    (Counter, "marked", "marked", "Segments with a congestion mark"),
    (Counter, "unexpected", "unexpected", "Packets that belong to nothing"),
    (Gauge, "rate_bps", "rate_bps", "Rate of content, bits a second"),
];

#[rustfmt::skip]
const PINGED: &[Metric] = &[
    (Counter, "served", "served", "Pings of others answered"),
    (Counter, "sent", "sent", "Pings sent"),
    (Counter, "outcomes", "answered outcome=answered", "What became of pings"),
    (Counter, "outcomes", "nacked outcome=nacked", ""),
    (Counter, "outcomes", "timed_out outcome=timed_out", ""),
    (Histogram, "rtt_seconds", "rtt", "From a ping to its answer"),
];

#[cfg(feature = "lab")]
#[rustfmt::skip]
const RELAYED: &[Metric] = &[
    (Gauge, "clients", "clients", "Clients known"),
    (Counter, "datagrams_refused", "refused", "Datagrams from clients beyond the bound"),
    (Gauge, "realtime", "realtime", "Whether the relay has real-time priority"),
    (Gauge, "delay_error_seconds", "recent_error_ms.p50 percentile=50", "How much later than the link wants frames left, over the last second"),
    (Gauge, "delay_error_seconds", "recent_error_ms.p99 percentile=99", ""),
    (Counter, "datagrams_received", "forward.received direction=forward", "Datagrams that came to a link"),
    (Counter, "datagrams_received", "backward.received direction=backward", ""),
    (Counter, "received_bytes", "forward.received_bytes direction=forward", "Bytes of these"),
    (Counter, "received_bytes", "backward.received_bytes direction=backward", ""),
    (Counter, "datagrams_delivered", "forward.delivered direction=forward", "Datagrams sent on, copies included"),
    (Counter, "datagrams_delivered", "backward.delivered direction=backward", ""),
    (Counter, "delivered_bytes", "forward.delivered_bytes direction=forward", "Bytes of these"),
    (Counter, "delivered_bytes", "backward.delivered_bytes direction=backward", ""),
    (Counter, "datagrams_dropped", "forward.dropped{reason} direction=forward", "Datagrams that did not pass a link"),
    (Counter, "datagrams_dropped", "backward.dropped{reason} direction=backward", ""),
    (Counter, "datagrams_unsent", "forward.send_failed direction=forward", "Datagrams that passed it and were not sent"),
    (Counter, "datagrams_unsent", "backward.send_failed direction=backward", ""),
    (Counter, "datagrams_marked", "forward.marked direction=forward", "Datagrams with a congestion mark"),
    (Counter, "datagrams_marked", "backward.marked direction=backward", ""),
    (Gauge, "queue_datagrams", "forward.queue_packets direction=forward", "Datagrams that wait in the queue"),
    (Gauge, "queue_datagrams", "backward.queue_packets direction=backward", ""),
];
