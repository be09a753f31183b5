//! The shape of a batch, as its caps say it.

use crate::tensor::{Dtype, Layout};

/// What the values of a batch are and how they lie in memory: contiguous, the last axis innermost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tensor {
    /// N×H×W×C or N×C×H×W.
    pub shape: [usize; 4],
    pub dtype: Dtype,
    pub layout: Layout,
}

impl Tensor {
    /// Reads the caps of nhwcpack.
    pub fn from_caps(caps: &gst::CapsRef) -> Result<Self, String> {
        let fields = caps.structure(0).ok_or("there are no caps")?;
        let text = |name: &str| {
            fields
                .get::<&str>(name)
                .map_err(|error| format!("{caps}: {error}"))
        };
        let dtype = text("types")?;
        let dtype = dtype.parse().map_err(|error| format!("{caps}: {error}"))?;
        let layout = text("layout")?;
        let layout = layout.parse().map_err(|error| format!("{caps}: {error}"))?;
        let dimensions = text("dimensions")?.split(':').map(str::parse);
        // The innermost comes first.
        let mut shape: Vec<usize> = dimensions
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{caps}: dimensions: {error}"))?;
        shape.reverse();
        let shape = <[usize; 4]>::try_from(shape)
            .map_err(|shape| format!("{caps}: there are {} dimensions, not 4", shape.len()))?;
        Ok(Self { shape, dtype, layout })
    }

    /// Bytes of the whole; `None` if they cannot be counted.
    pub fn bytes(&self) -> Option<usize> {
        self.shape
            .iter()
            .try_fold(self.dtype.size(), |bytes, length| bytes.checked_mul(*length))
    }

    /// Elements from one index to the next, for each axis.
    pub fn strides(&self) -> [usize; 4] {
        let [_, a, b, c] = self.shape;
        [a * b * c, b * c, c, 1]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn caps(text: &str) -> gst::Caps {
        gst::init().unwrap();
        text.parse().unwrap()
    }

    #[test]
    fn caps_give_the_shape() {
        let caps = caps("other/tensors,types=(string)float16,dimensions=(string)3:5:4:2,layout=(string)nhwc");
        let tensor = Tensor::from_caps(&caps).unwrap();
        assert_eq!(tensor.shape, [2, 4, 5, 3]);
        assert_eq!((tensor.dtype, tensor.layout), (Dtype::Float16, Layout::Nhwc));
        assert_eq!(tensor.strides(), [60, 15, 3, 1]);
        assert_eq!(tensor.bytes(), Some(240));
    }

    #[test]
    fn caps_of_something_else_are_refused() {
        for text in [
            "video/x-raw,format=(string)RGB",
            "other/tensors,types=(string)int64,dimensions=(string)3:5:4:2,layout=(string)nhwc",
            "other/tensors,types=(string)uint8,dimensions=(string)3:5:4,layout=(string)nhwc",
            "other/tensors,types=(string)uint8,dimensions=(string)3:5:4:x,layout=(string)nchw",
        ] {
            assert!(Tensor::from_caps(&caps(text)).is_err(), "{text}");
        }
        let huge = Tensor {
            shape: [usize::MAX, 2, 1, 3],
            dtype: Dtype::Float32,
            layout: Layout::Nhwc,
        };
        assert_eq!(huge.bytes(), None);
    }
}
