"""The kernels with PyTorch tensors: which one takes an input, and with what launch. kernels/README.md has the rules."""

import torch

from driver import Module

FORMATS = {"RGB": 0, "BGR": 1, "RGBx": 2, "BGRx": 3, "RGBP": 4}
DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "uint8": torch.uint8}
_BYTES = "PqqqPiiiPPiffffff"
_FLOATS = "PqqqiiPPiffffff"
_FRAMES = "PqqqPPqqqPiiiP"


class Kernels:
    """All functions of the three modules.

    `threads` are those of a block, `per_thread` the pixels that the grid is made for; None takes the recommendation.
    """

    def __init__(self, variant=None, folder=None):
        more = {"folder": folder} if folder else {}
        modules = {name: Module(name, variant, **more) for name in ("pack_bytes", "pack_floats")}
        modules["jitter_frames"] = Module("jitter_frames", "sm52", **more)
        self.bytes, self.floats, self.any_bytes, self.any_floats = {}, {}, {}, {}
        for dtype in DTYPES:
            self.bytes[dtype] = modules["pack_bytes"].kernel(f"epochfeed_pack_bytes_{dtype}", _BYTES)
            self.any_bytes[dtype] = modules["pack_bytes"].kernel(f"epochfeed_pack_any_bytes_{dtype}", _BYTES)
            self.floats[dtype] = modules["pack_floats"].kernel(f"epochfeed_pack_floats_{dtype}", _FLOATS)
            self.any_floats[dtype] = modules["pack_floats"].kernel(f"epochfeed_pack_any_floats_{dtype}", _FLOATS)
        self.frames = modules["jitter_frames"].kernel("epochfeed_jitter_frames", _FRAMES)
        self.any_frames = modules["jitter_frames"].kernel("epochfeed_jitter_any_frames", _FRAMES)
        self.threads, self.per_thread = None, None
        self.wanted_blocks = 16 * torch.cuda.get_device_properties(0).multi_processor_count

    def _launch(self, kernel, recommended, pixels, batch, arguments):
        threads, per_thread = self.threads or 128, self.per_thread or recommended
        blocks = -(-pixels // (threads * per_thread))
        if not self.per_thread:
            # A small batch is spread over the whole device rather than amortising what a thread does first.
            most = -(-pixels // (threads * 4))
            blocks = min(most, max(blocks, -(-self.wanted_blocks // batch)))
        kernel((max(1, blocks), batch), threads, 48 * threads, *arguments)

    def pack_bytes(self, frames, gains, out, *, nchw=False, norm=None, force_any=False):
        """`frames`: a `Frames`; `gains`: float64 [B, 3] on the device or None; `out`: the batch."""
        dtype = str(out.dtype).removeprefix("torch.")
        four = frames.takes_fours() and out.data_ptr() % 16 == 0 and not force_any
        kernel = (self.bytes if four else self.any_bytes)[dtype]
        mean, std = norm or ((0.0,) * 3, (0.0,) * 3)
        arguments = (*frames.arguments(), FORMATS[frames.format], frames.width, frames.height, _pointer(gains),
                     out.data_ptr(), int(nchw), *mean, *std)
        self._launch(kernel, 12 if dtype == "float32" else 40, frames.width * frames.height, frames.batch, arguments)

    def pack_floats(self, images, gains, out, *, nchw=False, norm=None, hwc=False, force_any=False):
        """`images`: contiguous float32 [B, 3, H, W], or [B, H, W, 3] with `hwc`."""
        dtype = str(out.dtype).removeprefix("torch.")
        batch = images.shape[0]
        height, width = images.shape[1:3] if hwc else images.shape[2:]
        pixels = width * height
        four = not hwc and pixels % 4 == 0 and (images.data_ptr() | out.data_ptr()) % 16 == 0 and not force_any
        kernel = (self.floats if four else self.any_floats)[dtype]
        mean, std = norm or ((0.0,) * 3, (0.0,) * 3)
        strides = (3 * pixels, 1, 3) if hwc else (3 * pixels, pixels, 1)
        arguments = (images.data_ptr(), *strides, width, height, _pointer(gains), out.data_ptr(), int(nchw), *mean,
                     *std)
        self._launch(kernel, {"float32": 8, "uint8": 16}.get(dtype, 12), pixels, batch, arguments)

    def jitter_frames(self, frames, gains, out, *, force_any=False):
        """`out`: a `Frames` of the same format and size, maybe the same."""
        four = frames.takes_fours() and out.takes_fours() and not force_any
        kernel = self.frames if four else self.any_frames
        arguments = (*frames.arguments(), *out.arguments(), FORMATS[frames.format], frames.width, frames.height,
                     _pointer(gains))
        self._launch(kernel, 40, frames.width * frames.height, frames.batch, arguments)


def _pointer(tensor):
    return 0 if tensor is None else tensor.data_ptr()


class Frames:
    """uint8 frames on the device: one batch with strides, or a table of addresses and strides."""

    def __init__(self, format, width, height, batch, storage, sample_stride, plane_stride, row_stride, offset=0,
                 table=None):
        self.format, self.width, self.height, self.batch = format, width, height, batch
        self.storage, self.offset, self.table = storage, offset, table
        self.strides = (sample_stride, plane_stride, row_stride)

    @staticmethod
    def of(rgb, format, row_padding=0, sample_padding=0, offset=0, tabled=False):
        """`rgb` (uint8 [B, H, W, 3] on the device) as frames of `format`; what is no channel is noise."""
        batch, height, width, _ = rgb.shape
        size = {"RGB": 3, "BGR": 3, "RGBP": 1}.get(format, 4)
        planes = 3 if format == "RGBP" else 1
        row = width * size + row_padding
        plane = row * height
        sample = plane * planes + sample_padding
        storage = torch.randint(0, 256, (offset + batch * sample,), dtype=torch.uint8, device=rgb.device)
        frames = Frames(format, width, height, batch, storage, sample, plane, row, offset)
        for c, view in enumerate(frames.views()):
            view.copy_(rgb[..., c])
        if tabled:
            address = storage.data_ptr() + offset
            entries = [[address + s * sample + p * plane, row] for s in range(batch) for p in range(planes)]
            frames.table = torch.tensor(entries, dtype=torch.int64, device=rgb.device)
        return frames

    def views(self):
        """Three views [B, H, W] of the channels R, G, B."""
        sample, plane, row = self.strides
        size = {"RGB": 3, "BGR": 3, "RGBP": 1}.get(self.format, 4)
        order = [2, 1, 0] if self.format.startswith("BGR") else [0, 1, 2]
        steps = [c * plane for c in range(3)] if self.format == "RGBP" else order
        shape = (self.batch, self.height, self.width)
        return [self.storage.as_strided(shape, (sample, row, size), self.offset + step) for step in steps]

    def rgb(self):
        return torch.stack(self.views(), -1)

    def takes_fours(self):
        size = {"RGB": 3, "BGR": 3, "RGBP": 1}.get(self.format, 4)
        unit = 16 if size == 4 else 4
        contiguous = self.strides[2] == self.width * size
        aligned = [self.storage.data_ptr() + self.offset] + list(self.strides[: 2 if contiguous else 3])
        return (all(value % unit == 0 for value in aligned)
                and self.width * self.height % 4 == 0 and (contiguous or self.width % 4 == 0))

    def arguments(self):
        if self.table is not None:
            return (0, 0, 0, 0, self.table.data_ptr())
        return (self.storage.data_ptr() + self.offset, *self.strides, 0)
