//! The report: one line of JSON for each batch, and at the end of an epoch for each of its faulty samples and for itself.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::super::account::EpochReport;
use super::super::meta::{BatchMeta, Row};
use crate::sampler::Ledger;

/// A report file.
#[derive(Debug)]
pub(super) struct Report {
    path: PathBuf,
    file: BufWriter<File>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<'a> {
    Batch {
        epoch: u64,
        batch: u64,
        indices: &'a [u64],
        uris: &'a [String],
        gains: &'a [[f64; 3]],
        pad: &'a [bool],
        replaced_from: &'a [i64],
        /// Left out where there are no boxes.
        #[serde(skip_serializing_if = "Option::is_none")]
        targets: Option<Vec<Target>>,
        wait_ns: u64,
        /// Null where there is no epochsrc.
        state: Option<serde_json::Value>,
    },
    Fault {
        epoch: u64,
        index: u64,
        dataset_index: u64,
        uri: &'a str,
        class: &'a str,
        reason: &'a str,
        action: &'a str,
    },
    Epoch {
        epoch: u64,
        #[serde(flatten)]
        ledger: Ledger,
        samples_per_s: f64,
        boundary_wait_ns: u64,
    },
}

/// Image in the batch, class, centre x, centre y, width, height.
type Target = (u32, u32, f32, f32, f32, f32);

fn target(&[image, class, x, y, width, height]: &Row) -> Target {
    (image as u32, class as u32, x, y, width, height)
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Report {
    /// Begins a report; a file that is there is replaced.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            file: BufWriter::new(File::create(path)?),
        })
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a batch that was waited for for `wait`.
    pub fn batch(&mut self, batch: &BatchMeta, wait: Duration) -> io::Result<()> {
        self.line(&Line::Batch {
            epoch: batch.epoch,
            batch: batch.batch,
            indices: &batch.dataset_index,
            uris: &batch.uri,
            gains: &batch.gains,
            pad: &batch.pad,
            replaced_from: &batch.replaced_from,
            targets: batch
                .targets
                .as_ref()
                .map(|targets| targets.rows.iter().map(target).collect()),
            wait_ns: nanoseconds(wait),
            state: serde_json::from_str(&batch.state).ok(),
        })
    }

    /// Adds faulty samples, as their `epochfeed-fault` messages tell of them.
    pub fn faults<'a>(&mut self, told: impl Iterator<Item = &'a gst::StructureRef>) -> io::Result<()> {
        for said in told {
            let number = |name| said.get(name).unwrap_or_default();
            let text = |name| said.get(name).unwrap_or_default();
            self.line(&Line::Fault {
                epoch: number("epoch"),
                index: number("index"),
                dataset_index: number("dataset-index"),
                uri: text("uri"),
                class: text("class"),
                reason: text("reason"),
                action: text("action"),
            })?;
        }
        Ok(())
    }

    /// Adds an epoch.
    pub fn epoch(&mut self, report: &EpochReport) -> io::Result<()> {
        self.line(&Line::Epoch {
            epoch: report.epoch,
            ledger: report.ledger,
            samples_per_s: report.samples_per_s,
            boundary_wait_ns: nanoseconds(report.boundary_wait),
        })
    }

    /// A line is written whole at once: a reader that follows the file, or a killed process, sees no half.
    fn line(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")?;
        self.file.flush()
    }
}
