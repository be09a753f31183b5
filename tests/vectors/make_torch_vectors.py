"""Test vectors of the `torch` and `torch-distributed` orders, from PyTorch's own classes.

    python3 -m venv scratch && scratch/bin/pip install torch numpy
    scratch/bin/python tests/vectors/make_torch_vectors.py     # writes torch.tsv and torch_distributed.tsv beside it

Committed with PyTorch 2.15.0+cu132, NumPy 2.4.6, Python 3.11.7. Orders of up to 40 samples are written in
full; of longer ones the first 16, the last 16 and the SHA-256 of the whole list as little-endian 64-bit integers.
"""

import hashlib
import math
from pathlib import Path

import numpy
import torch
from torch.utils.data import DistributedSampler, RandomSampler

SIZES = (1, 2, 7, 1000, 118287)
SEEDS = (0, 7, 1 << 63)


def listing(samples):
    """Columns count, head, tail, sha256 of a list of samples."""
    digest = hashlib.sha256(numpy.asarray(samples, dtype="<u8").tobytes()).hexdigest()
    head, tail = (samples, []) if len(samples) <= 40 else (samples[:16], samples[-16:])
    return [len(samples), ",".join(map(str, head)), ",".join(map(str, tail)), digest]


def write(name, columns, rows):
    lines = ["\t".join(columns + ["count", "head", "tail", "sha256"])]
    lines += ["\t".join(map(str, row)) for row in rows]
    Path(__file__).with_name(name).write_text("\n".join(lines) + "\n")


def random_sampler_run(run, seed, size, taken):
    """Consecutive epochs over one generator; `taken` has None for an exhausted epoch, else how many samples are taken
    before it is broken off."""
    sampler = RandomSampler(range(size), generator=torch.Generator().manual_seed(seed))
    for epoch, count in enumerate(taken):
        epoch_iterator = iter(sampler)
        if count is None:
            samples = list(epoch_iterator)
        else:
            samples = [next(epoch_iterator) for _ in range(count)]
        yield [run, seed, size, epoch, int(count is None), *listing(samples)]


def torch_rows():
    for size in SIZES:
        for seed in SEEDS:
            yield from random_sampler_run("second-broken-off", seed, size, [None, math.ceil(size / 2), None, None])
    # Broken off behind the last sample: all were taken, nobody asked for one more.
    for size in (1, 2, 7, 1000):
        yield from random_sampler_run("broken-off-at-end", 7, size, [size, None, size, None])
    yield from random_sampler_run("whole", 7, 40, [None, None, None])


def distributed_rows():
    def share(seed, size, world_size, rank, drop_last, epochs):
        sampler = DistributedSampler(
            range(size), num_replicas=world_size, rank=rank, shuffle=True, seed=seed, drop_last=drop_last
        )
        for epoch in epochs:
            sampler.set_epoch(epoch)
            yield [seed, size, world_size, rank, int(drop_last), epoch, *listing(list(sampler))]

    for size in SIZES:
        for seed in SEEDS:
            for world_size in (1, 2, 3, 8):
                for drop_last in (False, True):
                    if drop_last and size < world_size:
                        continue  # PyTorch gives every rank an empty epoch, epochfeed refuses
                    for rank in range(world_size):
                        yield from share(seed, size, world_size, rank, drop_last, range(4))
    # The sum of seed and epoch passes the 32 bits that the generator uses.
    yield from share((1 << 32) - 1, 40, 1, 0, False, range(3))


def main():
    write("torch.tsv", ["run", "seed", "size", "epoch", "exhausted"], torch_rows())
    write(
        "torch_distributed.tsv",
        ["seed", "size", "world_size", "rank", "drop_last", "epoch"],
        distributed_rows(),
    )


if __name__ == "__main__":
    main()
