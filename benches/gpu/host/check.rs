//! The bytes that are timed are the CPU's.

use std::sync::Arc;

use epochfeed::color::Gains;
use epochfeed::cuda::{Device, DeviceMemory, FusedColor, LaunchGains, Output, Packer, PinnedMemory, Stream};
use epochfeed::tensor::{Dtype, Layout, PackSpec};

use crate::pixels::{Slot, Source, gains, images};
use crate::{BATCH, SIDE, driver};

/// Input and output types that are timed.
pub const TYPES: [(Dtype, Dtype); 3] = [
    (Dtype::Float32, Dtype::Float32),
    (Dtype::Uint8, Dtype::Float32),
    (Dtype::Uint8, Dtype::Bfloat16),
];

/// Channels last.
pub fn spec(dtype: Dtype) -> PackSpec {
    PackSpec::new(dtype, Layout::Nhwc, None).unwrap()
}

/// Ends the process where a byte differs.
pub fn run(device: &Arc<Device>) {
    let stream = Stream::new(device).unwrap();
    for (from, to) in TYPES {
        let (source, spec, gains) = (Source::new(from, 11), spec(to), gains(0));
        let want = on_cpu(&source, &gains, &spec);
        let input = source.upload(&stream);
        let output = DeviceMemory::new(&stream, want.len()).unwrap();
        let fused = FusedColor::new(device, spec).unwrap();
        // SAFETY: uploaded as described, and room for the batch; used on this stream only.
        let (images, out) = unsafe {
            driver::fill(&stream, output.pointer(), want.len(), 0xA5);
            (
                images(input.pointer(), from),
                Output::from_raw(output.pointer(), want.len()),
            )
        };
        fused
            .launch(&stream, &images, LaunchGains::Host(&gains), &out)
            .unwrap();
        compare(&output, &stream, &want, &format!("FusedColor, {from} to {to}"));
    }
    let mut packer = Packer::new(device, spec(Dtype::Float32)).unwrap();
    for number in 0..3 {
        let (source, gains) = (Source::new(Dtype::Uint8, number), gains(number as usize));
        let want = on_cpu(&source, &gains, &spec(Dtype::Float32));
        let output = DeviceMemory::new(packer.stream(), want.len()).unwrap();
        // SAFETY: the slot's memory, which is kept and not written again.
        unsafe { packer.pack(Slot::new(device, &source).batch(gains), &output) }.unwrap();
        compare(&output, &stream, &want, &format!("Packer, batch {number}"));
    }
    println!("correct: every byte is the CPU's");
}

fn on_cpu(source: &Source, gains: &[Gains], spec: &PackSpec) -> Vec<u8> {
    let mut batch = vec![0; BATCH * spec.sample_bytes(SIDE, SIDE)];
    source.cpu(gains, spec, &mut batch);
    batch
}

fn compare(output: &DeviceMemory, stream: &Stream, want: &[u8], what: &str) {
    // What was queued on this stream has not told the memory so.
    stream.synchronize().unwrap();
    let mut host = PinnedMemory::new(stream.device(), want.len()).unwrap();
    output.read(&mut host, stream).unwrap();
    // SAFETY: initialised memory of that size; the copy has ended.
    let got = unsafe { std::slice::from_raw_parts(host.as_ptr(), want.len()) };
    let differing = got.iter().zip(want).filter(|(got, want)| got != want).count();
    assert_eq!(differing, 0, "{what}: {differing} of {} bytes differ", want.len());
}
