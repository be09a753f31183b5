//! Paths in and out of text: the `location` property, and the URI of a sample. Paths are bytes throughout.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use super::DatasetError;

/// RFC 3986's unreserved characters and the separator stay readable.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// The path that a `location` means: the text itself, or a `file://` URI, whose percent escapes can stand for bytes
/// that are not UTF-8.
///
/// # Errors
/// [`DatasetError::BadLocation`] for empty text, another host, an incomplete escape, a NUL byte, a relative URI.
///
/// ```
/// use epochfeed::dataset::parse_location;
/// use std::path::Path;
/// # fn main() -> Result<(), epochfeed::dataset::DatasetError> {
/// assert_eq!(parse_location("100%_%05d.jpg")?, Path::new("100%_%05d.jpg"));
/// assert_eq!(parse_location("file:///data/a%20b")?, Path::new("/data/a b"));
/// # Ok(())
/// # }
/// ```
pub fn parse_location(location: &str) -> Result<PathBuf, DatasetError> {
    let bad = |reason| DatasetError::BadLocation {
        location: location.to_owned(),
        reason,
    };
    if location.is_empty() {
        return Err(bad("is empty"));
    }
    let bytes = match strip_scheme(location) {
        None => location.as_bytes().to_vec(),
        Some(rest) => {
            let path = match rest.strip_prefix("//") {
                Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                None => rest,
            };
            if !path.starts_with('/') {
                return Err(bad("names another host or a relative path"));
            }
            if !escapes_are_complete(path.as_bytes()) {
                return Err(bad("has an incomplete percent escape (write % itself as %25)"));
            }
            percent_decode_str(path).collect()
        }
    };
    if bytes.contains(&0) {
        return Err(bad("contains a NUL byte"));
    }
    Ok(PathBuf::from(OsString::from_vec(bytes)))
}

/// What follows `file:` before a slash, in any case. A file that happens to be called `file:x` is not a URI.
fn strip_scheme(location: &str) -> Option<&str> {
    let (scheme, rest) = location.split_at_checked(5)?;
    (scheme.eq_ignore_ascii_case("file:") && rest.starts_with('/')).then_some(rest)
}

/// Whether two hexadecimal digits follow every percent sign.
fn escapes_are_complete(text: &[u8]) -> bool {
    text.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'%')
        .all(|(at, _)| {
            text.get(at + 1..at + 3)
                .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        })
}

/// The `file://` URI of an absolute path; every byte but unreserved ones and `/` is escaped.
pub(super) fn to_uri(path: &Path) -> String {
    format!("file://{}", percent_encode(path.as_os_str().as_bytes(), ESCAPED))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_way_out_and_back() {
        let bytes: Vec<u8> = std::iter::once(b'/').chain(1..=255).collect();
        let path = PathBuf::from(OsString::from_vec(bytes));
        let uri = to_uri(&path);
        assert!(uri.is_ascii() && uri.contains("%FF") && uri.contains("%25") && uri.contains("%0A"));
        assert_eq!(parse_location(&uri).unwrap(), path);
    }

    #[test]
    fn only_uris_are_decoded() {
        for plain in ["/data/%41", "file:x", "files/a", "%", "file.jpg", "FILE"] {
            assert_eq!(parse_location(plain).unwrap(), Path::new(plain));
        }
        assert_eq!(parse_location("FILE://localhost/a%41").unwrap(), Path::new("/aA"));
        assert_eq!(parse_location("file:/a").unwrap(), Path::new("/a"));
    }

    #[test]
    fn nonsense_is_refused_with_a_remedy() {
        for bad in [
            "",
            "file://server/share",
            "file:///a%4",
            "file:///a%zz",
            "file:///a%00b",
        ] {
            let message = parse_location(bad).unwrap_err().to_string();
            assert!(message.contains("percent escapes"), "{message}");
        }
    }
}
