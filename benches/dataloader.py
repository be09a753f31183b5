"""PyTorch's DataLoader doing what epochfeed's main job does: decode, letterbox to 640x640, HSV jitter, float32 batches.

Usage: python benches/dataloader.py LIST [--workers 2] [--batch 8] [--epochs 3]
Needs torch, numpy and opencv-python-headless. LIST is a text file of paths, one a line.

The jitter is Ultralytics' (OpenCV's uint8 HSV and look-up tables), the letterbox its LetterBox(auto=False): the usual
way to feed a detector. The batches are N x H x W x C float32 in 0..1. Workers persist, as recommended. The first epoch is
not counted. Prints samples a second of the median epoch, and the median wait for an epoch's first batch.
"""

import argparse
import statistics
import time

import cv2
import numpy as np
import torch


class Photographs(torch.utils.data.Dataset):
    def __init__(self, paths, side=640):
        self.paths, self.side = paths, side

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = cv2.imread(self.paths[index])
        height, width = image.shape[:2]
        ratio = min(self.side / width, self.side / height)
        new_width, new_height = round(width * ratio), round(height * ratio)
        if (new_width, new_height) != (width, height):
            image = cv2.resize(image, (new_width, new_height), interpolation=cv2.INTER_LINEAR)
        left, top = round((self.side - new_width) / 2 - 0.1), round((self.side - new_height) / 2 - 0.1)
        frame = np.full((self.side, self.side, 3), 114, np.uint8)
        frame[top : top + new_height, left : left + new_width] = image
        gains = np.random.uniform(-1, 1, 3) * (0.015, 0.7, 0.4)
        hue, saturation, value = cv2.split(cv2.cvtColor(frame, cv2.COLOR_BGR2HSV))
        levels = np.arange(256, dtype=gains.dtype)
        tables = (
            ((levels + gains[0] * 180) % 180).astype(np.uint8),
            np.clip(levels * (1 + gains[1]), 0, 255).astype(np.uint8),
            np.clip(levels * (1 + gains[2]), 0, 255).astype(np.uint8),
        )
        jittered = cv2.merge([cv2.LUT(c, t) for c, t in zip((hue, saturation, value), tables)])
        frame = cv2.cvtColor(jittered, cv2.COLOR_HSV2RGB)
        return torch.from_numpy(frame).float() / 255


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=3)
    arguments = parser.parse_args()
    cv2.setNumThreads(0)  # a worker is a process of its own
    with open(arguments.list) as lines:
        paths = [line.strip() for line in lines]
    loader = torch.utils.data.DataLoader(
        Photographs(paths),
        batch_size=arguments.batch,
        shuffle=True,
        num_workers=arguments.workers,
        persistent_workers=arguments.workers > 0,
    )
    rates, waits = [], []
    for epoch in range(arguments.epochs + 1):
        start = time.perf_counter()
        count = 0
        for batch in loader:
            if count == 0:
                waits.append(time.perf_counter() - start)
            count += len(batch)
        rates.append(count / (time.perf_counter() - start))
    print(f"dataloader\t{statistics.median(rates[1:]):.1f}\t{statistics.median(waits[1:]) * 1e3:.1f}")


if __name__ == "__main__":
    main()
