//! A folder of images, searched to the bottom.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::DatasetError;
use super::paths::Paths;

/// Endings that make a file a sample, in any case. TIFF and its like are listed although they are not decoded, so that
/// they are reported instead of being left out in silence.
pub(super) const EXTENSIONS: [&str; 13] = [
    "jpg", "jpeg", "jfif", "jpe", "png", "webp", "bmp", "tif", "tiff", "gif", "heic", "heif", "avif",
];

/// Whether the name of `path` ends as an image's does.
pub(super) fn has_image_extension(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().as_bytes();
    EXTENSIONS
        .iter()
        .any(|known| extension.eq_ignore_ascii_case(known.as_bytes()))
}

/// All images under `root`, relative to it, in the byte order of the relative paths.
pub(super) fn scan(root: &Path) -> Result<Paths, DatasetError> {
    let mut found = Vec::new();
    let mut ancestors = Vec::new();
    visit(root, &mut Vec::new(), &mut ancestors, &mut found)?;
    if found.is_empty() {
        return Err(DatasetError::EmptyFolder(root.to_owned()));
    }
    // Over whole paths: `a-b/x` comes before `a/x`, which no order within each folder would give.
    found.sort_unstable();
    let mut paths = Paths::default();
    found.iter().for_each(|path| paths.push(path));
    Ok(paths)
}

/// The names of the folders directly below `root`, hidden ones left out, in byte order.
pub(super) fn folders(root: &Path) -> Result<Vec<Vec<u8>>, DatasetError> {
    let failed = |error| DatasetError::from_io(root, error);
    let mut folders = Vec::new();
    for entry in fs::read_dir(root).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_vec();
        if !name.starts_with(b".") && matches!(kind(&entry).map_err(failed)?, Kind::Folder) {
            folders.push(name);
        }
    }
    folders.sort_unstable();
    Ok(folders)
}

/// Device and inode: what a folder is, whatever it is called.
type Identity = (u64, u64);

/// Adds the images of the folder `relative` and of those below it.
///
/// `ancestors` are the folders on the way here. A link back to one of them would go round for ever and is not followed;
/// a second link to a folder elsewhere is, since its author may want its images twice.
fn visit(
    root: &Path,
    relative: &mut Vec<u8>,
    ancestors: &mut Vec<Identity>,
    found: &mut Vec<Vec<u8>>,
) -> Result<(), DatasetError> {
    let folder = root.join(OsStr::from_bytes(relative));
    let failed = |error| DatasetError::from_io(&folder, error);
    let metadata = fs::metadata(&folder).map_err(failed)?;
    let identity = (metadata.dev(), metadata.ino());
    if ancestors.contains(&identity) {
        return Ok(());
    }
    ancestors.push(identity);
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_vec();
        if name.starts_with(b".") {
            continue;
        }
        let length = relative.len();
        if length > 0 {
            relative.push(b'/');
        }
        relative.extend_from_slice(&name);
        match kind(&entry) {
            Ok(Kind::Folder) => visit(root, relative, ancestors, found)?,
            Ok(Kind::File) if has_image_extension(Path::new(OsStr::from_bytes(&name))) => {
                found.push(relative.clone());
            }
            Ok(Kind::File | Kind::Other) => {}
            Err(error) => return Err(DatasetError::from_io(&entry.path(), error)),
        }
        relative.truncate(length);
    }
    ancestors.pop();
    Ok(())
}

enum Kind {
    Folder,
    /// A file, or a link to nowhere: reading the latter will say that it is missing, under its index.
    File,
    /// A pipe, a socket, a device.
    Other,
}

/// What `entry` is behind any links.
fn kind(entry: &fs::DirEntry) -> io::Result<Kind> {
    let mut kind = entry.file_type()?;
    if kind.is_symlink() {
        match fs::metadata(entry.path()) {
            Ok(metadata) => kind = metadata.file_type(),
            Err(_) => return Ok(Kind::File),
        }
    }
    Ok(match kind {
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_file() => Kind::File,
        _ => Kind::Other,
    })
}
