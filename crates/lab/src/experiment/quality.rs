//! `namecast experiment quality`: how good the pictures of a ladder's rungs are, for streams in experiment files.

use namecast_command::report;
use namecast_media::ingest::quality::RungQuality;
use serde_json::{Value, json};

/// Rows and columns for people, and the lines for a stream in an experiment file.
pub(super) fn text(rungs: &[RungQuality]) -> String {
    let measures: Vec<&str> = measures(rungs);
    let rows = rungs.iter().map(|one| {
        let figures = measures.iter().map(|measure| figure(one, measure));
        let figures: Vec<String> = figures.collect();
        let rung = &one.rung;
        [
            rung.label.clone(),
            rung.size.to_string(),
            one.encoded.to_string(),
            figures.join("  "),
        ]
    });
    let head = measures.join("  ").to_uppercase();
    let table = report::table(["RUNG", "PICTURE", "ENCODED", &head], rows);
    let quoted = rungs.iter().map(|one| format!("\"{}\"", one.rung.label));
    let quoted: Vec<String> = quoted.collect();
    let lists = measures.iter().map(|measure| {
        let figures = rungs.iter().map(|one| figure(one, measure));
        format!("{measure} = [{}]", figures.collect::<Vec<_>>().join(", "))
    });
    let lists: Vec<String> = lists.collect();
    let (rungs, lists) = (quoted.join(", "), lists.join(", "));
    format!("{table}\nrungs = [{rungs}]\nquality = {{ {lists} }}\n")
}

/// The same for programs.
pub(super) fn json(rungs: &[RungQuality]) -> Value {
    let rung = |one: &RungQuality| {
        json!({
            "rung": one.rung.label,
            "bitrate": one.rung.bitrate.as_bps(),
            "width": one.rung.size.width,
            "height": one.rung.size.height,
            "encoded": one.encoded.as_bps(),
            "quality": one.measures,
        })
    };
    rungs.iter().map(rung).collect()
}

fn measures(rungs: &[RungQuality]) -> Vec<&'static str> {
    let first = rungs.first().into_iter();
    first.flat_map(|one| one.measures.keys().copied()).collect()
}

/// Shares have a place more than figures in dB or of a hundred.
fn figure(rung: &RungQuality, measure: &str) -> String {
    match rung.measures.get(measure) {
        Some(figure) if measure == "ssim" => format!("{figure:.4}"),
        Some(figure) => format!("{figure:.2}"),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use namecast_media::ingest::ladder::LadderWish;
    use namecast_sim::scenario::StreamSpec;
    use namecast_units::Bitrate;

    use super::*;

    #[test]
    fn what_is_printed_is_what_a_stream_reads() {
        let rung = |kbps: u64, psnr, ssim| RungQuality {
            rung: LadderWish::rung(Bitrate::kbps(kbps)).standing_alone(),
            encoded: Bitrate::kbps(kbps - 1),
            measures: BTreeMap::from([("psnr", psnr), ("ssim", ssim)]),
        };
        let text = text(&[rung(200, 30.004, 0.912_34), rung(1_500, 40.0, 0.99)]);
        let (table, lines) = text.split_once("\n\n").unwrap();
        assert_eq!(table.lines().next().unwrap().split_whitespace().count(), 5);
        let stream: StreamSpec = toml::from_str(lines).unwrap();
        let rungs = vec![Bitrate::kbps(200), Bitrate::kbps(1_500)];
        assert_eq!(stream.rungs, Some(rungs));
        assert_eq!(stream.quality["psnr"], [30.0, 40.0]);
        assert_eq!(stream.quality["ssim"], [0.9123, 0.99]);
    }
}
