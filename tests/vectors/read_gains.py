"""Recompute every line of gains.tsv independently and compare, bit for bit.

Run:      python3 tests/vectors/read_gains.py
Needs:    Python 3.9 or later, standard library only (checked with 3.11).
Written:  gains.tsv by `EPOCHFEED_BLESS=1 cargo test --release --test color_gains` (rand_chacha 0.10.0).

The draw, for users of other languages: ChaCha with 8 rounds, D. J. Bernstein's layout (64-bit block counter, 64-bit
stream). Key = seed as 8 little-endian bytes, then 24 zero bytes; stream = epoch; block counter = dataset index. The
first six 32-bit words of that block are three little-endian 64-bit numbers u; x = (u >> 11) * 2**-53;
gain = (2 * x - 1) * range, in float64, in the order hue, saturation, value.
"""

import pathlib
import struct
import sys

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def quarter_round(s, a, b, c, d):
    for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        s[x] = (s[x] + s[y]) & M32
        s[z] ^= s[x]
        s[z] = (s[z] << turn | s[z] >> (32 - turn)) & M32


def chacha8_block(seed, stream, counter):
    key = struct.unpack("<8I", struct.pack("<Q", seed) + bytes(24))
    start = list(struct.unpack("<4I", b"expand 32-byte k")) + list(key)
    start += [counter & M32, counter >> 32, stream & M32, stream >> 32]
    s = list(start)
    for _ in range(4):  # a double round each
        for i in range(4):
            quarter_round(s, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter_round(s, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return [(a + b) & M32 for a, b in zip(s, start)]


def draw_gains(seed, epoch, index, ranges=(0.015, 0.7, 0.4)):
    words = chacha8_block(seed, epoch, index)
    draws = [words[2 * i] | words[2 * i + 1] << 32 for i in range(3)]
    return tuple((2.0 * ((u >> 11) * 2.0**-53) - 1.0) * r for u, r in zip(draws, ranges))


def main():
    path = pathlib.Path(__file__).with_name("gains.tsv")
    lines = path.read_text().splitlines()[1:]
    wrong = 0
    for line in lines:
        fields = line.split("\t")
        seed, epoch, index = map(int, fields[:3])
        ranges = tuple(map(float, fields[3:6]))
        stated = tuple(map(float, fields[6:9]))
        ours = draw_gains(seed, epoch, index, ranges)
        if struct.pack("<3d", *ours) != struct.pack("<3d", *stated):
            wrong += 1
            print(f"seed {seed} epoch {epoch} index {index}: {path.name} has {stated}, recomputed {ours}")
    print(f"{len(lines) - wrong} of {len(lines)} gain triples are equal, bit for bit")
    return 1 if wrong or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
