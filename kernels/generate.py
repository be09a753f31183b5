#!/usr/bin/env python3
"""Compiles the CUDA sources beside this file to the PTX under ptx/. Needs no GPU, no driver and no CUDA toolkit.

    pip install nvidia-cuda-nvrtc-cu11==11.8.89     # the compiler, as a shared library
    kernels/generate.py                             # writes ptx/
    kernels/generate.py --check                     # fails when ptx/ is not what the sources give, or not exact

One compiler version, so that anybody gets the same text. It is an old one on purpose: the PTX version that it writes
is read by every driver since 2022 (520.61). The variant `sm52` runs on everything from Maxwell on; `sm80` has the
conversions to half types that came with Ampere. Users need neither this script nor the compiler.

What "exact" means: the arithmetic is defined without contraction of multiplications and additions. Both ways in which
it could happen are looked for in the PTX: a fused instruction that the compiler made (an explicit one carries a name,
see exact.cuh), and one that the driver may make later, from instructions that do not state their rounding. So is every
approximate instruction but the one reciprocal that fast.cuh corrects. To show that the search finds something, --check
also compiles a planted `a * b + c`, and the kernels themselves, with contraction allowed.
"""

import argparse
import ctypes
import difflib
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VARIANTS = {"sm52": "compute_52", "sm80": "compute_80"}
# What comes of each source; without half types there is nothing to gain from the newer one.
MODULES = {"pack_bytes": ("sm52", "sm80"), "pack_floats": ("sm52", "sm80"), "jitter_frames": ("sm52",)}
VERSION = (11, 8)

# The names that exact.cuh gives to its fused multiply-adds.
FUSED = {"restore", "residual", "improve"}
# Correctly rounded by what follows it, and the only approximation.
APPROXIMATE = {"rcp.approx.ftz.f32"}

PLANTED = """
extern "C" __global__ void planted(float *x) {
    *x = x[0] * x[1] + x[2];
}
"""


class Nvrtc:
    """The compiler, through ctypes."""

    def __init__(self):
        self.lib = ctypes.CDLL(self._find())
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        if (major.value, minor.value) != VERSION:
            sys.exit(f"NVRTC {major.value}.{minor.value} found, {VERSION[0]}.{VERSION[1]} needed")

    @staticmethod
    def _find():
        for folder in map(Path, sys.path):
            for path in sorted((folder / "nvidia" / "cuda_nvrtc" / "lib").glob("libnvrtc.so.*")):
                return str(path)
        sys.exit("no NVRTC: pip install nvidia-cuda-nvrtc-cu11==11.8.89")

    def _call(self, name, *arguments):
        if code := getattr(self.lib, name)(*arguments):
            raise RuntimeError(f"{name}: error {code}")

    def _text(self, program, what):
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, text)
        return text.value.decode()

    def compile(self, name, source, architecture, *, contract=False):
        """The PTX of `source`. Headers are handed over as texts, so that no path of this machine gets into it."""
        headers = sorted(HERE.glob("*.cuh"))
        texts = (ctypes.c_char_p * len(headers))(*(header.read_bytes() for header in headers))
        names = (ctypes.c_char_p * len(headers))(*(header.name.encode() for header in headers))
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), len(headers), texts,
                   names)
        options = [f"--gpu-architecture={architecture}", "--std=c++17", f"--fmad={str(contract).lower()}"]
        options = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        failed = self.lib.nvrtcCompileProgram(program, len(options), options)
        log = self._text(program, "ProgramLog").strip()
        if log:
            print(log, file=sys.stderr)
        if failed or log:
            sys.exit(f"{name} does not compile without a word for {architecture}")
        return self._text(program, "PTX")


def inexact(ptx):
    """The lines that are not exact."""
    found = []
    for number, line in enumerate(ptx.splitlines(), 1):
        code, _, comment = line.partition("//")
        for operation in re.findall(r"\b[a-z][a-z0-9]*\.[a-z0-9.]*\bf(?:32|64)\b", code):
            kind = operation.split(".")[0]
            if kind in ("fma", "mad"):
                name = re.match(r"\s*exact:(\w+)", comment)
                bad = not name or name[1] not in FUSED
            elif kind in ("add", "sub", "mul", "div", "rcp", "sqrt"):
                bad = ".rn." not in operation and operation not in APPROXIMATE
            else:
                bad = ".approx" in operation or ".ftz" in operation
            if bad:
                found.append(f"{number}: {line.strip()}")
    return found


def generated(nvrtc, module, architecture):
    ptx = nvrtc.compile(f"{module}.cu", (HERE / f"{module}.cu").read_text(), architecture)
    # Three lines around each line of assembly that say no more than that it was one.
    ptx = re.sub(r"^\t// (?:begin|end) inline asm\n", "", ptx, flags=re.MULTILINE)
    return f"// Generated by kernels/generate.py from kernels/{module}.cu: change that, not this.\n{ptx.strip()}\n"


def check_search(nvrtc):
    """Fails unless `inexact` finds contraction where there is some, and only there."""
    for architecture in VARIANTS.values():
        if not inexact(nvrtc.compile("planted.cu", PLANTED, architecture, contract=True)):
            sys.exit(f"a planted contraction was not found ({architecture})")
        if found := inexact(nvrtc.compile("planted.cu", PLANTED, architecture)):
            sys.exit(f"a contraction was found where none is allowed ({architecture}): {found}")
        for module in MODULES:
            source = (HERE / f"{module}.cu").read_text()
            if not inexact(nvrtc.compile(f"{module}.cu", source, architecture, contract=True)):
                sys.exit(f"{module} compiled with contraction passes as exact ({architecture})")


def main():
    parser = argparse.ArgumentParser(description="Compiles the CUDA sources to PTX.")
    parser.add_argument("--check", action="store_true", help="compare with what is there instead of writing it")
    check = parser.parse_args().check
    nvrtc = Nvrtc()
    failed = False
    for module, variants in MODULES.items():
        for variant in variants:
            path = HERE / "ptx" / f"{module}_{variant}.ptx"
            ptx = generated(nvrtc, module, VARIANTS[variant])
            for line in inexact(ptx):
                failed = True
                print(f"{path.name}: not exact: {line}", file=sys.stderr)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(ptx)
                continue
            there = path.read_text() if path.exists() else ""
            if there != ptx:
                failed = True
                lines = difflib.unified_diff(there.splitlines(), ptx.splitlines(), "committed", "generated", n=1)
                print(f"{path.name} is not what the sources give:", *list(lines)[:20], sep="\n", file=sys.stderr)
    if check:
        check_search(nvrtc)
    if failed:
        sys.exit(1)
    if check:
        print(f"{sum(map(len, MODULES.values()))} PTX files are what the sources give, and exact")


if __name__ == "__main__":
    main()
