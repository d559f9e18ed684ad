//! Traces and models of links' rates.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use namecast_netem::{self as netem, Model, Rate, Schedule, TraceFile};

use super::{Topology, TopologyError};

/// Schedules that links share.
#[derive(Default)]
struct Schedules {
    traces: BTreeMap<TraceFile, Arc<Schedule>>,
    models: Vec<(Model, Arc<Schedule>)>,
}

/// Gives each link with a trace or model its schedule: each file is read once, and each model drawn once.
///
/// # Errors
/// If a file cannot be read or is wrong.
pub(super) fn resolve(topology: &mut Topology, base_dir: &Path) -> Result<(), TopologyError> {
    let mut schedules = Schedules::default();
    for link in &mut topology.links {
        for config in [&mut link.forward, &mut link.backward] {
            schedules.resolve(config, base_dir)?;
        }
    }
    Ok(())
}

impl Schedules {
    fn resolve(
        &mut self,
        config: &mut netem::Config,
        base_dir: &Path,
    ) -> Result<(), TopologyError> {
        if let Some(Rate::Model(model)) = config.rate {
            // One of which the numbers make no sense is left to be refused with the name of its link.
            if config.validate().is_ok() {
                config.rate = Some(Rate::Schedule(self.drawn(model)));
            }
            return Ok(());
        }
        config.resolve_rate(|file| self.read(file, base_dir))
    }

    fn drawn(&mut self, model: Model) -> Arc<Schedule> {
        let known = self.models.iter().find(|(known, _)| *known == model);
        if let Some((_, schedule)) = known {
            return Arc::clone(schedule);
        }
        let schedule = Arc::new(model.schedule());
        self.models.push((model, Arc::clone(&schedule)));
        schedule
    }

    fn read(&mut self, file: &TraceFile, base_dir: &Path) -> Result<Arc<Schedule>, TopologyError> {
        if let Some(schedule) = self.traces.get(file) {
            return Ok(Arc::clone(schedule));
        }
        let path = base_dir.join(&file.trace);
        let opened = File::open(&path).map_err(|error| TopologyError::Read {
            file: path.clone(),
            error,
        })?;
        let schedule = Schedule::read(BufReader::new(opened), file.format)
            .map_err(|error| TopologyError::Trace { file: path, error })?;
        let schedule = Arc::new(schedule);
        self.traces.insert(file.clone(), Arc::clone(&schedule));
        Ok(schedule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Spec;

    fn build(rate: &str, back: &str, base_dir: &Path) -> Result<Topology, TopologyError> {
        let spec = format!(
            "kind = \"dumbbell\"\n[bottleneck]\nrate = {rate}\n[bottleneck-back]\nrate = {back}\n"
        );
        let spec: Spec = toml::from_str(&spec).unwrap();
        spec.build(base_dir)
    }

    /// The first link of a dumbbell is its bottleneck.
    fn schedules(topology: &Topology) -> [Arc<Schedule>; 2] {
        let link = &topology.links[0];
        [&link.forward, &link.backward].map(|config| match &config.rate {
            Some(Rate::Schedule(schedule)) => Arc::clone(schedule),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn traces_are_found_beside_the_file_that_names_them_and_shared() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let rate = "{ trace = \"three-deliveries.trace\" }";
        let topology = build(rate, rate, &fixtures).unwrap();
        let [forward, backward] = schedules(&topology);
        assert_eq!(forward.deliveries(), Some(&[0, 5, 10][..]));
        assert!(Arc::ptr_eq(&forward, &backward));

        // Another format of one file is another schedule, and here an error that names file and line.
        let csv = "{ trace = \"three-deliveries.trace\", format = \"csv\" }";
        let error = build(rate, csv, &fixtures).unwrap_err().to_string();
        let expected = "three-deliveries.trace:1: found '0', expected seconds,bits-per-second";
        assert!(error.ends_with(expected), "{error}");
        let error = build("{ trace = \"none\" }", rate, &fixtures).unwrap_err();
        assert!(matches!(error, TopologyError::Read { .. }), "{error}");
    }

    #[test]
    fn models_are_drawn_once_for_each_seed() {
        let rate = "{ model = \"evdo\", seed = 4 }";
        let [forward, backward] = schedules(&build(rate, rate, Path::new("")).unwrap());
        assert!(Arc::ptr_eq(&forward, &backward));
        let other = "{ model = \"evdo\", seed = 5 }";
        let [forward, backward] = schedules(&build(rate, other, Path::new("")).unwrap());
        assert_ne!(forward, backward);
        let fast = "{ model = \"evdo\", mean = \"1 Gbit/s\" }";
        let error = build(fast, rate, Path::new("")).unwrap_err().to_string();
        assert!(
            error.contains("rate.mean: expected 10 kbit/s to 100 Mbit/s"),
            "{error}"
        );
    }
}
