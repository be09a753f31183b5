#!/usr/bin/env python3
"""Makes resize.tsv, letterbox.tsv and resize_small.tsv: what OpenCV and Ultralytics do, for tests/decode_resize.rs.

Run:   python3 -m venv v && v/bin/pip install numpy opencv-python-headless && v/bin/python make_resize_vectors.py
Made with Python 3.11, opencv-python-headless 5.0.0, numpy 2.4.6.

Source pixels come from a formula that the Rust test repeats, so that only hashes of the results are kept. The
letterbox part repeats the arithmetic of Ultralytics 8.3 (`LetterBox(auto=False, scaleup=True, center=True)` and
`BaseDataset.load_image`), with this project's one exception: a side never becomes 0.
"""

import hashlib
import math
import os

import cv2
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
cv2.setNumThreads(1)

SIZES = [  # source width and height, destination width and height
    # identity and one axis only
    (640, 480, 640, 480), (640, 480, 640, 427), (640, 480, 427, 480), (33, 17, 33, 18), (33, 17, 34, 17),
    # one-pixel sides
    (1, 1, 640, 640), (1, 640, 640, 1), (640, 1, 1, 640), (1, 1, 1, 1), (1, 7, 3, 5), (7, 1, 5, 3), (2, 1, 1, 1),
    (1, 2, 1, 1), (2, 2, 1, 1), (65500, 2, 640, 1), (2, 65500, 1, 640), (65500, 2, 640, 640),
    # tiny
    (2, 2, 3, 3), (3, 3, 2, 2), (2, 3, 640, 960), (3, 2, 4, 4), (5, 4, 7, 9), (17, 13, 640, 489), (4, 4, 5, 3),
    # enlarging
    (320, 240, 640, 480), (161, 119, 640, 473), (500, 375, 640, 480), (500, 333, 640, 426), (333, 500, 427, 640),
    (427, 640, 640, 959), (639, 479, 640, 480), (100, 100, 101, 99), (160, 120, 1280, 960),
    # reducing
    (1280, 960, 640, 480), (1281, 961, 640, 480), (3775, 1571, 640, 266), (1920, 1080, 640, 360), (960, 640, 640, 427),
    (641, 479, 640, 478), (640, 480, 320, 240), (640, 480, 213, 160), (640, 480, 128, 96), (640, 480, 7, 5),
    (999, 777, 333, 259), (1024, 683, 640, 427), (612, 612, 640, 640), (2448, 3264, 480, 640), (640, 427, 91, 61),
    # up on one axis, down on the other
    (640, 100, 320, 300), (100, 640, 300, 320), (37, 411, 411, 37),
]
METHODS = {"linear": cv2.INTER_LINEAR, "nearest": cv2.INTER_NEAREST, "area": cv2.INTER_AREA}

LETTERBOX = [  # source and output
    (640, 480, 640, 640), (480, 640, 640, 640), (640, 427, 640, 640), (641, 479, 640, 640), (427, 640, 640, 640),
    (3775, 1571, 640, 640), (1571, 3775, 640, 640), (500, 333, 640, 640), (333, 500, 640, 640), (500, 375, 640, 640),
    (612, 612, 640, 640), (640, 640, 640, 640), (1, 1, 640, 640), (1, 640, 640, 640), (640, 1, 640, 640),
    (65500, 2, 640, 640), (2, 65500, 640, 640), (7, 5, 640, 640), (161, 119, 640, 640), (1280, 720, 640, 384),
    (1280, 720, 384, 640), (500, 333, 320, 640), (640, 425, 416, 416), (1000, 667, 608, 512), (123, 457, 96, 33),
]


def source(width, height, seed):
    """Pixels of a picture: byte i is the top byte of a 32-bit mix of i and seed."""
    x = np.arange(width * height * 3, dtype=np.uint32) + np.uint32(seed * 0x9E3779B9 & 0xFFFFFFFF)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return (x >> np.uint32(24)).astype(np.uint8).reshape(height, width, 3)


def sha(image):
    return hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest()


def letterbox(image, width, height):
    """LetterBox.__call__ of Ultralytics; also returns the resized size and the left and top padding."""
    h, w = image.shape[:2]
    r = min(height / h, width / w)
    new = max(round(w * r), 1), max(round(h * r), 1)
    dw, dh = (width - new[0]) / 2, (height - new[1]) / 2
    if (w, h) != new:
        image = cv2.resize(image, new, interpolation=cv2.INTER_LINEAR)
    top, bottom = round(dh - 0.1), round(dh + 0.1)
    left, right = round(dw - 0.1), round(dw + 0.1)
    image = cv2.copyMakeBorder(image, top, bottom, left, right, cv2.BORDER_CONSTANT, value=(114,) * 3)
    assert image.shape == (height, width, 3)
    return image, (*new, left, top)


def load_image(image, imgsz):
    """The resizing of BaseDataset.load_image."""
    h, w = image.shape[:2]
    r = imgsz / max(h, w)
    if r != 1:
        w, h = min(math.ceil(w * r), imgsz), min(math.ceil(h * r), imgsz)
        image = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
    return image


def write(name, header, rows):
    with open(os.path.join(HERE, name), "w", newline="\n") as out:
        print(f"# made by make_resize_vectors.py with OpenCV {cv2.__version__}, numpy {np.__version__}", file=out)
        print("\t".join(header), file=out)
        for row in rows:
            print("\t".join(map(str, row)), file=out)


def main():
    rows = []
    for name, method in METHODS.items():
        for seed, (sw, sh, dw, dh) in enumerate(SIZES):
            rows.append((name, sw, sh, dw, dh, seed, sha(cv2.resize(source(sw, sh, seed), (dw, dh), interpolation=method))))
    write("resize.tsv", ("method", "src_w", "src_h", "dst_w", "dst_h", "seed", "sha256"), rows)

    small = []
    for name, method in METHODS.items():
        for sw, sh, dw, dh in [(3, 2, 5, 3), (5, 4, 3, 3), (1, 2, 2, 3), (4, 4, 2, 2), (6, 6, 2, 3)]:
            pixels = cv2.resize(source(sw, sh, 99), (dw, dh), interpolation=method)
            small.append((name, sw, sh, dw, dh, 99, pixels.tobytes().hex()))
    write("resize_small.tsv", ("method", "src_w", "src_h", "dst_w", "dst_h", "seed", "pixels"), small)

    rows = []
    for seed, (sw, sh, w, h) in enumerate(LETTERBOX):
        image = source(sw, sh, seed)
        out, geometry = letterbox(image, w, h)
        rows.append(("letterbox", sw, sh, w, h, seed, *geometry, sha(out)))
        out, geometry = letterbox(load_image(image, max(w, h)), w, h)
        rows.append(("ultralytics", sw, sh, w, h, seed, *geometry, sha(out)))
        rows.append(("stretch", sw, sh, w, h, seed, w, h, 0, 0, sha(cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR))))
    header = ("fit", "src_w", "src_h", "out_w", "out_h", "seed", "scaled_w", "scaled_h", "left", "top", "sha256")
    write("letterbox.tsv", header, rows)


if __name__ == "__main__":
    main()
