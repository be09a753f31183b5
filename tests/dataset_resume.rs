//! Every format resumes and is shared by ranks as exactly as a folder is, and none takes another one's state.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
mod feed_support;

use std::path::{Path, PathBuf};

use common::dataset::{annotation, image, write, write_coco};
use common::{photos, scratch};
use epochfeed::dataset::{Format, Options};
use epochfeed::feed::{Builder, Feed};
use epochfeed::sampler::Shuffle;
use feed_support::{LIMIT, Seen, seen, small, within};

const SAMPLES: usize = 7;

/// A batch with its boxes.
type Taken = (Seen, Vec<[f32; 6]>);

/// A location, and what it is read as.
type Case = (PathBuf, Options);

fn case(location: PathBuf, format: Format) -> Case {
    let options = Options {
        format,
        ..Options::default()
    };
    (location, options)
}

/// The same photographs in every format.
fn cases(root: &Path) -> Vec<Case> {
    let (mut images, mut boxes, mut list) = (Vec::new(), Vec::new(), String::new());
    for (number, photo) in (0_i64..).zip(photos().iter().take(SAMPLES)) {
        let bytes = std::fs::read(photo).unwrap();
        let name = format!("{number}.jpg");
        for folder in ["set/images".to_owned(), format!("classes/c{}", number % 3)] {
            write(&root.join(folder).join(&name), &bytes);
        }
        let label = format!("{} 0.5 0.5 0.{} 0.4\n", number % 3, 1 + number);
        // Some have none.
        if number != 4 {
            write(&root.join(format!("set/labels/{number}.txt")), label);
            boxes.push(annotation(
                number,
                number,
                10 * (number % 3),
                [1.0, 2.0, 3.0 + number as f64, 4.0],
            ));
        }
        list += &format!("images/{}.jpg\n", SAMPLES as i64 - 1 - number);
        images.push(image(number, &name, 640, 480));
    }
    let set = root.join("set");
    write(&set.join("list.txt"), list);
    write(
        &set.join("set.yaml"),
        "train: [images, list.txt]\nnames: [a, b, c]\n",
    );
    write_coco(
        &set.join("set.json"),
        &images,
        &boxes,
        &[(20, "c"), (10, "b"), (0, "a")],
    );
    vec![
        case(set.join("images"), Format::Folder),
        case(set.join("list.txt"), Format::List),
        case(set.join("set.json"), Format::Coco),
        case(set.clone(), Format::Yolo),
        case(set.join("list.txt"), Format::Yolo),
        case(set.join("set.yaml"), Format::Yolo),
        case(root.join("classes"), Format::ImageFolder),
    ]
}

fn feed((location, options): &Case, shuffle: Shuffle, rank: (u32, u32)) -> Builder {
    small(location)
        .dataset(options.clone())
        .shuffle(shuffle)
        .seed(5)
        .batch_size(2)
        .rank(rank.0)
        .world_size(rank.1)
        .epochs(2)
}

fn all(feed: &Feed) -> impl Iterator<Item = Taken> + '_ {
    feed.epochs().flat_map(|epoch| epoch.unwrap()).map(|batch| {
        let batch = batch.unwrap();
        let rows = batch.targets().map(|rows| rows.to_vec()).unwrap_or_default();
        (seen(&batch), rows)
    })
}

#[test]
fn every_format_resumes_behind_each_batch_on_each_rank() {
    within(LIMIT * 3, || {
        let folder = scratch();
        for (number, case) in cases(folder.path()).iter().enumerate() {
            // Each with another order and another part of the ranks, so that all of them meet.
            let shuffle = Shuffle::ALL[number % Shuffle::ALL.len()];
            let mut slots = Vec::new();
            for rank in [(0, 1), (0, 2), (1, 2)] {
                let whole: Vec<_> = all(&feed(case, shuffle, rank).build().unwrap()).collect();
                if rank.1 == 2 {
                    slots.extend(whole.iter().map(|(batch, _)| batch.indices.len()));
                }
                for (at, (batch, _)) in whole.iter().enumerate() {
                    let rest = feed(case, shuffle, rank)
                        .resume(batch.state.clone())
                        .build()
                        .unwrap();
                    let wanted = &whole[at + 1..];
                    let taken: Vec<_> = all(&rest).take(wanted.len()).collect();
                    assert!(taken == wanted, "{case:?} {shuffle} {rank:?} behind batch {at}");
                }
            }
            let ranks = slots.len() / 2;
            assert_eq!(slots[..ranks], slots[ranks..], "{case:?}: batches of the ranks");
        }
    });
}

#[test]
fn no_format_and_no_filter_takes_the_state_of_another() {
    within(LIMIT * 2, || {
        let folder = scratch();
        let mut cases = cases(folder.path());
        let coco = &cases[2];
        let with = |change: fn(&mut Options)| {
            let mut case = coco.clone();
            change(&mut case.1);
            case
        };
        let filtered = [
            with(|options| options.classes = vec!["a".into()]),
            with(|options| options.single_class = true),
            with(|options| options.fraction = 0.5),
        ];
        cases.extend(filtered);
        let build = |case: &Case| feed(case, Shuffle::Keyed, (0, 1));
        let states: Vec<_> = cases
            .iter()
            .map(|case| {
                let feed = build(case).build().unwrap();
                let (batch, _) = all(&feed).next().unwrap();
                batch.state
            })
            .collect();
        for (from, state) in states.iter().enumerate() {
            for (to, case) in cases.iter().enumerate() {
                match build(case).resume(state.clone()).build() {
                    Ok(_) => assert_eq!(from, to, "{case:?}"),
                    Err(error) => {
                        let error = error.to_string();
                        assert!(
                            from != to && (error.contains("fingerprint") || error.contains("size")),
                            "{error}"
                        );
                    }
                }
            }
        }
    });
}
