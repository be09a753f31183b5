use super::{Fault, Place, describe};

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
    /// The faulty sample that came last, and why it is one.
    fault: Option<String>,
}

/// What an epoch came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Faulty samples.
    pub faults: u64,
    /// Skipped by this resolver, replaced ones included.
    pub skipped: u64,
    /// Replaced by this resolver.
    pub replaced: u64,
    /// Good samples that passed.
    pub good: u64,
    /// The faulty sample that came last, and why it is one.
    pub fault: Option<String>,
}

impl Outcome {
    /// What is wrong with an epoch of which no sample can be used: that is an error, never a clean end.
    pub fn unusable(&self, epoch: Option<u64>) -> Option<String> {
        let fault = self.fault.as_ref().filter(|_| self.good == 0)?;
        let of = epoch
            .map(|epoch| format!(" in epoch {epoch}"))
            .unwrap_or_default();
        Some(format!(
            "No usable sample{of}: all {} are faulty; the last is {fault}",
            self.faults
        ))
    }
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
            fault: None,
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
    pub fn skip(&mut self, faulty: &Place, fault: &Fault) {
        self.note(faulty, fault);
        self.skipped += u64::from(!faulty.sample.pad);
    }

    /// A faulty sample whose place is filled, now or when the epoch's first good sample comes.
    pub fn replace(&mut self, faulty: Place, fault: &Fault, out: &mut Vec<(Place, T)>) {
        self.note(&faulty, fault);
        match self.last.clone() {
            Some((place, item)) => self.fill(faulty, &place, item, out),
            None => self.waiting.push(faulty),
        }
    }

    fn note(&mut self, faulty: &Place, fault: &Fault) {
        self.faults += 1;
        // Said only where no sample is good.
        if self.good == 0 {
            self.fault = Some(format!("{}: {fault}", describe(&faulty.sample)));
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
            fault: self.fault.take(),
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

    fn fault() -> Fault {
        Fault::internal("bad")
    }

    /// How an epoch ended: faults, skipped, replaced, good.
    fn end(resolver: &mut Resolver<char>) -> [u64; 4] {
        let outcome = resolver.end();
        [outcome.faults, outcome.skipped, outcome.replaced, outcome.good]
    }

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
        resolver.replace(place(0), &fault(), &mut out);
        resolver.replace(place(1), &fault(), &mut out);
        assert!(out.is_empty());
        assert_eq!(resolver.faults(), 2);
        resolver.good(place(2), 'a', true, &mut out);
        resolver.good(place(3), 'b', true, &mut out);
        resolver.replace(place(4), &fault(), &mut out);
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
        assert_eq!(end(&mut resolver), [3, 3, 3, 2]);
        // The next epoch starts without a past.
        out.clear();
        resolver.replace(place(0), &fault(), &mut out);
        assert!(out.is_empty());
        assert_eq!(end(&mut resolver), [1, 1, 0, 0]);
    }

    #[test]
    fn what_an_earlier_run_delivered_replaces_but_does_not_count() {
        let (mut resolver, mut out) = (Resolver::default(), Vec::new());
        resolver.replace(place(0), &fault(), &mut out);
        resolver.good(place(1), 'a', true, &mut out);
        resolver.skip(&place(2), &fault());
        resolver.resume();
        out.clear();
        resolver.replace(place(3), &fault(), &mut out);
        assert_eq!(seen(&out), [(3, 101, 103, 1, 1, 'a')]);
        resolver.resume();
        assert_eq!(end(&mut resolver), [0, 0, 0, 0]);
        // Nor do faulty ones wait for a good one of this run.
        out.clear();
        resolver.replace(place(0), &fault(), &mut out);
        resolver.resume();
        resolver.good(place(1), 'b', true, &mut out);
        assert_eq!(seen(&out), [(1, 101, -1, 0, 0, 'b')]);
    }

    #[test]
    fn skipped_samples_count_in_what_follows_and_add_to_those_from_upstream() {
        let (mut resolver, mut out) = (Resolver::default(), Vec::new());
        resolver.good(place(0), 'a', false, &mut out);
        resolver.skip(&place(1), &fault());
        let mut from_upstream = place(2);
        (from_upstream.sample.skipped, from_upstream.sample.replaced) = (3, 1);
        resolver.good(from_upstream, 'c', false, &mut out);
        assert_eq!(seen(&out), [(0, 100, -1, 0, 0, 'a'), (2, 102, -1, 4, 1, 'c')]);
        assert_eq!(end(&mut resolver), [1, 1, 0, 2]);
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
        resolver.replace(padding(1), &fault(), &mut out);
        resolver.skip(&padding(2), &fault());
        assert_eq!(seen(&out), [(0, 100, -1, 0, 0, 'a'), (1, 100, 101, 0, 1, 'a')]);
        assert_eq!(end(&mut resolver), [2, 0, 1, 1]);
    }

    #[test]
    fn an_epoch_without_a_good_sample_says_why() {
        let (mut resolver, mut out) = (Resolver::default(), Vec::<(_, char)>::new());
        resolver.skip(&place(0), &fault());
        resolver.replace(place(1), &fault(), &mut out);
        assert_eq!(
            resolver.end().unusable(Some(3)).as_deref(),
            Some("No usable sample in epoch 3: all 2 are faulty; the last is frame 101: bad")
        );
        assert_eq!(resolver.end().unusable(None), None, "nothing came");
        resolver.skip(&place(0), &fault());
        resolver.good(place(1), 'a', true, &mut out);
        assert_eq!(resolver.end().unusable(None), None);
    }
}
