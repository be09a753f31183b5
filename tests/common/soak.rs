//! Repetitions: some in `make test`, all of them in `make soak`.

use std::time::{Duration, Instant};

use super::wait::within;

/// How long one repetition may take before it counts as hanging.
const HANGS: Duration = Duration::from_secs(20);
/// How often what is fast is repeated in `make soak`.
const LONG: usize = 1000;
/// Set by `scripts/soak.sh`.
const VARIABLE: &str = "EPOCHFEED_SOAK";
/// What a line with a figure begins with; `scripts/soak.sh` gathers them.
pub const FIGURE: &str = "figure: ";

/// Whether this is a long run.
pub fn soaking() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// `short` in `make test`, 1,000 at least in `make soak`.
pub fn repetitions(short: usize) -> usize {
    if soaking() { short.max(LONG) } else { short }
}

/// Prints what a test has measured.
pub fn figure(text: impl std::fmt::Display) {
    // With the line's end before it: libtest has not ended its own line yet.
    println!("\n{FIGURE}{text}");
}

/// Repeats `work`, which returns how long the part that counts took: less than `bound`, each time. A repetition that hangs
/// fails the test by itself.
#[track_caller]
pub fn repeat(
    what: &str,
    short: usize,
    bound: Duration,
    work: impl Fn(usize) -> Duration + Clone + Send + 'static,
) {
    let count = repetitions(short);
    let (mut slowest, mut sum) = (Duration::ZERO, Duration::ZERO);
    for number in 0..count {
        let work = work.clone();
        let took = within(HANGS, move || work(number));
        assert!(took < bound, "{what}, repetition {number}: {took:?}");
        slowest = slowest.max(took);
        sum += took;
    }
    figure(format_args!(
        "{what}: {count} times, mean {:.1} ms, slowest {:.1} ms",
        sum.as_secs_f64() * 1e3 / count as f64,
        slowest.as_secs_f64() * 1e3
    ));
}

/// How long `work` takes.
pub fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
