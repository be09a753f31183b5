//! Which two source positions a destination position mixes, and with what weights.
//!
//! OpenCV's arithmetic (`resize.cpp`, `INTER_LINEAR` and the enlarging `INTER_AREA` on uint8): positions in float64,
//! fractions in float32, weights as 11-bit integers rounded half to even.

/// Weights are multiples of 1/2048.
const ONE: f32 = 2048.0;

/// Two neighbouring source positions and their weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tap {
    /// The first position; it may lie outside, from -1 on.
    pub first: i64,
    /// Weights of the first and the second position, together about 2048.
    pub weights: [i16; 2],
}

impl Tap {
    fn new(first: f32, fraction: f32) -> Self {
        let weight = |w: f32| (w * ONE).round_ties_even() as i16;
        Self {
            first: first as i64,
            weights: [weight(1.0 - fraction), weight(fraction)],
        }
    }

    /// `INTER_LINEAR`: pixel centres, `(d + 0.5) * scale - 0.5`.
    pub fn linear(d: u32, scale: f64) -> Self {
        let position = ((f64::from(d) + 0.5) * scale - 0.5) as f32;
        let first = position.floor();
        Self::new(first, position - first)
    }

    /// `INTER_AREA` where it enlarges: how far the destination pixel reaches into the next source pixel.
    pub fn area(d: u32, scale: f64) -> Self {
        let first = (f64::from(d) * scale).floor();
        // OpenCV multiplies by the unrounded quotient here, which is the reciprocal of its scale only in theory.
        let reach = (f64::from(d) + 1.0 - (first + 1.0) / scale) as f32;
        let fraction = if reach <= 0.0 { 0.0 } else { reach - reach.floor() };
        Self::new(first as f32, fraction)
    }

    /// For columns: positions outside the picture become the edge pixel with all the weight.
    pub fn held_inside(self, side: u32) -> Self {
        let last = i64::from(side) - 1;
        match self.first {
            before if before < 0 => Self {
                first: 0,
                weights: [ONE as i16, 0],
            },
            behind if behind >= last => Self {
                first: last,
                weights: [ONE as i16, 0],
            },
            _ => self,
        }
    }

    /// For rows: both indices are clamped and the weights stay.
    pub fn rows(self, side: u32) -> [usize; 2] {
        let last = i64::from(side) - 1;
        [
            self.first.clamp(0, last) as usize,
            (self.first + 1).clamp(0, last) as usize,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::resize::scale;

    #[test]
    fn weights_add_up_and_edges_hold() {
        for (src, dst) in [(3u32, 7u32), (7, 3), (640, 427), (65500, 640), (1, 9)] {
            for d in 0..dst {
                let tap = Tap::linear(d, scale(src, dst));
                assert!((2047..=2049).contains(&(tap.weights[0] + tap.weights[1])));
                let held = tap.held_inside(src);
                assert!(held.first >= 0 && held.first < i64::from(src));
                assert!(held.weights[1] == 0 || held.first + 1 < i64::from(src));
                assert!(tap.rows(src).iter().all(|&row| row < src as usize));
            }
        }
    }
}
