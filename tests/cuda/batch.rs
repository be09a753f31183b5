//! A batch of noise, its gains, and what is made of it.

use epochfeed::color::Gains;
use epochfeed::tensor::PackSpec;

use super::definition::{Finish, levels};
use super::vectors::{Noise, triples};

pub struct Batch {
    pub size: (usize, usize),
    pub samples: Vec<Vec<[u8; 3]>>,
    pub gains: Vec<Gains>,
    /// The samples' levels by the gains.
    pub jittered: Vec<Vec<[u8; 3]>>,
}

impl Batch {
    /// `batch` samples of `size`.
    pub fn new(size: (usize, usize), batch: usize) -> Self {
        Self::numbered(0, size, batch)
    }

    /// Another one for every `number`.
    pub fn numbered(number: usize, size: (usize, usize), batch: usize) -> Self {
        let triples = triples();
        let mut noise = Noise::new((number * 1_000_003 + size.0 * 1009 + size.1 * 7 + batch) as u64);
        let samples: Vec<_> = (0..batch).map(|_| noise.pixels(size.0 * size.1)).collect();
        // Every kind of gains in one batch: the samples of a launch go different ways.
        let gains: Vec<_> = (0..batch)
            .map(|sample| triples[(sample * 7 + size.0 + number) % triples.len()])
            .collect();
        let jittered = samples
            .iter()
            .zip(&gains)
            .map(|(pixels, gains)| levels(pixels, Some(*gains)))
            .collect();
        Self {
            size,
            samples,
            gains,
            jittered,
        }
    }

    /// The bytes of the jittered batch.
    pub fn want(&self, spec: &PackSpec) -> Vec<u8> {
        Finish::new(spec).batch(&self.jittered)
    }

    /// The bytes of the batch without a jitter.
    pub fn plain(&self, spec: &PackSpec) -> Vec<u8> {
        Finish::new(spec).batch(&self.samples)
    }
}
