//! YOLO's `data.yaml`.

use epochfeed::dataset::yolo::parse_data_yaml;

/// Reads `bytes` as a `data.yaml`. The folders it names are not opened: they may be any of this machine's.
pub fn data_yaml(bytes: &[u8]) {
    match parse_data_yaml(bytes) {
        Ok(data) => {
            // Nothing is larger than what it was read from: a number of classes, which makes up names, is limited.
            let texts = data
                .path
                .iter()
                .chain(&data.train)
                .chain(&data.val)
                .chain(&data.names);
            let made_up = if data.names.first().is_some_and(|name| name == "class_0") {
                "class_65535".len() * usize::from(u16::MAX)
            } else {
                0
            };
            // An escape of 2 bytes in a double-quoted text (`\L`) may stand for a character of 3.
            let read: usize = texts.map(String::len).sum();
            assert!(
                read <= 2 * bytes.len() + made_up,
                "{read} bytes of {}",
                bytes.len()
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
