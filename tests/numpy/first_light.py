"""What a pipeline over a folder of photographs must write, computed without epochfeed and compared byte for byte.

    gst-launch-1.0 -q epochsrc location=F shuffle=none ! epochdecode ! video/x-raw,format=RGB,width=640,height=640 \\
        ! hsvquantize gains="0.01,0.35,-0.25" ! nhwcpack batch-size=8 dtype=float32 ! filesink location=out.f32
    python tests/numpy/first_light.py F --gains=0.01,0.35,-0.25 float32:nhwc:out.f32

Pillow decodes, OpenCV resizes, arithmetic.py does the rest in NumPy float32. With --seed in place of --gains the gains are
drawn as read_gains.py does, and those in a report of epochsink's are compared as well (with ==: the same float64).

Needs the packages of tests/requirements.txt; checked with Python 3.11, NumPy 2.4.6, OpenCV 5.0.0.93, Pillow 13.0.0.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
from PIL import Image

from arithmetic import jitter, letterbox, restore

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "vectors"))
from read_gains import draw_gains  # noqa: E402


def triple(text):
    numbers = tuple(map(float, text.split(",")))
    if len(numbers) != 3:
        raise argparse.ArgumentTypeError(f"{text!r} is not three numbers")
    return numbers


class Output:
    """A file that a pipeline wrote, read sample by sample."""

    def __init__(self, text, mean, std):
        self.dtype, self.layout, path = text.split(":", 2)
        self.path = pathlib.Path(path)
        self.file = self.path.open("rb")
        self.normalisation = (mean, std)

    def check(self, name, image):
        """Compares the next sample with what `image` (uint8, jittered) becomes."""
        want = restore(image, self.dtype, *self.normalisation)
        if self.layout == "nchw":
            want = np.moveaxis(want, -1, -3)
        want = np.ascontiguousarray(want)
        content = self.file.read(want.nbytes)
        if content == want.tobytes():
            return
        if len(content) < want.nbytes:
            sys.exit(f"{self.path} ends within {name}")
        bits = np.dtype(f"u{want.itemsize}")
        got, want = np.frombuffer(content, bits).reshape(want.shape), want.view(bits)
        wrong = np.argwhere(got != want)
        place = tuple(map(int, wrong[0]))
        sys.exit(
            f"{self.path}: {name}: {len(wrong)} of {got.size} values differ; the first at {place} in {self.layout} order: "
            f"bits {got[place]:#x}, not {want[place]:#x}"
        )

    def finish(self):
        if self.file.read(1):
            sys.exit(f"{self.path} goes on behind the last sample")


def reported_samples(path):
    """Epoch, dataset index and gains of each sample in the order of a report of epochsink's."""
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if entry["type"] == "batch":
            for index, gains in zip(entry["indices"], entry["gains"], strict=True):
                yield entry["epoch"], index, tuple(gains)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path, help="folder of JPEG files, taken in the order of their names")
    parser.add_argument("outputs", nargs="+", metavar="DTYPE:LAYOUT:FILE")
    parser.add_argument("--size", type=int, default=640, help="width and height")
    gains = parser.add_mutually_exclusive_group(required=True)
    gains.add_argument("--gains", type=triple, help="of every sample")
    gains.add_argument("--seed", type=int, help="of the gains that are drawn")
    parser.add_argument("--ranges", type=triple, default=(0.015, 0.7, 0.4))
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--mean", type=triple)
    parser.add_argument("--std", type=triple)
    options = parser.parse_args()

    # Byte order of the names, as epochsrc lists a folder.
    photos = sorted(options.photos.glob("*.jpg"), key=lambda path: bytes(path))
    if not photos:
        sys.exit(f"{options.photos} has no photographs")
    outputs = [Output(text, options.mean, options.std) for text in options.outputs]
    reported = reported_samples(options.report) if options.report else None
    for epoch in range(options.epochs):
        for index, photo in enumerate(photos):
            name = f"sample {index} ({photo.name}) of epoch {epoch}"
            gains = options.gains or draw_gains(options.seed, epoch, index, options.ranges)
            if reported and (said := next(reported, None)) != (epoch, index, gains):
                sys.exit(f"{options.report}: {name}: epoch, index and gains are {said}, not {(epoch, index, gains)}")
            with Image.open(photo) as file:
                image = letterbox(np.asarray(file.convert("RGB")), options.size, options.size)
            image = jitter(image, gains)
            for output in outputs:
                output.check(name, image)
    for output in outputs:
        output.finish()
    if reported and (said := next(reported, None)):
        sys.exit(f"{options.report} goes on with {said}")
    print(f"{options.epochs * len(photos)} samples are equal, byte for byte, in {len(outputs)} files")


if __name__ == "__main__":
    main()
