//! Publishes a test picture that ffmpeg encodes: `cargo run --example publish -- udp://127.0.0.1:6363 /demo/camera`
use std::{env, error::Error, io::Read, process::Command, process::Stdio};

use namecast::{Bitrate, EncodedFrame, VideoRung};

const FFMPEG: &str = "-v error -re -f lavfi -i testsrc2=size=320x180:rate=30 \
    -c:v libvpx -deadline realtime -b:v 300k -g 30 -f ivf -";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let argument = |n: usize, default: &str| env::args().nth(n).unwrap_or(default.to_owned());
    let node = namecast::connect(&argument(1, "udp://127.0.0.1:6363")).await?;
    let rung = VideoRung::new("300k", Bitrate::kbps(300), 320, 180);
    let camera = node.publish(&argument(2, "/demo/camera"))?;
    let camera = camera.video("vp8", 30, 30, [rung]).start().await?;
    let mut ffmpeg = Command::new("ffmpeg");
    let ffmpeg = ffmpeg.args(FFMPEG.split_whitespace());
    let ffmpeg = ffmpeg.stdout(Stdio::piped()).spawn()?;
    let mut frames = ffmpeg.stdout.ok_or("ffmpeg has no output")?;
    frames.read_exact(&mut [0; 32])?; // The IVF header; each frame has one of 12 octets.
    for position in 0.. {
        let mut header = [0; 12];
        frames.read_exact(&mut header)?;
        let mut payload = vec![0; u16::from_le_bytes([header[0], header[1]]).into()];
        frames.read_exact(&mut payload)?;
        let frame = EncodedFrame::at(node.wall(), position, payload[0] & 1 == 0, payload);
        camera.send_frame("video", "300k", frame).await?;
    }
    Ok(())
}
