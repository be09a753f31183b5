//! A dataset of which one file in ten is broken, each in another way.

use std::path::{Path, PathBuf};

use super::cases;

/// Of so many samples.
pub const SAMPLES: u64 = 100;

/// How a file is broken: its name, the class of its fault, and words of its reason.
pub const BROKEN: [(&str, &str, &str); 10] = [
    ("missing.jpg", "missing", "does not exist"),
    ("folder.jpg", "unreadable", "folder"),
    ("pipe.jpg", "unreadable", "regular file"),
    ("empty.jpg", "empty", "empty"),
    ("tiff.jpg", "unsupported", "TIFF"),
    ("heic.jpg", "unsupported", "HEIC"),
    ("cut.jpg", "truncated", "truncated JPEG"),
    ("zeros.jpg", "corrupt", "not an image"),
    ("checksum.png", "corrupt", "corrupt PNG"),
    ("bomb.jpg", "too-large", "16000x16000"),
];

/// The colour of the sample `index`: no other has it.
pub fn colour(index: u64) -> [u8; 3] {
    [index as u8 * 2, 255 - index as u8, 40]
}

/// The dataset index of the broken file number `which`.
pub fn place(which: usize) -> u64 {
    which as u64 * 10 + 7
}

/// Writes the files into `folder`, and the list of them, which it returns.
pub fn dataset(folder: &Path) -> PathBuf {
    let case = |name: &str| std::fs::read(cases::folder().join(name)).unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(folder.join(name), content).unwrap();
    let names: Vec<_> = (0..SAMPLES)
        .map(|index| {
            let broken = (0..BROKEN.len()).find(|which| place(*which) == index);
            broken.map_or_else(|| format!("{index:02}.png"), |which| BROKEN[which].0.to_owned())
        })
        .collect();
    for (index, name) in (0..SAMPLES).zip(&names) {
        if !BROKEN.iter().any(|(broken, _, _)| broken == name) {
            let picture = image::RgbImage::from_pixel(20, 20, image::Rgb(colour(index)));
            picture.save(folder.join(name)).unwrap();
        }
    }
    std::fs::create_dir(folder.join("folder.jpg")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("pipe.jpg"), rustix::fs::Mode::RUSR).unwrap();
    write("empty.jpg", b"");
    write("tiff.jpg", b"II*\0........");
    write("heic.jpg", b"\0\0\0\x18ftypheic....");
    write("cut.jpg", &case("a08_trunc_half.jpg"));
    write("zeros.jpg", &[0; 4096]);
    write("checksum.png", &case("a14_png_idat_badcrc_only.png"));
    write("bomb.jpg", &case("a09_bomb_header_16000sq.jpg"));
    let list = folder.join("list.txt");
    std::fs::write(&list, names.join("\n")).unwrap();
    list
}
