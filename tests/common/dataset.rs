//! Datasets with boxes, written by a test.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// An image of COCO's: id, file name, width and height.
pub fn image(id: i64, name: &str, width: u32, height: u32) -> Value {
    json!({"id": id, "file_name": name, "width": width, "height": height})
}

/// A box of COCO's.
pub fn annotation(id: i64, image: i64, category: i64, bbox: [f64; 4]) -> Value {
    json!({"id": id, "image_id": image, "category_id": category, "bbox": bbox, "iscrowd": 0,
           "area": bbox[2] * bbox[3], "segmentation": [[0, 0, 1, 1, 2, 2]]})
}

/// Writes a COCO file with the categories (id, name).
pub fn write_coco(path: &Path, images: &[Value], annotations: &[Value], categories: &[(i64, &str)]) {
    let categories: Vec<_> = categories
        .iter()
        .map(|(id, name)| json!({"id": id, "name": name, "supercategory": "thing"}))
        .collect();
    let coco = json!({"info": {}, "images": images, "annotations": annotations, "categories": categories});
    write(path, coco.to_string());
}

/// Writes a file, and the folders that it lies in.
pub fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).unwrap();
    fs::write(path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
