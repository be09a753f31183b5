//! Files that are left out of a dataset: a list that `epochdecode quarantine` wrote, or one by hand.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::read::existing_text;
use super::{DatasetError, parse_location};

/// What is to be left out.
///
/// A line is either a JSON object whose `uri` is a `file://` URI, as `epochdecode quarantine` writes them, or a path, relative to
/// the folder of the list, or a URI. Lines without text are skipped, and so are lines of JSON that were not finished. Paths
/// are compared as text, with every `..` taken back before: links are not looked through.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    paths: HashSet<PathBuf>,
}

#[derive(Deserialize)]
struct Entry {
    uri: String,
}

/// The lines of `text` that say something.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.trim_ascii().is_empty())
}

impl Exclusions {
    /// Reads the list at `path`.
    ///
    /// # Errors
    /// [`DatasetError`], naming the list: it is missing or cannot be read, or a line is neither of the two.
    pub fn read(path: &Path) -> Result<Self, DatasetError> {
        let text = existing_text(path)?;
        let absolute = std::path::absolute(path).map_err(|error| DatasetError::from_io(path, error))?;
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        let mut paths = HashSet::new();
        for (number, line) in (1..).zip(lines(&text)) {
            let entry = if line.starts_with(b"{") {
                match serde_json::from_slice::<Entry>(line) {
                    Ok(entry) => entry.uri,
                    // The process that wrote it was killed; another one may have gone on behind it.
                    Err(error) if error.is_eof() => continue,
                    Err(error) => {
                        return Err(DatasetError::BadExclusion {
                            path: path.to_owned(),
                            number,
                            reason: error.to_string(),
                        });
                    }
                }
            } else {
                match std::str::from_utf8(line) {
                    Ok(line) => line.to_owned(),
                    Err(_) => {
                        paths.insert(direct(folder.join(std::ffi::OsStr::from_bytes(line))));
                        continue;
                    }
                }
            };
            let entry = parse_location(&entry).map_err(|error| DatasetError::BadExclusion {
                path: path.to_owned(),
                number,
                reason: error.to_string(),
            })?;
            paths.insert(direct(folder.join(entry)));
        }
        Ok(Self { paths })
    }

    /// The URIs of the JSON lines in `text`; other lines say nothing.
    pub fn uris(text: &[u8]) -> impl Iterator<Item = String> {
        lines(text).filter_map(|line| Some(serde_json::from_slice::<Entry>(line).ok()?.uri))
    }

    /// Whether the file at the absolute `path` is left out.
    pub fn contains(&self, path: &Path) -> bool {
        self.paths.contains(path) || (has_detour(path) && self.paths.contains(&direct(path.to_owned())))
    }

    /// Number of files, whether they are part of a dataset or not.
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }
}

fn has_detour(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}

/// The absolute `path` without `..`, by its text: where a list lies beside the images, and where a `data.yaml` does, each
/// has its own way to them.
fn direct(path: PathBuf) -> PathBuf {
    if !has_detour(&path) {
        return path;
    }
    let mut direct = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(direct.pop()),
            part => direct.push(part),
        }
    }
    direct
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &[u8]) -> Result<Exclusions, String> {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("bad.jsonl");
        fs::write(&list, text).unwrap();
        let read = Exclusions::read(&list).map_err(|error| error.to_string());
        // Relative to the list's folder.
        assert!(
            read.as_ref()
                .is_ok_and(|read| read.contains(&folder.path().join("a b.jpg")))
                || !text.starts_with(b"a b")
        );
        read
    }

    #[test]
    fn lines_are_json_or_paths() {
        let found = read(
            b"a b.jpg\r\n\n{\"uri\":\"file:///data/c%FF.jpg\",\"class\":\"corrupt\",\"reason\":\"x\"}\nfile:///d%20e.jpg\n/f\xe9.jpg\n",
        )
        .unwrap();
        assert_eq!(found.len(), 4);
        for path in [&b"/data/c\xff.jpg"[..], b"/d e.jpg", b"/f\xe9.jpg"] {
            assert!(found.contains(Path::new(std::ffi::OsStr::from_bytes(path))));
        }
        assert!(!found.contains(Path::new("/data/c.jpg")));
        assert!(read(b"").unwrap().is_empty());
    }

    #[test]
    fn what_is_not_finished_is_skipped_and_nonsense_is_refused() {
        let whole = "{\"uri\":\"file:///a.jpg\"}\n";
        for text in [
            format!("{whole}{{\"uri\":\"fi"),
            format!("{{\"uri\":\"fi\n{whole}"),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap().len(), 1, "{text}");
        }
        for (text, number) in [
            (format!("{whole}{{\"url\":\"file:///a.jpg\"}}\n"), 2),
            ("{\"uri\":5}".to_owned(), 1),
            ("file://elsewhere/x\n".to_owned(), 1),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            let line = format!("line {number} of ");
            assert!(error.contains(&line) && error.contains("bad.jsonl"), "{error}");
        }
    }
}
