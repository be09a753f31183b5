use std::fs;
use std::io;
use std::path::Path;

/// The largest file that is read as a state; real ones have less than 1 KiB.
const MAX_BYTES: u64 = 64 * 1024;

/// Writes `state` to `location` so that a reader, or a run after a crash, sees either the old one or the new one.
///
/// The data are not synced: the promise is against a killed process, not against a power cut.
pub(super) fn save(location: &Path, state: &str) -> io::Result<()> {
    let mut name = location.as_os_str().to_owned();
    // The process's number keeps two processes that share the file by mistake from mixing their halves.
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = Path::new(&name);
    fs::write(temporary, state)?;
    fs::rename(temporary, location).inspect_err(|_| {
        // The rename's error is the one to report.
        let _ = fs::remove_file(temporary);
    })
}

/// Reads the state at `location`; `None` if there is no file.
pub(super) fn load(location: &Path) -> io::Result<Option<String>> {
    match fs::metadata(location) {
        Ok(metadata) if metadata.len() > MAX_BYTES => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} bytes are too many for a state (at most {MAX_BYTES})",
                metadata.len()
            ),
        )),
        Ok(_) => fs::read_to_string(location).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
