//! Telling a file that has changed from the one that was read before.

use std::hash::{DefaultHasher, Hash, Hasher};

use rustix::fs::Stat;

/// Which state of a file was read: its device, inode, size, and times of modification and change, hashed.
///
/// Within one process equal versions of one path mean equal bytes, as exactly as the file system keeps time: a file that is
/// written twice within one tick of its clock (some milliseconds on Linux), to the same size, looks unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileVersion(u64);

impl FileVersion {
    /// The version that `stat` tells of.
    #[allow(clippy::unnecessary_cast)] // the fields' types differ between platforms
    pub(super) fn of(stat: &Stat) -> Self {
        let mut hasher = DefaultHasher::new();
        (stat.st_dev as u64, stat.st_ino as u64, stat.st_size as i64).hash(&mut hasher);
        (stat.st_mtime as i64, stat.st_mtime_nsec as u64).hash(&mut hasher);
        // An author who puts the modification time back does not put this one back.
        (stat.st_ctime as i64, stat.st_ctime_nsec as u64).hash(&mut hasher);
        Self(hasher.finish().max(1))
    }

    /// As a number, never 0.
    pub fn number(self) -> u64 {
        self.0
    }
}
