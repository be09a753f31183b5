#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| epochfeed_fuzz::coco(bytes));
