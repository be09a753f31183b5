"""Test vectors of the `keyed` order, from an independent reading of its description in src/sampler/keyed.rs.

    python3 tests/vectors/make_keyed_vectors.py            # writes keyed.tsv beside this file
    python3 tests/vectors/make_keyed_vectors.py --check    # compares instead, exit code 1 if they differ

Plain Python 3.8 or later, no packages. `keyed(seed, epoch, size, position)` is all that a reader of epochfeed's
orders needs. Columns: seed, epoch, size, position, sample.
"""

import functools
import struct
import sys
from pathlib import Path

MASK = (1 << 64) - 1


def chacha8_block(key, counter, stream):
    """One 64-byte block of ChaCha with 8 rounds, 64-bit counter and 64-bit stream number."""
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574]
    start += struct.unpack("<8I", key) + struct.unpack("<4I", struct.pack("<QQ", counter, stream))
    x = list(start)

    def quarter(a, b, c, d):
        for i, j, k, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[i] = (x[i] + x[j]) & 0xFFFFFFFF
            x[k] ^= x[i]
            x[k] = (x[k] << turn | x[k] >> (32 - turn)) & 0xFFFFFFFF

    for _ in range(4):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for column in range(4):
            quarter(column, (column + 1) % 4 + 4, (column + 2) % 4 + 8, (column + 3) % 4 + 12)
    return struct.pack("<16I", *((a + b) & 0xFFFFFFFF for a, b in zip(x, start)))


@functools.lru_cache
def keys(seed, epoch):
    key = struct.pack("<Q", seed) + b"epochfeed keyed order v1"
    stream = b"".join(chacha8_block(key, counter, epoch) for counter in range(3))
    return struct.unpack("<17Q", stream[: 17 * 8])


def splitmix64(state, index):
    z = (state + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def keyed(seed, epoch, size, position):
    """The sample at `position` of the epoch's order."""
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    *rounds, last = keys(seed, epoch)
    number = position
    while True:
        if number < 2:
            number ^= last & 1
        left, right = number >> half, number & (1 << half) - 1
        for key in rounds:
            left, right = right, left ^ splitmix64(key, right) >> 64 - half
        number = left << half | right
        if number < size:
            return number


def rows():
    runs = [(0, 0), (0, 1), (1, 0), (7, 3), (1 << 63, 0), (MASK, (1 << 32) + 5)]
    for seed, epoch in runs:
        for size in (1, 2, 3, 4, 5, 10, 16, 17, 40):
            order = [keyed(seed, epoch, size, position) for position in range(size)]
            assert sorted(order) == list(range(size))
            for position, sample in enumerate(order):
                yield seed, epoch, size, position, sample
        for size in (1000, 65536, 65537, 118287, 10**10, (1 << 62) + 1, 1 << 63):
            for position in (0, 1, 2, size // 3, size // 2, size - 2, size - 1):
                yield seed, epoch, size, position, keyed(seed, epoch, size, position)


def main():
    # RFC 8439 has no eight-round vector; this one is ChaCha8 with a zero key from draft-strombergson-chacha-test-vectors.
    assert chacha8_block(bytes(32), 0, 0).hex().startswith("3e00ef2f895f40d67f5bb8e81f09a5a1")
    text = "seed\tepoch\tsize\tposition\tsample\n" + "".join("%d\t%d\t%d\t%d\t%d\n" % row for row in rows())
    path = Path(__file__).with_name("keyed.tsv")
    if "--check" in sys.argv[1:]:
        sys.exit(0 if path.read_text() == text else f"{path} differs from what this script computes")
    path.write_text(text)


if __name__ == "__main__":
    main()
