//! A thermometer and its reader, each on a node: `cargo run --example data -- udp://127.0.0.1:6363 /demo/thermometer`
use std::{env, error::Error, time::Duration};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let argument = |n: usize, default: &str| env::args().nth(n).unwrap_or(default.to_owned());
    let address = argument(1, "udp://127.0.0.1:6363");
    let name = argument(2, "/demo/thermometer");

    let here = namecast::connect(&address).await?;
    let thermometer = here.publish(&name)?.data("celsius", 10, 8).start().await?;
    tokio::spawn(async move {
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        for number in 0.. {
            tick.tick().await;
            let celsius = 21.0 + f64::from(number % 50) / 10.0;
            thermometer.send("celsius", format!("{celsius:.1}")).await?;
        }
        Ok::<(), namecast::Error>(())
    });

    let there = namecast::connect(&address).await?;
    let mut readings = there.watch(&name)?.data().start().await?;
    while let Some(reading) = readings.next_frame().await {
        println!("{} °C", String::from_utf8_lossy(&reading.payload));
    }
    Ok(())
}
