//! Gains and pixels of the tests.

use epochfeed::color::Gains;
use epochfeed::tensor::{Dtype, Layout, Normalize, PackSpec};

/// A row of `color_sha256.tsv`.
pub struct Digests {
    pub gains: Gains,
    pub uint8: String,
    pub float32: String,
}

/// The SHA-256 of all colours, r-major, as eager PyTorch gave them on a CUDA device.
pub fn digests() -> Vec<Digests> {
    let rows: Vec<Digests> = include_str!("../data/color/color_sha256.tsv")
        .lines()
        .skip(1)
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            Digests {
                gains: fields[..3].join(",").parse().unwrap(),
                uint8: fields[3].to_owned(),
                float32: fields[4].to_owned(),
            }
        })
        .collect();
    assert_eq!(rows.len(), 32);
    rows
}

/// float32 pixels and their published levels under one triple of gains.
pub struct Extremes {
    pub gains: Gains,
    pub pixels: Vec<[f32; 3]>,
    pub levels: Vec<[u8; 3]>,
}

/// `float_extremes.tsv`, by gains.
pub fn extremes() -> Vec<Extremes> {
    let mut groups: Vec<Extremes> = Vec::new();
    for line in include_str!("../data/color/float_extremes.tsv").lines().skip(1) {
        let fields: Vec<&str> = line.split('\t').collect();
        // The table prints each float32 as the double that it is.
        let pixel = [0, 1, 2].map(|i| fields[i].parse::<f64>().unwrap() as f32);
        let gains: Gains = fields[3..6].join(",").parse().unwrap();
        let level = [6, 7, 8].map(|i| fields[i].parse::<u8>().unwrap());
        match groups.iter_mut().find(|group| group.gains == gains) {
            Some(group) => {
                group.pixels.push(pixel);
                group.levels.push(level);
            }
            None => groups.push(Extremes {
                gains,
                pixels: vec![pixel],
                levels: vec![level],
            }),
        }
    }
    assert_eq!(groups.iter().map(|group| group.pixels.len()).sum::<usize>(), 5488);
    groups
}

/// Triples of gains: those of the table, edges, what takes the kernels' slow ways, and random ones.
pub fn triples() -> Vec<Gains> {
    let mut triples: Vec<Gains> = digests().iter().map(|row| row.gains).collect();
    let edges = [
        [0.0, 0.0, 0.0],
        [-0.0, -0.0, -0.0],
        [0.015, 0.7, 0.4],
        [-0.015, -0.7, -0.4],
        [1.0, 1.0, 1.0],
        [-1.0, -1.0, -1.0],
        [1e-8, -1e-8, 1e-8],
        [0.25, 0.0, 0.0],
        [1.0 / 6.0, 0.5, 0.0],
        [-1.0 / 3.0, 0.0, 0.0],
        [0.999_999_9, -0.5, 0.2],
        // Beyond every use: here the kernels take the definition itself.
        [2.5, 0.1, 0.1],
        [-1e6, 3.0, 0.0],
        [0.1, -4.0, 0.0],
        [0.1, 0.0, -3.0],
        [0.1, 1e30, 1e30],
    ];
    triples.extend(edges.map(|[hue, saturation, value]| Gains::new(hue, saturation, value).unwrap()));
    let mut noise = Noise::new(4);
    for number in 0..24 {
        let ranges = if number % 2 == 0 {
            [0.015, 0.7, 0.4]
        } else {
            [0.5, 1.0, 1.0]
        };
        let [hue, saturation, value] = ranges.map(|range| (2.0 * noise.unit() - 1.0) * range);
        triples.push(Gains::new(hue, saturation, value).unwrap());
    }
    assert!(triples.len() >= 64);
    triples
}

/// ImageNet's, and numbers that take the kernels' general division.
pub const NORMS: [Normalize; 2] = [
    Normalize {
        mean: [0.485, 0.456, 0.406],
        std: [0.229, 0.224, 0.225],
    },
    Normalize {
        mean: [1e-12, 0.5, 0.0],
        std: [1e-35, 1.0, -3e20],
    },
];

pub fn spec(dtype: Dtype, layout: Layout, normalize: Option<Normalize>) -> PackSpec {
    PackSpec::new(dtype, layout, normalize).unwrap()
}

/// Every element type in every layout, with and without normalisation.
pub fn specs() -> Vec<PackSpec> {
    let mut specs = Vec::new();
    for dtype in Dtype::ALL {
        for layout in Layout::ALL {
            specs.push(spec(dtype, layout, None));
            if dtype.is_float() {
                specs.extend(NORMS.map(|norm| spec(dtype, layout, Some(norm))));
            }
        }
    }
    specs
}

/// Numbers without structure, the same ones every time: an xorshift generator.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn byte(&mut self) -> u8 {
        (self.next() >> 32) as u8
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn pixels(&mut self, count: usize) -> Vec<[u8; 3]> {
        (0..count)
            .map(|_| {
                let bits = self.next();
                [bits >> 16, bits >> 28, bits >> 40].map(|bits| bits as u8)
            })
            .collect()
    }
}
