//! What a process uses: memory, threads, descriptors.

/// Resident memory of the process `id` (`self` for this one), in bytes; `None` once it has ended, before that is noticed, too.
pub fn resident(id: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024)
}

/// By how much a row of values grows from its first to its last: by a fit over all of them, so that one high value at
/// either end decides nothing.
pub fn growth(values: &[u64]) -> f64 {
    let count = values.len() as f64;
    let mean_place = (count - 1.0) / 2.0;
    let mean = values.iter().map(|value| *value as f64).sum::<f64>() / count;
    let (mut above, mut below) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        let distance = place as f64 - mean_place;
        above += distance * (*value as f64 - mean);
        below += distance * distance;
    }
    above / below * count
}

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Threads of this process.
pub fn threads() -> usize {
    thread_names().len()
}

/// Names of this process's threads, but for the one with which GLib starts those of its pools: newer versions keep it for
/// good.
pub fn thread_names() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        // A thread may end between the look at the folder and the look at its name.
        .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .filter(|name| name != "pool-spawner")
        .collect()
}

/// Open descriptors of this process, the one that is needed to count them among them.
pub fn descriptors() -> usize {
    entries("/proc/self/fd")
}

/// What the open descriptors of this process lead to.
pub fn open_files() -> Vec<std::path::PathBuf> {
    let folder = std::fs::read_dir("/proc/self/fd").unwrap();
    folder
        .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
        .collect()
}
