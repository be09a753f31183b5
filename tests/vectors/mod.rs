//! Reads the tables beside it; the Python scripts say how they were made.

use std::{path::Path, str::FromStr};

use epochfeed::sampler::Order;
use sha2::{Digest, Sha256};

/// One line of a table, by column name.
pub struct Row {
    columns: Vec<String>,
    values: Vec<String>,
}

impl Row {
    pub fn text(&self, column: &str) -> &str {
        let place = self.columns.iter().position(|name| name == column);
        &self.values[place.unwrap_or_else(|| panic!("no column {column}"))]
    }

    pub fn get<T: FromStr>(&self, column: &str) -> T {
        let text = self.text(column);
        text.parse()
            .unwrap_or_else(|_| panic!("{column} is {text:?} in the table"))
    }

    pub fn flag(&self, column: &str) -> bool {
        self.get::<u8>(column) == 1
    }

    fn list(&self, column: &str) -> Vec<u64> {
        let text = self.text(column);
        let items = text.split(',').filter(|item| !item.is_empty());
        items.map(|item| item.parse().unwrap()).collect()
    }

    /// Compares the columns count, head, tail and sha256 with the samples that were drawn.
    #[allow(dead_code, reason = "not all test programs have lists")]
    pub fn assert_lists(&self, samples: &[u64]) {
        let name = self.values.join(" ");
        assert_eq!(samples.len(), self.get::<usize>("count"), "count of {name}");
        assert!(samples.starts_with(&self.list("head")), "head of {name}");
        assert!(samples.ends_with(&self.list("tail")), "tail of {name}");
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let hash = format!("{:x}", Sha256::digest(bytes));
        assert_eq!(hash, self.text("sha256"), "all samples of {name}");
    }
}

/// The rows of `tests/vectors/<name>`.
pub fn read(name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/vectors")
        .join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    let columns = lines.next().expect("a header");
    let rows: Vec<Row> = lines
        .map(|values| {
            assert_eq!(values.len(), columns.len(), "{name}: {values:?}");
            Row {
                columns: columns.clone(),
                values,
            }
        })
        .collect();
    assert!(!rows.is_empty(), "{name} has no rows");
    rows
}

/// All dataset indices of an order.
#[allow(dead_code, reason = "not all test programs draw whole orders")]
pub fn samples(order: &Order) -> Vec<u64> {
    order.iter().map(|slot| slot.dataset_index).collect()
}
