//! What the tests of the GPU need, and whether it is there.

/// Whether this machine has a CUDA device; a test that needs one and has none says so, and nothing else.
pub fn is_there() -> bool {
    match epochfeed::cuda::Device::count() {
        Ok(1..) => true,
        Ok(0) => not_run("there is a driver, but no CUDA device"),
        Err(error) => not_run(&error.to_string()),
    }
}

/// Whether the GPU is there and GStreamer has all of `elements`.
pub fn has(elements: &[&str]) -> bool {
    if !is_there() {
        return false;
    }
    super::pipeline::init();
    let missing: Vec<_> = elements
        .iter()
        .filter(|element| gst::ElementFactory::find(element).is_none())
        .collect();
    missing.is_empty() || not_run(&format!("GStreamer has no {missing:?}"))
}

fn not_run(why: &str) -> bool {
    println!("NOT RUN: {why}");
    false
}
