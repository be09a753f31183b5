use once_cell::sync::OnceCell;

use super::WorkersError;

/// How many threads to use when nothing is said: the cores this process may use, shared fairly between the
/// ranks on this machine (`LOCAL_WORLD_SIZE`, as torchrun sets it), at least 1.
///
/// # Errors
/// [`WorkersError::LocalWorldSize`] if the variable is set to something that is not a positive number. The error is
/// not kept: the next call looks again.
pub fn default_threads() -> Result<usize, WorkersError> {
    // The value is kept once it is known, so that elements started later agree with earlier ones.
    static THREADS: OnceCell<usize> = OnceCell::new();
    THREADS
        .get_or_try_init(|| {
            let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
            share(
                cores,
                std::env::var_os("LOCAL_WORLD_SIZE").map(|v| v.to_string_lossy().into_owned()),
            )
        })
        .copied()
}

fn share(cores: usize, local_world_size: Option<String>) -> Result<usize, WorkersError> {
    let Some(text) = local_world_size.filter(|text| !text.is_empty()) else {
        return Ok(cores);
    };
    match text.trim().parse::<usize>() {
        Ok(ranks) if ranks > 0 => Ok((cores / ranks).max(1)),
        _ => Err(WorkersError::LocalWorldSize(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shared_between_local_ranks() {
        let of = |ranks: Option<&str>| share(8, ranks.map(str::to_owned)).ok();
        assert_eq!(of(None), Some(8));
        assert_eq!(of(Some("")), Some(8));
        assert_eq!(of(Some("3")), Some(2));
        assert_eq!(of(Some("16")), Some(1));
        assert_eq!(of(Some("0")), None);
        assert_eq!(of(Some("two")), None);
    }
}
