//! The table of the epochs that is printed at the end.

use std::fmt;

use super::super::account::EpochReport;

/// Prints one row an epoch.
pub(super) struct Table<'a>(pub &'a [EpochReport]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>5} {:>9} {:>9} {:>8} {:>8} {:>7} {:>9} {:>11} {:>14}",
            "epoch",
            "listed",
            "delivered",
            "skipped",
            "dropped",
            "padded",
            "replaced",
            "samples/s",
            "boundary wait"
        )?;
        for report in self.0 {
            let ledger = &report.ledger;
            writeln!(
                f,
                "{:>5} {:>9} {:>9} {:>8} {:>8} {:>7} {:>9} {:>11.1} {:>11.1} ms",
                report.epoch,
                ledger.listed,
                ledger.delivered,
                ledger.skipped,
                ledger.dropped,
                ledger.padded,
                ledger.replaced,
                report.samples_per_s,
                report.boundary_wait.as_secs_f64() * 1e3,
            )?;
        }
        Ok(())
    }
}
