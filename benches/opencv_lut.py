"""OpenCV's HSV jitter as detection trainers run it on the CPU, for comparison with benches/color.rs.

Run:    python3 benches/opencv_lut.py      (benches/color.sh does it, pinned to one core)
Needs:  opencv-python-headless and numpy.

cvtColor to HSV, split, one LUT per channel, merge, cvtColor back, then float32 / 255 of the frame; one 640x640 frame,
one thread. Its bytes differ from ours on purpose: OpenCV's HSV is uint8. Prints `case, median ms, minimum ms` for the
variants that users write, so that the comparison can be made with the fastest.
"""

import time

import cv2
import numpy as np

SIDE, ROUNDS = 640, 200


def main():
    cv2.setNumThreads(1)
    frame = np.random.default_rng(1).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    r = np.array([0.01, 0.35, -0.25]) + 1
    x = np.arange(0, 256, dtype=r.dtype)
    lut_hue = ((x * r[0]) % 180).astype(np.uint8)
    lut_sat = np.clip(x * r[1], 0, 255).astype(np.uint8)
    lut_val = np.clip(x * r[2], 0, 255).astype(np.uint8)
    inverse = np.float32(1 / 255)
    out = np.empty((SIDE, SIDE, 3), np.float32)

    def jitter():
        hue, sat, val = cv2.split(cv2.cvtColor(frame, cv2.COLOR_RGB2HSV))
        hsv = cv2.merge((cv2.LUT(hue, lut_hue), cv2.LUT(sat, lut_sat), cv2.LUT(val, lut_val)))
        return cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB)

    def divide():
        return jitter().astype(np.float32) / 255

    def multiply_into():
        np.multiply(jitter(), inverse, out=out, dtype=np.float32)

    cases = {
        "opencv lut, uint8 only": jitter,
        "opencv lut + astype(float32) / 255": divide,
        "opencv lut + multiply into a reused float32": multiply_into,
    }
    for name, run in cases.items():
        run()
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        print(f"{name}\t{sorted(times)[ROUNDS // 2]:.3f}\t{min(times):.3f}")


if __name__ == "__main__":
    main()
