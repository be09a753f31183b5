"""The arithmetic of a sample in NumPy float32: fit, jitter, quantize, restore.

Written from the formulas (torchvision's max/min/sector HSV as PyTorch evaluates it on CUDA), not from the Rust code, so that
the two check each other. Every intermediate is float32: NumPy rounds after each operation and never contracts.

Checked with Python 3.11, NumPy 2.4.6, OpenCV 5.0.0.93.
"""

import cv2
import numpy as np

f32 = np.float32
ONE = f32(1)


def letterbox(image, width, height):
    """`image` (h, w, 3 uint8) as large as it fits, in the middle of 114-grey, as Ultralytics' LetterBox(auto=False)."""
    h, w = image.shape[:2]
    ratio = min(width / w, height / h)
    # round() rounds half to even, in Python as in the definition.
    new_w, new_h = max(1, round(w * ratio)), max(1, round(h * ratio))
    if (new_w, new_h) != (w, h):
        image = cv2.resize(image, (new_w, new_h), interpolation=cv2.INTER_LINEAR)
    left, top = round((width - new_w) / 2 - 0.1), round((height - new_h) / 2 - 0.1)
    out = np.full((height, width, 3), 114, np.uint8)
    out[top : top + new_h, left : left + new_w] = image
    return out


def rgb_to_hsv(rgb):
    """Hue in turns, saturation and value of float32 `rgb` (..., 3)."""
    r, g, b = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    maxc, minc = rgb.max(-1), rgb.min(-1)
    cr, eqc = maxc - minc, maxc == minc
    s = cr / np.where(eqc, ONE, maxc)
    d = np.where(eqc, ONE, cr)
    rc, gc, bc = (maxc - r) / d, (maxc - g) / d, (maxc - b) / d
    red = (maxc == r) * (bc - gc)
    green = ((maxc == g) & (maxc != r)) * ((f32(2) + rc) - bc)
    blue = ((maxc != g) & (maxc != r)) * ((f32(4) + gc) - rc)
    # PyTorch's CUDA kernels multiply by the reciprocal of a constant divisor.
    h = np.fmod((red + green + blue) * f32(1 / 6) + ONE, ONE)
    return h, s, maxc


def hsv_to_rgb(h, s, v):
    """The inverse; `h` may be exactly 1, which is sector 0."""
    h6 = h * f32(6)
    floor = np.floor(h6)
    f = h6 - floor
    sector = floor.astype(np.int32) % 6
    unit = lambda x: np.clip(x, f32(0), ONE)
    p, q, t = unit(v * (ONE - s)), unit(v * (ONE - s * f)), unit(v * (ONE - s * (ONE - f)))
    r = np.choose(sector, [v, q, p, p, t, v])
    g = np.choose(sector, [t, v, v, q, p, p])
    b = np.choose(sector, [p, p, t, v, v, q])
    return np.stack([r, g, b], -1)


def jitter(image, gains):
    """`image` (..., 3 uint8) after the jitter by `gains` (hue in turns, saturation, value; Python floats), as uint8."""
    h, s, v = rgb_to_hsv(image.astype(f32) * f32(1 / 255))
    hue, saturation, value = gains
    h = np.fmod(h + f32(hue), ONE)
    h = np.where((h != 0) & (h < 0), h + ONE, h)
    # 1 + gain is added in float64, then rounded once.
    s = np.clip(s * f32(1.0 + saturation), f32(0), ONE)
    v = np.clip(v * f32(1.0 + value), f32(0), ONE)
    rgb = hsv_to_rgb(h, s, v)
    assert rgb.dtype == f32, "an operation has left float32"
    return np.clip(np.rint(rgb * f32(255)), 0, 255).astype(np.uint8)


def bfloat16_bits(x):
    """float32 to the bits of bfloat16, to the nearest, ties to even, with integers only. For finite numbers."""
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def restore(image, dtype, mean=None, std=None):
    """`image` (..., 3 uint8) as values of `dtype` (bfloat16: their bits), normalised if `mean` and `std` are given."""
    if dtype == "uint8":
        return image
    x = image.astype(f32) * f32(1 / 255)
    if mean is not None:
        x = (x - np.array(mean, f32)) / np.array(std, f32)
    assert x.dtype == f32
    return {"float32": lambda: x, "float16": lambda: x.astype(np.float16), "bfloat16": lambda: bfloat16_bits(x)}[dtype]()
