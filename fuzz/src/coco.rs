//! COCO's JSON.

use std::io::{self, Read};

use epochfeed::dataset::coco::parse;
use epochfeed::dataset::{Format, Options};

use super::boxes;

/// Reads `bytes` as a COCO file, in one piece and in small ones, and opens the dataset that it describes.
pub fn coco(bytes: &[u8]) {
    let outcome = |reader: &mut dyn Read| match parse(reader) {
        Ok(coco) => Ok((coco.images(), coco.boxes())),
        Err(error) => Err(error.to_string()),
    };
    let whole = outcome(&mut &*bytes);
    assert_eq!(whole, outcome(&mut Pieces(bytes)), "pieces are not the whole");
    match whole {
        Err(error) => assert!(!error.is_empty()),
        Ok((0, _)) => {}
        Ok(_) => {
            let folder = boxes::folder("instances.json", bytes);
            let options = Options {
                format: Format::Coco,
                root: Some(folder.path().join("images")),
                ..Options::default()
            };
            boxes::open(&folder.path().join("instances.json"), &options);
        }
    }
}

/// Gives a few bytes a time, so that every token meets the border of a read.
struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(3);
        self.0.read(&mut out[..most])
    }
}
