//! `epochsink`'s report: one JSON object a line.

use std::path::Path;

use serde::Deserialize;

/// One delivered batch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BatchLine {
    pub epoch: u64,
    /// Number of the batch in its epoch.
    pub batch: u64,
    /// Dataset index of each sample.
    pub indices: Vec<u64>,
    /// Percent-encoded URI of each sample.
    pub uris: Vec<String>,
    /// Hue, saturation and value of each sample.
    pub gains: Vec<[f64; 3]>,
    /// Which samples only fill up a batch or a rank.
    pub pad: Vec<bool>,
    /// Dataset index of the sample that this one stands in for, or -1.
    pub replaced_from: Vec<i64>,
    /// Sample in the batch, class, centre x, centre y, width, height of each box; `None` where there are no boxes.
    pub targets: Option<Vec<[f32; 6]>>,
    /// Time the sink waited for this batch.
    pub wait_ns: u64,
    pub state: serde_json::Value,
}

/// One finished epoch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EpochLine {
    pub epoch: u64,
    pub listed: u64,
    pub delivered: u64,
    pub skipped: u64,
    pub dropped: u64,
    pub padded: u64,
    pub replaced: u64,
    pub samples_per_s: f64,
    pub boundary_wait_ns: u64,
}

/// One faulty sample of an epoch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FaultLine {
    pub epoch: u64,
    /// Its place in the epoch.
    pub index: u64,
    pub dataset_index: u64,
    pub uri: String,
    /// `missing`, `corrupt`, …
    pub class: String,
    pub reason: String,
    /// `skip` or `replace`.
    pub action: String,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line {
    Batch(BatchLine),
    Fault(FaultLine),
    Epoch(EpochLine),
}

/// A whole report.
#[derive(Debug, Default, PartialEq)]
pub struct Report {
    pub batches: Vec<BatchLine>,
    pub faults: Vec<FaultLine>,
    pub epochs: Vec<EpochLine>,
}

impl Report {
    /// Reads a report.
    ///
    /// # Panics
    /// If the file is missing, or a line is of no known kind; the message has the line's number.
    pub fn read(path: &Path) -> Self {
        let text =
            std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text)
    }

    /// Reads a report's text; see [`Report::read`].
    pub fn parse(text: &str) -> Self {
        let mut report = Self::default();
        for (number, line) in text.lines().enumerate() {
            match serde_json::from_str(line) {
                Ok(Line::Batch(batch)) => report.batches.push(batch),
                Ok(Line::Fault(fault)) => report.faults.push(fault),
                Ok(Line::Epoch(epoch)) => report.epochs.push(epoch),
                Err(error) => panic!("report line {}: {error}: {line}", number + 1),
            }
        }
        report
    }

    /// The dataset indices of `epoch`, in the order of delivery.
    pub fn order(&self, epoch: u64) -> Vec<u64> {
        self.batches
            .iter()
            .filter(|batch| batch.epoch == epoch)
            .flat_map(|batch| &batch.indices)
            .copied()
            .collect()
    }

    /// The report with everything that a clock decides set to 0, for comparing two runs.
    pub fn without_times(mut self) -> Self {
        self.batches.iter_mut().for_each(|batch| batch.wait_ns = 0);
        self.epochs
            .iter_mut()
            .for_each(|epoch| (epoch.samples_per_s, epoch.boundary_wait_ns) = (0.0, 0));
        self
    }

    /// Checks every epoch's ledger: listed = delivered + skipped + dropped, and the batch lines hold what it says.
    #[track_caller]
    pub fn assert_adds_up(&self) {
        assert!(!self.epochs.is_empty(), "the report has no epoch");
        for epoch in &self.epochs {
            assert_eq!(
                epoch.listed,
                epoch.delivered + epoch.skipped + epoch.dropped,
                "{epoch:?}"
            );
            let batches = || self.batches.iter().filter(|batch| batch.epoch == epoch.epoch);
            let count = |of: fn(&BatchLine) -> usize| batches().map(of).sum::<usize>() as u64;
            let padded = count(|batch| batch.pad.iter().filter(|&&pad| pad).count());
            let replaced = count(|batch| batch.replaced_from.iter().filter(|&&from| from >= 0).count());
            assert_eq!(padded, epoch.padded, "{epoch:?}");
            assert_eq!(replaced, epoch.replaced, "{epoch:?}");
            // A replaced slot counts as skipped, a padded one not at all.
            let slots = count(|batch| batch.indices.len());
            assert_eq!(slots, epoch.delivered + padded + replaced, "{epoch:?}");
        }
    }
}
