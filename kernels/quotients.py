#!/usr/bin/env python3
"""Shows that the short divisions of fast.cuh are exact for uint8 pixels, on any GPU that keeps its documentation.

The divisions start from the hardware's reciprocal y, of which is documented that |y * d - 1| <= 2^-23. An improved
quotient differs from a/d by less than 1.6 * 2^-46, relatively, before its one rounding (fast.cuh), which can only matter
where a/d is as near to the middle between two float32 numbers. All quotients of restored levels are looked at: those of
the saturation, (max - min) / max, and those of the hue, (max - middle) / (max - min). For the few near a middle the
operations are carried out in exact arithmetic for every y within the documentation, and the result must be the
correctly rounded quotient.

It also shows that the hue does need its Newton step: without it, some y would give a wrong result. Needs NumPy and a
second.
"""

from fractions import Fraction

import numpy as np

LEVELS = np.arange(256, dtype=np.float32) * np.float32(1 / 255)
NEAR = 1.6 * 2.0**-46
RECIPROCAL = Fraction(1, 2**23)


def near_a_middle(a, d):
    """Of arrays of float32 numbers, where a/d is within NEAR of the middle of two float32 numbers."""
    # Both as integers of 24 bits: scaling by powers of two changes neither quotient nor distance.
    a, d = ((np.frexp(x.astype(np.float64))[0] * 2**24).astype(np.int64) for x in (a, d))
    scaled = a << np.where(a >= d, 24, 25)
    # 25 bits of quotient: its odd numbers are the middles.
    quotient, rest = scaled // d, scaled % d
    odd = quotient & 1 == 1
    distance = np.minimum(np.where(odd, rest, d - rest), np.where(odd, 2 * d - rest, d + rest))
    return distance / d / quotient < NEAR


def rounded(x):
    """A Fraction, rounded to float32 (of unlimited range), ties to even."""
    if x == 0:
        return x
    exponent = abs(x.numerator).bit_length() - x.denominator.bit_length()
    if abs(x) < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - 23)
    return round(x / unit) * unit  # Python rounds a Fraction to the nearest even integer


def reciprocals(d):
    """Every float32 number that the hardware may give for 1 / d."""
    bits = int((np.float32(1) / d).view(np.uint32))
    found = [Fraction(float(np.uint32(bits + step).view(np.float32))) for step in range(-4, 5)]
    found = [y for y in found if abs(y * Fraction(float(d)) - 1) <= RECIPROCAL]
    assert 2 <= len(found) <= 5
    return found


def failures(pairs, newton):
    """How many of the pairs some reciprocal would give a wrong quotient for."""
    count = 0
    for a, d in pairs:
        wrong = False
        exact_a, exact_d = Fraction(float(a)), Fraction(float(d))
        for y in reciprocals(d):
            if newton:
                y = rounded(y + y * rounded(1 - exact_d * y))
            q = rounded(exact_a * y)
            q = rounded(q + y * rounded(exact_a - q * exact_d))
            wrong |= q != rounded(exact_a / exact_d)
        count += wrong
    return count


def saturations():
    high, low = np.meshgrid(LEVELS, LEVELS, indexing="ij")
    take = high > low
    return (high - low)[take], high[take]


def hues():
    for high in LEVELS[1:]:
        below = LEVELS[LEVELS < high]
        middle, low = np.meshgrid(below, below, indexing="ij")
        take = middle >= low
        yield (high - middle)[take], (high - low)[take]


def near(quotients):
    count, pairs = 0, set()
    for a, d in quotients:
        take = near_a_middle(a, d)
        count += len(a)
        pairs |= set(zip(a[take], d[take]))
    return count, pairs


def main():
    count, pairs = near([saturations()])
    print(f"saturation: {count} quotients, {len(pairs)} near a middle, {failures(pairs, False)} of them can be wrong")
    assert not failures(pairs, False)
    count, pairs = near(hues())
    plain, improved = failures(pairs, False), failures(pairs, True)
    print(f"hue: {count} quotients, {len(pairs)} different ones near a middle, {improved} of them can be wrong "
          f"({plain} without the Newton step)")
    assert not improved and plain


if __name__ == "__main__":
    main()
