"""Correctness on a GPU: the kernels against the plain reference, the reference against the published results.

Every comparison is of bytes, every output is poisoned first. `check.py --quick` takes few gains: for sanitizers.
"""

import argparse
import hashlib
import itertools
import sys
from pathlib import Path

import cupy
import torch

import peers
from kernels import DTYPES, FORMATS, Frames, Kernels

DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "color"
NORM = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
# Means and deviations that take the general division, and those that underflow on the way.
NORMS = {"imagenet": NORM, "tiny": ((1e-12, 0.5, 0.0), (1e-35, 1.0, -3e20)), "plain": ((0.0,) * 3, (1.0,) * 3)}

_reference = cupy.RawModule(code=(Path(__file__).parent / "reference.cu").read_text(), options=("--fmad=false",))


def reference(rgb, gains):
    """Levels [N, 3] of `rgb` (uint8 or float32 [N, 3]) under one triple of float64 gains."""
    name = "jitter_bytes" if rgb.dtype == torch.uint8 else "jitter_floats"
    out = torch.empty(rgb.shape, dtype=torch.uint8, device="cuda")
    stream = cupy.cuda.Stream.from_external(torch.cuda.current_stream())
    with stream:
        count = rgb.shape[0]
        _reference.get_function(name)((-(-count // 256),), (256,), (
            rgb.data_ptr(), cupy.int64(count), gains.data_ptr(), out.data_ptr()))
    return out


def plain_levels(rgb):
    """Without a jitter: what quantizing alone gives."""
    if rgb.dtype == torch.uint8:
        return rgb
    return (rgb * 255).round().nan_to_num(0, 3e38, -3e38).clamp(0, 255).to(torch.uint8)


def finish(levels, dtype, norm=None):
    """Step 11, by PyTorch's own operations."""
    if dtype == torch.uint8:
        return levels
    y = levels.to(torch.float32) / 255
    if norm:
        mean, std = (torch.tensor(values, dtype=torch.float32, device="cuda") for values in norm)
        y = (y - mean) / std
    return y.to(dtype)


def poisoned(shape, dtype):
    out = torch.empty(shape, dtype=dtype, device="cuda")
    out.view(torch.uint8).fill_(0xA5)
    return out


class Report:
    """Counts comparisons by subject and fails at the first difference."""

    def __init__(self):
        self.counts = {}

    def equal(self, subject, got, want, *about):
        got, want = got.contiguous(), want.contiguous()
        assert got.dtype == want.dtype and got.shape == want.shape, (subject, got.shape, want.shape, about)
        differing = int((got.view(torch.uint8) != want.view(torch.uint8)).sum())
        if differing:
            where = (got.view(torch.uint8) != want.view(torch.uint8)).flatten().nonzero()[:3].flatten().tolist()
            sys.exit(f"{subject}: {differing} differing bytes, first at {where}: {about}")
        cases, size = self.counts.get(subject, (0, 0))
        self.counts[subject] = (cases + 1, size + want.numel() * want.element_size())

    def print(self):
        for subject, (cases, size) in self.counts.items():
            print(f"{subject:48} {cases:6} comparisons {size / 1e9:9.2f} GB equal")


def cube():
    """All 2^24 colours, r-major, [2^24, 3]."""
    values = torch.arange(256, dtype=torch.uint8, device="cuda")
    return torch.stack(torch.meshgrid(values, values, values, indexing="ij"), -1).reshape(-1, 3)


def triples(count):
    """Gains: those of the table, edges, and random ones of the usual ranges and wider."""
    rows = [line.split("\t") for line in (DATA / "color_sha256.tsv").read_text().splitlines()[1:]]
    gains = [tuple(map(float, row[:3])) for row in rows]
    gains += [(0.015, 0.7, 0.4), (-0.015, -0.7, -0.4), (1.0, 1.0, 1.0), (-1.0, -1.0, -1.0), (1e-8, -1e-8, 1e-8),
              (0.25, 0.0, 0.0), (1 / 6, 0.5, 0.0), (-1 / 3, 0.0, 0.0), (-0.0, -0.0, -0.0), (0.9999999, -0.5, 0.2),
              # Beyond every use: the definition's way.
              (2.5, 0.1, 0.1), (-1e6, 3.0, 0.0), (0.1, -4.0, 0.0), (0.1, 0.0, -3.0), (0.1, 1e30, 1e30)]
    generator = torch.Generator().manual_seed(4)
    while len(gains) < count:
        wide = len(gains) % 2
        x = torch.rand(3, generator=generator, dtype=torch.float64) * 2 - 1
        gains.append(tuple((x * torch.tensor([0.5, 1.0, 1.0] if wide else [0.015, 0.7, 0.4])).tolist()))
    return gains[:count] if count < len(rows) else gains


def on_device(gains):
    return torch.tensor(gains, dtype=torch.float64, device="cuda").reshape(-1, 3)


def published(report):
    """The reference gives the digests and the extreme pixels that eager PyTorch gave."""
    colours = cube()
    for line in (DATA / "color_sha256.tsv").read_text().splitlines()[1:]:
        *gains, levels_digest, restored_digest = line.split("\t")
        levels = reference(colours, on_device([list(map(float, gains))]))
        assert hashlib.sha256(levels.cpu().numpy()).hexdigest() == levels_digest, gains
        restored = finish(levels, torch.float32)
        assert hashlib.sha256(restored.cpu().numpy()).hexdigest() == restored_digest, gains
        report.counts["reference: published digests"] = (
            report.counts.get("reference: published digests", (0, 0))[0] + 1, 0)
    groups = {}
    for line in (DATA / "float_extremes.tsv").read_text().splitlines()[1:]:
        r, g, b, *gains, x, y, z = line.split("\t")
        groups.setdefault(tuple(map(float, gains)), []).append((*map(float, (r, g, b)), *map(int, (x, y, z))))
    result = {}
    for gains, rows in groups.items():
        pixels = torch.tensor([row[:3] for row in rows], dtype=torch.float64).to(torch.float32).cuda()
        levels = torch.tensor([row[3:] for row in rows], dtype=torch.uint8, device="cuda")
        report.equal("reference: published extremes", reference(pixels, on_device([gains])), levels, gains)
        result[gains] = pixels, levels
    return result


def colours(kernels, report, gains):
    """All colours under all gains, each in every input kind and element type, in two shapes of 2^24 pixels."""
    rgb = cube()
    side = 4096
    frames = {format: Frames.of(rgb.view(1, side, side, 3), format) for format in FORMATS}
    planes = (rgb.to(torch.float32) / 255).t().contiguous().view(1, 3, side, side)
    for triple in gains:
        device_gains = on_device([triple])
        levels = reference(rgb, device_gains)
        for format, (name, dtype) in itertools.product(frames, DTYPES.items()):
            if format != "RGB" and name not in ("float32", "uint8"):
                continue
            out = poisoned((1, side, side, 3), dtype)
            kernels.pack_bytes(frames[format], device_gains, out)
            report.equal(f"all colours: {format} to {name}", out.view(-1, 3), finish(levels, dtype), triple)
        for name, dtype in DTYPES.items():
            out = poisoned((1, side, side, 3), dtype)
            kernels.pack_floats(planes, device_gains, out)
            report.equal(f"all colours: float32 to {name}", out.view(-1, 3), finish(levels, dtype), triple)
        for format in FORMATS:
            to = Frames.of(torch.zeros_like(rgb).view(1, side, side, 3), format)
            kernels.jitter_frames(frames[format], device_gains, to)
            report.equal(f"all colours: {format} frames", to.rgb().view(-1, 3), levels, triple)
    zero = on_device([(0.0, 0.0, 0.0)])
    for gains_or_none in (zero, None):
        out = poisoned((1, side, side, 3), torch.uint8)
        kernels.pack_bytes(frames["RGB"], gains_or_none, out)
        report.equal("all colours: zero gains and none: identity", out.view(-1, 3), rgb)


SIZES = [(640, 640), (641, 479), (17, 13), (1, 1), (3, 1), (4, 1), (5, 7), (33, 32), (36, 3), (1, 257), (2, 2),
         (132, 8), (640, 3)]


def shapes(kernels, report, sizes, batches):
    """Odd sizes, strides, formats, layouts, element types, normalisation, gains of every way in one batch."""
    generator = torch.Generator(device="cuda").manual_seed(5)
    ways = triples(80)
    ways[1], ways[3], ways[5] = (0.0, 0.0, 0.0), (2.5, 0.1, 0.1), (0.1, -4.0, 0.0)
    for (width, height), batch in itertools.product(sizes, batches):
        rgb = torch.randint(0, 256, (batch, height, width, 3), dtype=torch.uint8, device="cuda", generator=generator)
        gains = on_device([ways[(7 * s + width) % len(ways)] for s in range(batch)])
        levels = torch.stack([
            reference(rgb[s].reshape(-1, 3), gains[s : s + 1]).view(height, width, 3) for s in range(batch)])
        floats = (rgb.permute(0, 3, 1, 2).to(torch.float32) / 255).contiguous()
        places = [dict(), dict(row_padding=4), dict(row_padding=1), dict(row_padding=16, sample_padding=32),
                  dict(offset=1), dict(offset=4, tabled=True), dict(row_padding=32, tabled=True), dict(offset=16)]
        for format, place in itertools.product(FORMATS, places):
            if batch == 64 and width * height > 100000 and (format != "RGB" or place):
                continue
            frames = Frames.of(rgb, format, **place)
            before = frames.storage.clone()
            for (name, dtype), nchw, (kind, norm) in itertools.product(
                    DTYPES.items(), (False, True), (("none", None), *NORMS.items())):
                if norm and (dtype == torch.uint8 or (place and kind != "imagenet")):
                    continue
                out = poisoned((batch, 3, height, width) if nchw else (batch, height, width, 3), dtype)
                for given, wanted in ((gains, levels), (None, rgb)):
                    out.view(torch.uint8).fill_(0xA5)
                    kernels.pack_bytes(frames, given, out, nchw=nchw, norm=norm)
                    want = finish(wanted, dtype, norm)
                    report.equal("shapes: bytes", out.permute(0, 2, 3, 1) if nchw else out, want,
                                 width, height, batch, format, place, name, nchw, kind)
            assert torch.equal(before, frames.storage), "an input has been written to"
            to = Frames.of(torch.zeros_like(rgb), format, **(place if place.get("tabled") else dict(row_padding=8)))
            rest = _rest(to)
            kernels.jitter_frames(frames, gains, to)
            report.equal("shapes: frames", to.rgb(), levels, width, height, batch, format, place)
            if FORMATS[format] not in (2, 3):
                report.equal("shapes: frames, row padding kept", _rest(to), rest, format, place)
            else:
                report.equal("shapes: frames, fourth byte copied", _fourth(to), _fourth(frames), format, place)
            rest = _rest(frames)
            kernels.jitter_frames(frames, gains, frames)
            report.equal("shapes: frames in place", frames.rgb(), levels, width, height, batch, format, place)
            report.equal("shapes: frames in place, all else kept", _rest(frames), rest, format, place)
        for (name, dtype), nchw, norm, hwc, force in itertools.product(
                DTYPES.items(), (False, True), (None, *NORMS.values()), (False, True), (False, True)):
            if norm and dtype == torch.uint8 or batch == 64 and width * height > 100000 and (hwc or force or nchw):
                continue
            images = floats.permute(0, 2, 3, 1).contiguous() if hwc else floats
            out = poisoned((batch, 3, height, width) if nchw else (batch, height, width, 3), dtype)
            for given, wanted in ((gains, levels), (None, rgb)):
                out.view(torch.uint8).fill_(0xA5)
                kernels.pack_floats(images, given, out, nchw=nchw, norm=norm, hwc=hwc, force_any=force)
                report.equal("shapes: floats", out.permute(0, 2, 3, 1) if nchw else out, finish(wanted, dtype, norm),
                             width, height, batch, name, nchw, norm, hwc, force)


def _rest(frames):
    """The storage with all channels blanked."""
    rest = frames.storage.clone()
    copy = Frames(frames.format, frames.width, frames.height, frames.batch, rest, *frames.strides, frames.offset)
    for view in copy.views():
        view.zero_()
    return rest


def _fourth(frames):
    sample, _, row = frames.strides
    return frames.storage.as_strided((frames.batch, frames.height, frames.width), (sample, row, 4), frames.offset + 3)


def floats(kernels, report, extremes, rounds):
    """float32 pixels that no camera gives, against the table, the reference and eager PyTorch."""
    for gains, (pixels, levels) in extremes.items():
        for repeat in (1, 4):  # 2,744 pixels: with one pixel more, the kernel for any size
            image = torch.cat([pixels] * repeat + [pixels[:1]] * (repeat == 1)).t().contiguous()
            want = torch.cat([levels] * repeat + [levels[:1]] * (repeat == 1))
            out = poisoned((1, 1, image.shape[1], 3), torch.uint8)
            kernels.pack_floats(image.view(1, 3, 1, -1), on_device([gains]), out)
            report.equal("floats: published extremes", out.view(-1, 3), want, gains, repeat)
    generator = torch.Generator(device="cuda").manual_seed(6)
    side, batch = 512, 8
    for turn in range(rounds):
        image = torch.rand((batch, 3, side, side), device="cuda", generator=generator)
        kind = turn % 5
        if kind == 1:  # any bit pattern
            image = torch.randint(-(2**31), 2**31, image.shape, dtype=torch.int64, device="cuda",
                                  generator=generator).to(torch.int32).view(torch.float32)
        elif kind == 2:  # out of range
            image = image * 4 - 1.5
        elif kind == 3:  # near-greys and neighbours, whose quotients are the hardest
            image = image[:, :1] * (1 + torch.randint(-8, 9, image.shape, device="cuda", generator=generator) * 2**-23)
        elif kind == 4:  # some specials among usual numbers
            special = torch.tensor([float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45, -1e-45, -0.0, 0.0,
                                    1.0, 1e-38, 2**-36, 2**-37, 2.0**60, 2.0**61], device="cuda")
            index = torch.randint(0, 60 * len(special), image.shape, device="cuda", generator=generator)
            image = torch.where(index < len(special), special[index % len(special)], image)
        image = image.contiguous()
        x = torch.rand((batch, 3), dtype=torch.float64, device="cuda", generator=generator) * 2 - 1
        gains = (x * torch.tensor([0.5, 1.0, 1.0] if turn % 2 else [0.015, 0.7, 0.4], device="cuda")).contiguous()
        pixels = image.permute(0, 2, 3, 1).contiguous()
        levels = torch.stack([reference(pixels[s].view(-1, 3), gains[s : s + 1]) for s in range(batch)])
        for name, dtype in DTYPES.items():
            out = poisoned((batch, side, side, 3), dtype)
            kernels.pack_floats(image, gains, out)
            report.equal("floats: reference", out.view(batch, -1, 3), finish(levels, dtype), turn, name)
            report.equal("floats: eager PyTorch", out, peers.step(image, gains, dtype), turn, name)
        out = poisoned((batch, side, side, 3), torch.uint8)
        kernels.pack_floats(image, None, out)
        report.equal("floats: no jitter", out, plain_levels(pixels), turn)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="few gains and sizes, for compute-sanitizer")
    parser.add_argument("--variant", choices=("sm52", "sm80"), help="a PTX variant other than the device's")
    arguments = parser.parse_args()
    kernels, report = Kernels(arguments.variant), Report()
    if arguments.quick:
        shapes(kernels, report, [(17, 13), (36, 3), (132, 8)], (2,))
        report.print()
        return
    extremes = published(report)
    colours(kernels, report, triples(80))
    shapes(kernels, report, SIZES, (1, 7, 64))
    floats(kernels, report, extremes, 40)
    report.print()
    print("correct")


if __name__ == "__main__":
    main()
