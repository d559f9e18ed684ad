//! Serves the files of a folder, and fetches one: `cargo run --example serve -- udp://127.0.0.1:6363 /demo/files .`
use std::{env, error::Error, fs, path::PathBuf};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let argument = |n: usize, default: &str| env::args().nth(n).unwrap_or(default.to_owned());
    let address = argument(1, "udp://127.0.0.1:6363");
    let prefix = argument(2, "/demo/files");
    let folder = PathBuf::from(argument(3, "."));

    let here = namecast::connect(&address).await?;
    let mut files = here.serve(&prefix).await?;
    tokio::spawn(async move {
        while let Some(name) = files.requested().await {
            let file = name.last().and_then(|last| str::from_utf8(last.value).ok());
            let file = file.filter(|file| !file.contains('/'));
            match file.and_then(|file| fs::read(folder.join(file)).ok()) {
                Some(content) => drop(files.put(&name, content).await),
                None => files.refuse(&name),
            }
        }
    });

    let there = namecast::connect(&address).await?;
    let file = there.fetch(&format!("{prefix}/Cargo.toml")).await?;
    println!("{}: {} bytes", file.name, file.content.len());
    Ok(())
}
