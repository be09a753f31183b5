use super::super::super::coordinator::{Keeper, Keepers};
use super::super::wanted::Bytes;
use super::*;
use crate::dataset::Dataset;
use crate::decode::Format;

const FILES: u64 = 12;
const SIZE: usize = 100;

/// Files of equal size, the n-th full of n; and one that does not exist.
fn dataset() -> (tempfile::TempDir, Dataset) {
    let folder = tempfile::tempdir().unwrap();
    let name = |index: u64| format!("{index:02}.jpg");
    for index in 0..FILES {
        std::fs::write(folder.path().join(name(index)), [index as u8; SIZE]).unwrap();
    }
    let list = folder.path().join("list.txt");
    let names: Vec<_> = (0..=FILES).map(name).collect();
    std::fs::write(&list, names.join("\n")).unwrap();
    let dataset = Dataset::open(&list).unwrap();
    (folder, dataset)
}

fn wanted(dataset: &Dataset, index: u64) -> Wanted {
    kept(dataset, index, Keepers::default())
}

fn kept(dataset: &Dataset, index: u64, keepers: Keepers) -> Wanted {
    Wanted {
        dataset: dataset.clone(),
        index,
        epoch: 0,
        keepers,
    }
}

#[track_caller]
fn bytes(content: Content) -> Vec<u8> {
    match content.unwrap().0 {
        Bytes::Read(bytes) => bytes,
        Bytes::Kept(..) => panic!("not read"),
    }
}

/// So many files have been read, and are counted with so many bytes.
fn read(ahead: &Ahead) -> (usize, u64) {
    let state = lock(&ahead.shared.state);
    let read = state.files.iter().filter(|file| matches!(file, File::Read(..)));
    (read.count(), state.bytes)
}

fn until(wanted: impl Fn() -> bool) {
    let start = Instant::now();
    while !wanted() {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
}

#[test]
fn files_come_in_order_whoever_reads_them() {
    let (_folder, dataset) = dataset();
    for threads in [0, 1, 5] {
        let mut ahead = Ahead::new(6);
        ahead.start(threads, threads, 0);
        assert_eq!(ahead.threads.len(), threads);
        (0..=FILES).for_each(|index| ahead.push(wanted(&dataset, index)));
        for index in 0..FILES {
            let (content, read_ahead) = ahead.pop().unwrap().unwrap();
            assert_eq!(bytes(content), [index as u8; SIZE], "{threads} threads");
            assert_eq!(read_ahead, !ahead.threads.is_empty());
        }
        assert!(matches!(ahead.pop(), Ok(Some((Err(ReadError::Missing), _)))));
        assert!(ahead.pop().unwrap().is_none());
        assert_eq!(read(&ahead), (0, 0));
    }
}

#[test]
fn memory_is_bounded_and_the_next_file_always_comes() {
    let (_folder, dataset) = dataset();
    // Room for two files; for none: one at a time.
    for (budget, files) in [(250, 2), (0, 1)] {
        let mut ahead = Ahead::within(8, budget);
        ahead.start(7, 7, 0);
        (0..FILES).for_each(|index| ahead.push(wanted(&dataset, index)));
        for left in (0..FILES as usize).rev() {
            until(|| read(&ahead).0 >= files.min(left + 1));
            let (_, bytes) = read(&ahead);
            assert!(bytes <= budget.max(SIZE as u64) + SIZE as u64, "{bytes}");
            assert!(ahead.pop().unwrap().unwrap().0.is_ok());
        }
    }
}

#[test]
fn what_is_forgotten_does_not_come() {
    let (_folder, dataset) = dataset();
    let mut ahead = Ahead::within(4, 150);
    ahead.start(3, 3, 0);
    for index in 0..FILES {
        ahead.push(wanted(&dataset, index));
        ahead.push(wanted(&dataset, 0));
        ahead.clear();
        ahead.push(wanted(&dataset, index));
        let (content, _) = ahead.pop().unwrap().unwrap();
        assert_eq!(bytes(content), [index as u8; SIZE]);
    }
    until(|| read(&ahead) == (0, 0));
    // The end comes while threads wait for room.
    (0..FILES).for_each(|index| ahead.push(wanted(&dataset, index)));
}

#[test]
fn files_of_kept_frames_are_opened_and_not_read() {
    let (_folder, dataset) = dataset();
    let missing = dataset.uri(FILES).unwrap();
    // Every other file, and one that is not there.
    let keeper: Arc<Keeper> = Arc::new(move |key| {
        let (_, name) = key.uri.rsplit_once('/').unwrap();
        let number: u64 = name.trim_end_matches(".jpg").parse().unwrap();
        (number.is_multiple_of(2) || key.uri == missing).then_some(Format::Png)
    });
    for threads in [0, 3] {
        // No budget: what is not read takes none.
        let mut ahead = Ahead::within(8, 0);
        ahead.start(threads, threads, 0);
        for index in 0..=FILES {
            ahead.push(kept(&dataset, index, Arc::downgrade(&keeper).into()));
        }
        for index in 0..FILES {
            let (content, _) = ahead.pop().unwrap().unwrap();
            match content.unwrap() {
                (Bytes::Read(bytes), _) => {
                    assert_eq!(index % 2, 1);
                    assert_eq!(bytes, [index as u8; SIZE]);
                }
                (Bytes::Kept(file, format), version) => {
                    assert_eq!((index % 2, format), (0, Format::Png));
                    assert_eq!(file.version(), version);
                    assert_eq!(file.read().unwrap().unwrap(), [index as u8; SIZE]);
                }
            }
        }
        assert!(matches!(ahead.pop(), Ok(Some((Err(ReadError::Missing), _)))));
    }
    // Whoever kept them has gone.
    let gone = Arc::downgrade(&keeper);
    drop(keeper);
    assert_eq!(bytes(kept(&dataset, 0, gone.into()).open().content()), [0; SIZE]);
}

#[test]
fn storage_is_slow_where_most_files_are() {
    let slow = |files: &[u32]| {
        let mut state = State::default();
        files.iter().for_each(|times| state.note(PATIENCE * *times));
        state.is_slow()
    };
    assert!(!slow(&[]) && !slow(&[80, 80]) && !slow(&[0, 80, 0, 80]));
    assert!(slow(&[1, 1, 1]) && slow(&[80, 0, 80, 80]));
    assert!(!slow(&[80, 80, 80, 0, 0]), "it was");
}

#[test]
fn one_slow_file_takes_a_few_threads() {
    let mut ahead = Ahead::new(16);
    ahead.grow(PATIENCE * 80, 0);
    assert_eq!(ahead.threads.len(), FEW);
    for _ in 0..3 {
        lock(&ahead.shared.state).note(PATIENCE * 80);
    }
    // It was no exception: what that wait asked for comes now.
    ahead.grow(Duration::ZERO, 0);
    assert_eq!(ahead.threads.len(), 16);
    let mut some = Ahead::new(16);
    lock(&some.shared.state).recent = u8::MAX;
    some.grow(PATIENCE * 5, 0);
    some.grow(PATIENCE * 2, 0);
    assert_eq!(some.threads.len(), 7);
    let mut one = Ahead::new(1);
    one.grow(PATIENCE * 80, 0);
    assert_eq!(one.threads.len(), 0);
}
