//! One run of a scenario, written down event by event.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use namecast_units::{Duration, Instant};

use crate::network::Network;
use crate::trace::ndnsim::{AppDelayTable, CacheTable, DEFAULT_PERIOD, DropTable, RateTable};
use crate::trace::{CsvTrace, Fingerprint, ParquetConfig, ParquetTrace, Sink};

type Output = BufWriter<File>;
type Shared<T> = Rc<RefCell<T>>;

/// What is written of a run. The sinks are shared with the network while it runs.
struct Files {
    fingerprint: Shared<Fingerprint>,
    csv: Shared<CsvTrace<Output>>,
    parquet: Shared<ParquetTrace<Output>>,
    delays: Shared<AppDelayTable<Output>>,
    rates: Shared<RateTable<Output>>,
    cache: CacheTable<Output>,
    drops: Shared<DropTable<Output>>,
}

impl Files {
    fn create(directory: &Path, names: &[String]) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let file = |name: &str| File::create(directory.join(name)).map(BufWriter::new);
        let parquet = file("events.parquet")?;
        let parquet = ParquetTrace::new(parquet, names.to_vec(), ParquetConfig::default());
        Ok(Self {
            fingerprint: shared(Fingerprint::default()),
            csv: shared(CsvTrace::new(file("events.csv")?, names.to_vec())),
            parquet: shared(parquet),
            delays: shared(AppDelayTable::new(
                file("app-delays-trace.txt")?,
                names.to_vec(),
            )),
            rates: shared(RateTable::new(file("rate-trace.txt")?, DEFAULT_PERIOD)),
            cache: CacheTable::new(file("cs-trace.txt")?, DEFAULT_PERIOD),
            drops: shared(DropTable::new(file("drop-trace.txt")?, DEFAULT_PERIOD)),
        })
    }

    /// All that want events.
    fn sinks(&self) -> Vec<Box<dyn Sink>> {
        vec![
            Box::new(self.fingerprint.clone()),
            Box::new(self.csv.clone()),
            Box::new(self.parquet.clone()),
            Box::new(self.delays.clone()),
            Box::new(self.rates.clone()),
            Box::new(self.drops.clone()),
        ]
    }

    /// Writes what is left; the digest of all events.
    fn finish(self) -> io::Result<String> {
        sole(self.csv).finish()?.flush()?;
        sole(self.parquet).finish()?.flush()?;
        sole(self.delays).finish()?.flush()?;
        sole(self.rates).finish()?.flush()?;
        self.cache.finish()?.flush()?;
        sole(self.drops).finish()?.flush()?;
        Ok(sole(self.fingerprint).hex())
    }
}

fn shared<T>(value: T) -> Shared<T> {
    Rc::new(RefCell::new(value))
}

/// What was shared, now that nobody else has it.
fn sole<T>(value: Shared<T>) -> T {
    let sole = Rc::into_inner(value).expect("the network has given its sinks back");
    sole.into_inner()
}

/// Lets `network` run to its end and writes all traces into `directory`; the digest of all events.
pub(super) fn write(
    network: &mut Network,
    duration: Duration,
    directory: &Path,
) -> io::Result<String> {
    let end = Instant::ZERO + duration;
    let names: Vec<String> = (0..network.nodes())
        .map(|node| network.node_name(node).to_owned())
        .collect();
    let mut files = Files::create(directory, &names)?;
    network.set_sink(Box::new(files.sinks()));
    let (mut rates, mut drops) = (files.rates.clone(), files.drops.clone());
    network.run_sampled(end, &mut [&mut rates, &mut files.cache, &mut drops]);
    drop((rates, drops, network.take_sink()));
    files.finish()
}
