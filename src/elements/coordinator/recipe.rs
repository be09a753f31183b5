//! Under which settings an epoch is prepared: those that are current when it is asked for, or it is prepared again.
//!
//! The source notes the recipe of each sample that it reads ahead, and the elements that make something of it later spoil
//! the epoch where theirs was another one by then: settings may change and change back while samples are on their way.

use super::{Coordinator, hash};

impl Coordinator {
    /// Hash of all that the pixels of a sample depend on besides the sample: what is prepared under another one is
    /// not delivered.
    pub fn recipe(&self) -> u64 {
        self.recipe_with(None)
    }

    /// [`recipe`](Self::recipe), with another hash of the settings of one element.
    pub fn recipe_with(&self, other: Option<(&'static str, u64)>) -> u64 {
        let recipes: Vec<_> = {
            let inner = self.lock();
            inner
                .recipes
                .iter()
                .filter_map(|(element, recipe)| Some((*element, recipe.upgrade()?)))
                .collect()
        };
        hash(recipes.into_iter().map(|(element, recipe)| {
            let hash = match other {
                Some((name, hash)) if name == element => hash,
                _ => recipe(),
            };
            format!("{element}={hash:016x};")
        }))
    }

    /// Something that was prepared of `epoch` was made under another recipe than the one under which it was read.
    pub fn spoil(&self, epoch: u64) {
        let mut inner = self.lock();
        if !inner.boundary.is_delivered(epoch) {
            inner.prepared.insert(epoch, None);
        }
    }

    /// Whether what was prepared of `epoch` is thrown away, at the request at the latest.
    pub fn is_wasted(&self, epoch: u64) -> bool {
        !self.is_current(epoch) || self.restart() == Some(epoch)
    }
}
