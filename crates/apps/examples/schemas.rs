//! Compiles and checks trust schemas for another implementation, over standard input and output: lines of JSON, as
//! `interop/python/schemas.py live` sends them, with the answers in lines of JSON.

use std::io::{BufRead as _, Write as _};

use namecast_apps::trust::schema::{Limits, Schema};
use namecast_packet::Name;
use serde_json::{Value, json};

fn main() {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        writeln!(output, "{}", answer(&line)).expect("somebody reads");
        output.flush().expect("somebody reads");
    }
}

/// Answer: the compiled octets, and the verdicts of this model and of the other one on each name and key.
fn answer(line: &Value) -> Value {
    let source = line["source"].as_str().expect("a source");
    let compiled = match Schema::compile(source, &Limits::default()) {
        Ok(compiled) => compiled,
        Err(error) => return json!({ "error": error.to_string() }),
    };
    let Some(theirs) = line["model"].as_str() else {
        return json!({ "model": hex(&compiled.encode()) });
    };
    let theirs = Schema::decode(&unhex(theirs).into(), &Limits::default()).expect("a model");
    let checks = line["checks"].as_array().expect("names");
    let verdict = |check: &Value| {
        let octets = [0, 1].map(|at| unhex(check[at].as_str().expect("a name")));
        let [packet, key] = octets.map(|octets| Name::decode(&octets.into()).expect("a name"));
        let verdicts = [&compiled, &theirs].map(|schema| schema.check(&packet, &key));
        assert_eq!(verdicts[0], verdicts[1], "{packet} {key}");
        verdicts[0].as_ref().is_ok_and(Option::is_some)
    };
    let verdicts: Vec<_> = checks.iter().map(verdict).collect();
    json!({ "model": hex(&compiled.encode()), "verdicts": verdicts })
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(digits).collect()
}
