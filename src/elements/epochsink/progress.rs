//! What a person sees while the pipeline works: a line on the terminal, or a line an epoch where there is none.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressStyle};

use super::super::account::EpochReport;

/// The progress of the current epoch, on stderr.
#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style = "epoch {prefix} {bar:30} {pos}/{len} samples, {per_sec}, {eta} left";
            bar.with_style(
                ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
            )
        });
        Self { bar }
    }

    /// `delivered` of `listed` samples of `epoch` have come.
    pub fn update(&self, epoch: u64, delivered: u64, listed: Option<u64>) {
        if let Some(bar) = &self.bar {
            if bar.prefix() != epoch.to_string() {
                bar.set_prefix(epoch.to_string());
                bar.reset();
            }
            bar.set_length(listed.unwrap_or(delivered));
            bar.set_position(delivered);
        }
    }

    /// The epoch has ended.
    pub fn epoch(&self, report: &EpochReport) {
        if self.bar.is_none() {
            // Nobody may read it.
            let _ = writeln!(
                std::io::stderr(),
                "epoch {}: {} of {} samples, {:.1} samples/s",
                report.epoch,
                report.ledger.delivered,
                report.ledger.listed,
                report.samples_per_s
            );
        }
    }

    /// Leaves the terminal to others.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
