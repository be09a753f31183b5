//! The pipeline that most black-box tests are about: epochsrc to nhwcpack, with its report and its bytes.

use std::path::Path;

use super::process::Job;
use super::{Report, launch, location, scratch};

/// Width and height of the frames: small, so that a test of the order costs no time on pixels.
pub const SIDE: usize = 24;
/// Bytes of a sample in `uint8`.
pub const SAMPLE: usize = SIDE * SIDE * 3;

/// A pipeline over the images at `location`; the other fields are properties, as words of gst-launch's.
#[derive(Clone, Copy)]
pub struct Feed<'a> {
    pub location: &'a Path,
    pub source: &'a str,
    pub decode: &'a str,
    pub jitter: &'a str,
    pub pack: &'a str,
    pub sink: &'a str,
}

/// What came out of a pipeline.
pub struct Taken {
    pub report: Report,
    /// All batches, one behind the other, in `uint8` unless `pack` says otherwise.
    pub bytes: Vec<u8>,
}

/// A sample as it was delivered.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub epoch: u64,
    pub index: u64,
    pub gains: [f64; 3],
    pub pixels: Vec<u8>,
}

impl<'a> Feed<'a> {
    /// With nothing but the default properties.
    pub fn new(location: &'a Path) -> Self {
        Self {
            location,
            source: "",
            decode: "",
            jitter: "",
            pack: "",
            sink: "",
        }
    }

    /// From epochsrc to nhwcpack.
    fn line(&self) -> String {
        let Self {
            source,
            decode,
            jitter,
            pack,
            ..
        } = self;
        format!(
            "epochsrc location={} {source} ! epochdecode {decode} ! video/x-raw,format=RGB,width={SIDE},height={SIDE} \
             ! hsvquantize {jitter} ! nhwcpack dtype=uint8 {pack}",
            location(self.location)
        )
    }

    /// The run into an epochsink that reports to `report`.
    pub fn job(&self, report: &Path) -> Job {
        launch(&self.line())
            .args(&format!("! epochsink silent=true {}", self.sink))
            .arg(format!("report={}", report.display()))
    }

    /// Runs it to its end; what epochsink reported.
    #[track_caller]
    pub fn report(&self) -> Report {
        let folder = scratch();
        let report = folder.path().join("report.jsonl");
        self.job(&report).run().success();
        Report::read(&report)
    }

    /// Runs it to its end; what epochsink reported, and the batches themselves.
    #[track_caller]
    pub fn taken(&self) -> Taken {
        let folder = scratch();
        let (report, bytes) = (folder.path().join("report.jsonl"), folder.path().join("bytes"));
        launch(&self.line())
            .args("! tee name=batches batches. ! queue ! filesink")
            .arg(format!("location={}", bytes.display()))
            .args(&format!("batches. ! queue ! epochsink silent=true {}", self.sink))
            .arg(format!("report={}", report.display()))
            .run()
            .success();
        Taken {
            report: Report::read(&report),
            bytes: std::fs::read(&bytes).expect("filesink wrote it"),
        }
    }
}

impl Taken {
    /// The samples one by one, padding included, in the order of delivery. For `uint8`.
    #[track_caller]
    pub fn samples(&self) -> Vec<Sample> {
        let slots: usize = self.report.batches.iter().map(|batch| batch.indices.len()).sum();
        assert_eq!(self.bytes.len(), slots * SAMPLE, "size of {slots} samples");
        let named = self.report.batches.iter().flat_map(|batch| {
            let epoch = batch.epoch;
            let samples = batch.indices.iter().zip(&batch.gains);
            samples.map(move |(&index, &gains)| (epoch, index, gains))
        });
        named
            .zip(self.bytes.chunks_exact(SAMPLE))
            .map(|((epoch, index, gains), pixels)| Sample {
                epoch,
                index,
                gains,
                pixels: pixels.to_vec(),
            })
            .collect()
    }
}

/// Fails the test unless both are equal; says where they differ first rather than showing them whole.
#[track_caller]
pub fn assert_same_bytes(what: &str, found: &[u8], wanted: &[u8]) {
    assert_eq!(found.len(), wanted.len(), "{what}: number of bytes");
    // Slices are compared as memory; only a failure is worth a look at each byte.
    if found != wanted {
        let differing: Vec<_> = (0..found.len())
            .filter(|&place| found[place] != wanted[place])
            .collect();
        let (count, place) = (differing.len(), differing[0]);
        panic!(
            "{what}: {count} of {} bytes differ; the first at {place}: {}, not {}",
            wanted.len(),
            found[place],
            wanted[place]
        );
    }
}

/// A text as the value of a property in a line of gst-launch's: in quotes, those in it escaped.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
