//! Device memory of the tests: inputs at any address, outputs that are poisoned and guarded.

use std::sync::Arc;

use epochfeed::cuda::{Device, DeviceMemory, Output, PinnedMemory, Stream};

use super::driver;

/// What outputs hold before they are written.
const POISON: u8 = 0xA5;
/// Poisoned bytes in front of an output and behind it.
const GUARD: usize = 256;

/// Bytes on the device, `shift` bytes behind an address of full alignment.
pub struct Uploaded {
    memory: DeviceMemory,
    shift: usize,
}

impl Uploaded {
    /// What the driver allocates is aligned to 256 bytes.
    pub fn new(stream: &Stream, bytes: &[u8], shift: usize) -> Self {
        let memory = DeviceMemory::new(stream, bytes.len() + shift).unwrap();
        // SAFETY: fresh memory of that size, in its stream's order.
        unsafe { driver::upload(stream, memory.pointer() + shift as u64, bytes) };
        Self { memory, shift }
    }

    pub fn pointer(&self) -> u64 {
        self.memory.pointer() + self.shift as u64
    }

    /// What is there now.
    pub fn bytes(&self, stream: &Stream) -> Vec<u8> {
        let mut bytes = vec![0; self.memory.len() - self.shift];
        // SAFETY: memory of that size; whoever writes it does so on the same stream.
        unsafe { driver::download(stream, &mut bytes, self.pointer()) };
        bytes
    }
}

/// Room for an output, with guards.
pub struct Room {
    memory: DeviceMemory,
    host: PinnedMemory,
    shift: usize,
    bytes: usize,
}

impl Room {
    /// For outputs of up to `bytes` bytes, shifted by up to 16.
    pub fn new(stream: &Stream, bytes: usize) -> Self {
        let whole = bytes + 2 * GUARD + 16;
        Self {
            memory: DeviceMemory::new(stream, whole).unwrap(),
            host: PinnedMemory::new(stream.device(), whole).unwrap(),
            shift: 0,
            bytes: 0,
        }
    }

    /// Poisons an output of `bytes` bytes, `shift` bytes behind an address of full alignment, and its guards.
    pub fn poisoned(&mut self, stream: &Stream, bytes: usize, shift: usize) -> Output {
        assert!(
            bytes + shift + 2 * GUARD <= self.memory.len(),
            "the room is too small"
        );
        (self.bytes, self.shift) = (bytes, shift);
        // SAFETY: our own memory, used on this stream only.
        unsafe { driver::fill(stream, self.memory.pointer(), shift + bytes + 2 * GUARD, POISON) };
        // SAFETY: as above; the output lies between its guards.
        unsafe { Output::from_raw(self.pointer(), bytes) }
    }

    /// Where the output is.
    pub fn pointer(&self) -> u64 {
        self.memory.pointer() + (GUARD + self.shift) as u64
    }

    /// The output, when its guards are as they were.
    #[track_caller]
    pub fn taken(&mut self, stream: &Stream, about: &dyn Fn() -> String) -> &[u8] {
        let whole = self.shift + self.bytes + 2 * GUARD;
        // SAFETY: our own memory, at least as large.
        let host = unsafe { std::slice::from_raw_parts_mut(self.host.as_ptr(), whole) };
        // SAFETY: as large, written on this stream only.
        unsafe { driver::download(stream, host, self.memory.pointer()) };
        let (front, rest) = host.split_at(GUARD + self.shift);
        let (output, behind) = rest.split_at(self.bytes);
        let untouched = |guard: &[u8]| guard.iter().all(|byte| *byte == POISON);
        assert!(untouched(front), "written in front of the output: {}", about());
        assert!(untouched(behind), "written behind the output: {}", about());
        output
    }
}

/// A stream of its own.
pub fn stream(device: &Arc<Device>) -> Stream {
    Stream::new(device).unwrap()
}

/// The bytes of page-locked memory.
///
/// # Safety
/// No copy from or to it is under way.
pub unsafe fn bytes_of(memory: &mut PinnedMemory) -> &mut [u8] {
    // SAFETY: initialised memory of that size; nobody else uses it, by the caller's promise and the borrow.
    unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), memory.len()) }
}
