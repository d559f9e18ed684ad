//! Two folders of results beside each other.

use std::fs;

use namecast_lab::experiment::{Comparison, Test};

use super::{Arithmetic, FILE, Folder};

/// Sweeps and noise of [`FILE`] with ten seeds, a check of one point and a claim about another.
fn file(rate_of_2: f64) -> String {
    let judged = format!(
        "[[check]]\nmetric = \"duration/quick/1\"\nmin = 1.0\nwhy = \"{rate_of_2}\"\n\
         [[claim]]\nplace = \"§1\"\nsays = \"little\"\nmetric = \"utilisation/quick/2\"\nmax = 20.5\n"
    );
    let values = format!(
        "[sweep.values]\n\"1\" = {{ \"flows.*.rate\" = 1 }}\n\"2\" = {{ \"flows.*.rate\" = {rate_of_2} }}\n"
    );
    let text = FILE.replace("seeds = 4", "seeds = 10").replace(
        "parameter = \"flows.*.rate\"\nvalues = [1, 2, 5]\n",
        &values,
    );
    assert_ne!(text, FILE);
    // What speaks of the point that is gone goes, too.
    let text = text.replace("pick = { rate = \"5\" }", "pick = { rate = \"2\" }");
    text + &judged
}

/// The rate at one point is a tenth higher: all ten runs differ by one, with the same noise.
#[test]
fn what_changed_is_told_and_nothing_else() {
    let folder = Folder::new(&[("arc/noise", &file(2.0))]);
    let laboratory = Arithmetic::default();
    folder.run(&laboratory, &folder.config("a")).unwrap();
    folder.run(&laboratory, &folder.config("same")).unwrap();
    let changed = file(2.1).replace("duration/quick/1", "duration/slow/1");
    fs::write(folder.0.path().join("experiments/arc/noise.toml"), changed).unwrap();
    folder.run(&laboratory, &folder.config("b")).unwrap();
    let compare = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|name| folder.0.path().join(name));
        Comparison::new(&a, &b, &[])
    };

    let same = compare("a", "same").unwrap();
    assert!(same.verdicts.is_empty() && same.only_a.is_empty() && same.only_b.is_empty());
    assert!(same.values.iter().all(|value| !value.differs));
    assert_eq!(
        same.text(false),
        "No claim or check has another verdict.\n0 of 12 values differ.\n"
    );

    let found = compare("a", "b").unwrap();
    let [claim] = &found.verdicts[..] else {
        panic!("{:?}", found.verdicts);
    };
    assert_eq!(
        (claim.a.verdict, claim.b.verdict, claim.worse),
        ("holds", "did not come out", true)
    );
    assert!(!compare("b", "a").unwrap().verdicts[0].worse);
    let differing: Vec<_> = found.values.iter().filter(|value| value.differs).collect();
    let names: Vec<_> = differing.iter().map(|value| value.name.as_str()).collect();
    assert_eq!(names, ["utilisation/quick/2", "utilisation/slow/2"]);
    for value in differing {
        assert!((value.difference.unwrap() - 1.0).abs() < 1e-9, "{value:?}");
        assert!(value.significant && value.test == Test::Paired, "{value:?}");
    }
    assert_eq!(found.only_a, ["arc/noise: check duration/quick/1"]);
    assert_eq!(found.only_b, ["arc/noise: check duration/slow/1"]);
    let text = found.text(false);
    assert!(text.contains("worse    arc/noise"), "{text}");
    assert_eq!(text.matches("  paired").count(), 2, "{text}");
}

/// Other seeds are other runs: of the same distribution, whatever differs is by chance, and says so.
#[test]
fn other_seeds_are_compared_without_pairs() {
    let folder = Folder::new(&[("arc/noise", &file(2.0)), ("arc/alone", &file(2.0))]);
    let laboratory = Arithmetic::default();
    folder.run(&laboratory, &folder.config("a")).unwrap();
    fs::remove_file(folder.0.path().join("experiments/arc/alone.toml")).unwrap();
    let mut config = folder.config("b");
    config.seed = 2;
    config.runs = Some(6);
    folder.run(&laboratory, &config).unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.0.path().join(name));
    let found = Comparison::new(&a, &b, &[]).unwrap();
    assert_eq!(found.only_a, ["experiment arc/alone"]);
    let mut values = found
        .values
        .iter()
        .filter(|value| value.name.starts_with("utilisation"));
    assert!(values.all(|value| value.differs && !value.significant && value.test == Test::Welch));
    // One experiment with another, whatever they are called.
    let one = Comparison::new(&a.join("arc/alone"), &a.join("arc/noise"), &[]).unwrap();
    assert!(
        one.values
            .iter()
            .all(|value| value.experiment == "arc/alone → arc/noise")
    );
    let error = Comparison::new(&a, &b, &["rtsd".to_owned()]).unwrap_err();
    assert!(
        error.contains("name a folder that `namecast experiment run --out` wrote to"),
        "{error}"
    );
}
