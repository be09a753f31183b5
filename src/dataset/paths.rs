//! Many relative paths in little memory: one block of bytes instead of an allocation each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest, Sha256};

/// Paths are bytes.
pub(super) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Paths in a fixed order.
#[derive(Debug, Default)]
pub(super) struct Paths {
    bytes: Vec<u8>,
    /// End of each path in `bytes`.
    ends: Vec<usize>,
}

impl Paths {
    /// Adds a path at the end.
    pub fn push(&mut self, path: &[u8]) {
        self.bytes.extend_from_slice(path);
        self.ends.push(self.bytes.len());
    }

    /// Number of paths.
    pub fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Keeps the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Path> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let bytes = &self.bytes[std::mem::replace(&mut start, end)..end];
            as_path(bytes)
        })
    }

    /// The path at `index`.
    pub fn get(&self, index: u64) -> Option<&Path> {
        let index = usize::try_from(index).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(as_path(&self.bytes[start..end]))
    }

    /// Adds the paths in order to `hash`, each preceded by its length as 8 little-endian bytes.
    ///
    /// The lengths keep `["ab", "c"]` and `["a", "bc"]` apart.
    pub fn hash(&self, hash: &mut Sha256) {
        for path in self.iter() {
            let bytes = path.as_os_str().as_bytes();
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(entries: &[&str]) -> Paths {
        let mut paths = Paths::default();
        entries.iter().for_each(|entry| paths.push(entry.as_bytes()));
        paths
    }

    #[test]
    fn paths_come_back_in_order() {
        let paths = paths(&["a", "", "bc"]);
        assert_eq!(paths.get(0), Some(Path::new("a")));
        assert_eq!(paths.get(1), Some(Path::new("")));
        assert_eq!(paths.get(2), Some(Path::new("bc")));
        assert_eq!(paths.get(3), None);
        assert_eq!(paths.get(u64::MAX), None);
        assert!(paths.iter().eq(["a", "", "bc"].map(Path::new)));
        let mut paths = paths;
        paths.truncate(1);
        assert!(paths.iter().eq([Path::new("a")]));
    }

    #[test]
    fn the_fingerprint_sees_borders_and_order() {
        // python3 -c "import hashlib; print(hashlib.sha256(b'\x02'+bytes(7)+b'ab'+b'\x01'+bytes(7)+b'c').hexdigest())"
        let known = "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617";
        let print = |entries: &[&str]| {
            let mut hash = Sha256::new();
            paths(entries).hash(&mut hash);
            super::super::hexadecimal(hash)
        };
        assert_eq!(print(&["ab", "c"]), known);
        assert_ne!(print(&["a", "bc"]), known);
        assert_ne!(print(&["c", "ab"]), known);
        assert_ne!(print(&["abc"]), known);
    }
}
