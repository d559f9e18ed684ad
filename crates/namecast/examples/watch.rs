//! Watches a video, and prints its frames: `cargo run --example watch -- udp://127.0.0.1:6363 /demo/camera`
use std::{env, error::Error};

use namecast::Watched;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let argument = |n: usize, default: &str| env::args().nth(n).unwrap_or(default.to_owned());
    let node = namecast::connect(&argument(1, "udp://127.0.0.1:6363")).await?;
    let watch = node.watch(&argument(2, "/demo/camera"))?;
    let mut watching = watch.start().await?;
    while let Some(watched) = watching.next().await {
        match watched {
            Watched::Frame(frame) => {
                let (number, size) = (frame.position, frame.payload.len());
                let kind = if frame.key { "key" } else { "delta" };
                println!("frame {number}: {size} bytes, {kind}");
            }
            Watched::Signer(signer) => println!("signed by {}", signer.key_name),
            Watched::Event(event) if event.is_detail() => {}
            Watched::Event(event) => println!("{event}"),
            Watched::Catalogue(_) | Watched::Discontinuity { .. } => {}
        }
    }
    Ok(())
}
