//! Many relative paths in little memory: one block of bytes instead of an allocation each.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use sha2::{Digest, Sha256};

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

    /// The path at `index`.
    pub fn get(&self, index: u64) -> Option<&Path> {
        let index = usize::try_from(index).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(Path::new(OsStr::from_bytes(&self.bytes[start..end])))
    }

    /// SHA-256 over the paths in order, each preceded by its length as 8 little-endian bytes, as hexadecimal digits.
    ///
    /// The lengths keep `["ab", "c"]` and `["a", "bc"]` apart.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut start = 0;
        for &end in &self.ends {
            hash.update(((end - start) as u64).to_le_bytes());
            hash.update(&self.bytes[start..end]);
            start = end;
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
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
    }

    #[test]
    fn the_fingerprint_sees_borders_and_order() {
        // python3 -c "import hashlib; print(hashlib.sha256(b'\x02'+bytes(7)+b'ab'+b'\x01'+bytes(7)+b'c').hexdigest())"
        let known = "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617";
        assert_eq!(paths(&["ab", "c"]).fingerprint(), known);
        assert_ne!(paths(&["a", "bc"]).fingerprint(), known);
        assert_ne!(paths(&["c", "ab"]).fingerprint(), known);
        assert_ne!(paths(&["abc"]).fingerprint(), known);
    }
}
