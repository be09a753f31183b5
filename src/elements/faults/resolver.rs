use super::Place;

/// Puts good samples in the places of faulty ones, in delivery order, and counts both.
///
/// `T` is what a sample's place is filled with: a buffer. One resolver serves one stream, an epoch after the other.
#[derive(Debug)]
pub struct Resolver<T> {
    /// Faulty samples so far in this epoch.
    faults: u64,
    /// Skipped so far in this epoch by this resolver, replaced ones included.
    skipped: u64,
    /// Replaced so far in this epoch.
    replaced: u64,
    /// Good samples so far in this epoch.
    good: u64,
    /// The good sample delivered last in this epoch.
    last: Option<(Place, T)>,
    /// Faulty samples at the epoch's start that wait for its first good one.
    waiting: Vec<Place>,
}

/// What an epoch came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Faulty samples.
    pub faults: u64,
    /// Skipped by this resolver, replaced ones included.
    pub skipped: u64,
    /// Replaced by this resolver.
    pub replaced: u64,
    /// Good samples that passed.
    pub good: u64,
}

impl<T> Default for Resolver<T> {
    fn default() -> Self {
        Self {
            faults: 0,
            skipped: 0,
            replaced: 0,
            good: 0,
            last: None,
            waiting: Vec::new(),
        }
    }
}

impl<T: Clone> Resolver<T> {
    /// A good sample: appends to `out` what is to be delivered now, in order. `keep` says whether it may be needed
    /// for replacement.
    pub fn good(&mut self, mut place: Place, item: T, keep: bool, out: &mut Vec<(Place, T)>) {
        self.good += 1;
        for faulty in std::mem::take(&mut self.waiting) {
            self.fill(faulty, &place, item.clone(), out);
        }
        if keep {
            self.last = Some((place.clone(), item.clone()));
        }
        self.count(&mut place);
        out.push((place, item));
    }

    /// A faulty sample that is left out. Padding is not listed, so that it is not counted as skipped either.
    pub fn skip(&mut self, faulty: &Place) {
        self.faults += 1;
        self.skipped += u64::from(!faulty.sample.pad);
    }

    /// A faulty sample whose place is filled, now or when the epoch's first good sample comes.
    pub fn replace(&mut self, faulty: Place, out: &mut Vec<(Place, T)>) {
        self.faults += 1;
        match self.last.clone() {
            Some((place, item)) => self.fill(faulty, &place, item, out),
            None => self.waiting.push(faulty),
        }
    }

    /// What came so far was delivered in an earlier run and is not counted in this one; the good sample delivered last
    /// stays at hand.
    pub fn resume(&mut self) {
        let last = self.last.take();
        *self = Self {
            last,
            ..Self::default()
        };
    }

    /// How many samples of this epoch were faulty so far.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Ends the epoch and makes ready for the next.
    pub fn end(&mut self) -> Outcome {
        let waiting = self.waiting.iter().filter(|place| !place.sample.pad).count() as u64;
        let outcome = Outcome {
            skipped: self.skipped + waiting,
            replaced: self.replaced,
            faults: self.faults,
            good: self.good,
        };
        *self = Self::default();
        outcome
    }

    fn fill(&mut self, mut faulty: Place, by: &Place, item: T, out: &mut Vec<(Place, T)>) {
        let sample = &mut faulty.sample;
        self.skipped += u64::from(!sample.pad);
        self.replaced += 1;
        sample.replaced_from = i64::try_from(sample.dataset_index).unwrap_or(i64::MAX);
        sample.dataset_index = by.sample.dataset_index;
        sample.uri.clone_from(&by.sample.uri);
        sample.file_version = by.sample.file_version;
        (sample.source_width, sample.source_height) = (by.sample.source_width, by.sample.source_height);
        faulty.boxes.clone_from(&by.boxes);
        sample.fault = None;
        self.count(&mut faulty);
        out.push((faulty, item));
    }

    /// Adds this resolver's counts to those of the faults found upstream.
    fn count(&self, place: &mut Place) {
        place.sample.skipped += self.skipped;
        place.sample.replaced += self.replaced;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(index: u64) -> Place {
        let mut place = Place {
            offset: index,
            ..Place::default()
        };
        place.sample.index = index;
        place.sample.dataset_index = 100 + index;
        place.sample.replaced_from = -1;
        place
    }

    /// (index, dataset index, replaced from, skipped, replaced, item)
    fn seen(out: &[(Place, char)]) -> Vec<(u64, u64, i64, u64, u64, char)> {
        out.iter()
            .map(|(place, item)| {
                let s = &place.sample;
                assert_eq!(place.offset, s.index, "the faulty sample's own place in time");
                (
                    s.index,
                    s.dataset_index,
                    s.replaced_from,
                    s.skipped,
                    s.replaced,
                    *item,
                )
            })
            .collect()
    }

    #[test]
    fn replacement_takes_the_previous_good_sample_else_the_next() {
        let (mut resolver, mut out) = (Resolver::default(), Vec::new());
        resolver.replace(place(0), &mut out);
        resolver.replace(place(1), &mut out);
        assert!(out.is_empty());
        assert_eq!(resolver.faults(), 2);
        resolver.good(place(2), 'a', true, &mut out);
        resolver.good(place(3), 'b', true, &mut out);
        resolver.replace(place(4), &mut out);
        assert_eq!(
            seen(&out),
            [
                (0, 102, 100, 1, 1, 'a'),
                (1, 102, 101, 2, 2, 'a'),
                (2, 102, -1, 2, 2, 'a'),
                (3, 103, -1, 2, 2, 'b'),
                (4, 103, 104, 3, 3, 'b'),
            ]
        );
        assert_eq!(
            resolver.end(),
            Outcome {
                faults: 3,
                skipped: 3,
                replaced: 3,
                good: 2
            }
        );
        // The next epoch starts without a past.
        out.clear();
        resolver.replace(place(0), &mut out);
        assert!(out.is_empty());
        assert_eq!(
            resolver.end(),
            Outcome {
                faults: 1,
                skipped: 1,
                replaced: 0,
                good: 0
            }
        );
    }

    #[test]
    fn what_an_earlier_run_delivered_replaces_but_does_not_count() {
        let (mut resolver, mut out) = (Resolver::default(), Vec::new());
        resolver.replace(place(0), &mut out);
        resolver.good(place(1), 'a', true, &mut out);
        resolver.skip(&place(2));
        resolver.resume();
        out.clear();
        resolver.replace(place(3), &mut out);
        assert_eq!(seen(&out), [(3, 101, 103, 1, 1, 'a')]);
        resolver.resume();
        assert_eq!(
            resolver.end(),
            Outcome {
                faults: 0,
                skipped: 0,
                replaced: 0,
                good: 0
            }
        );
        // Nor do faulty ones wait for a good one of this run.
        out.clear();
        resolver.replace(place(0), &mut out);
        resolver.resume();
        resolver.good(place(1), 'b', true, &mut out);
        assert_eq!(seen(&out), [(1, 101, -1, 0, 0, 'b')]);
    }

    #[test]
    fn skipped_samples_count_in_what_follows_and_add_to_those_from_upstream() {
        let (mut resolver, mut out) = (Resolver::default(), Vec::new());
        resolver.good(place(0), 'a', false, &mut out);
        resolver.skip(&place(1));
        let mut from_upstream = place(2);
        (from_upstream.sample.skipped, from_upstream.sample.replaced) = (3, 1);
        resolver.good(from_upstream, 'c', false, &mut out);
        assert_eq!(seen(&out), [(0, 100, -1, 0, 0, 'a'), (2, 102, -1, 4, 1, 'c')]);
        assert_eq!(
            resolver.end(),
            Outcome {
                faults: 1,
                skipped: 1,
                replaced: 0,
                good: 2
            }
        );
    }

    #[test]
    fn faulty_padding_is_replaced_but_never_skipped() {
        let (mut resolver, mut out) = (Resolver::default(), Vec::new());
        let padding = |index| {
            let mut place = place(index);
            place.sample.pad = true;
            place
        };
        resolver.good(place(0), 'a', true, &mut out);
        resolver.replace(padding(1), &mut out);
        resolver.skip(&padding(2));
        assert_eq!(seen(&out), [(0, 100, -1, 0, 0, 'a'), (1, 100, 101, 0, 1, 'a')]);
        assert_eq!(
            resolver.end(),
            Outcome {
                faults: 2,
                skipped: 0,
                replaced: 1,
                good: 1
            }
        );
    }
}
