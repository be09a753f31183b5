//! What is done with bytes that nobody vouches for, and what must hold whatever they are: the entries of the fuzz targets,
//! which `tests/fuzz_seeds.rs` includes to put every seed through the same code. What does not hold is a panic.

mod boxes;
mod coco;
mod data_yaml;
mod decode;
mod state;
mod yolo_labels;

pub use coco::coco;
pub use data_yaml::data_yaml;
pub use decode::{SETTINGS, decode};
pub use state::state;
pub use yolo_labels::yolo_labels;
