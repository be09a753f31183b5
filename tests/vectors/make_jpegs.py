#!/usr/bin/env python3
"""Makes the whole JPEG files that tests/decode_truncated.rs cuts: data/jpeg/{baseline,restart,progressive,cmyk}.jpg.

Run:   python3 -m venv v && v/bin/pip install numpy pillow && v/bin/python make_jpegs.py
Made with Python 3.11, Pillow 13.0.0, numpy 2.4.6. The right pixels of every prefix are libjpeg's, so only the files
themselves are kept.
"""

import os

import numpy as np
from PIL import Image

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "jpeg")


def scene(width, height):
    """Edges, a gradient and a texture, so that no block is empty."""
    y, x = np.mgrid[:height, :width].astype(float)
    wave = 127 + 60 * np.sin(x * y / 90)
    return np.stack([wave, x * 255 / width, np.where((x // 16 + y // 16) % 2, 230, 40) + 20 * np.sin(x)], 2).clip(0, 255).astype(np.uint8)


def main():
    os.makedirs(HERE, exist_ok=True)
    image = Image.fromarray(scene(75, 52))
    image.save(os.path.join(HERE, "baseline.jpg"), quality=80, subsampling="4:2:0")
    image.save(os.path.join(HERE, "restart.jpg"), quality=80, subsampling="4:2:0", restart_marker_blocks=3)
    image.save(os.path.join(HERE, "progressive.jpg"), quality=80, subsampling="4:2:0", progressive=True)
    image.convert("CMYK").save(os.path.join(HERE, "cmyk.jpg"), quality=80)


if __name__ == "__main__":
    main()
