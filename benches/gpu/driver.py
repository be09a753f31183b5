"""Loads the committed PTX through the CUDA driver and launches its functions on PyTorch's stream.

ctypes only, as an embedding program would do it: what runs here is the text under kernels/ptx, compiled by the driver.
"""

import ctypes
from pathlib import Path

import torch

PTX = Path(__file__).resolve().parents[2] / "kernels" / "ptx"
_cuda = ctypes.CDLL("libcuda.so.1")
_TYPES = {"P": ctypes.c_void_p, "q": ctypes.c_longlong, "i": ctypes.c_int, "f": ctypes.c_float}


def _check(code, what):
    if code:
        name = ctypes.c_char_p()
        _cuda.cuGetErrorName(code, ctypes.byref(name))
        raise RuntimeError(f"{what}: {name.value and name.value.decode()}")


class Kernel:
    """A function; `signature` has one letter per parameter: P pointer, q int64, i int32, f float32."""

    def __init__(self, module, name, signature):
        self.function = ctypes.c_void_p()
        _check(_cuda.cuModuleGetFunction(ctypes.byref(self.function), module, name.encode()), name)
        self.name, self.signature = name, [_TYPES[letter] for letter in signature]

    def __call__(self, grid, block, shared, *arguments):
        assert len(arguments) == len(self.signature), self.name
        values = [kind(argument) for kind, argument in zip(self.signature, arguments)]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _check(
            _cuda.cuLaunchKernel(self.function, grid[0], grid[1], 1, block, 1, 1, shared, stream, pointers, None),
            self.name,
        )


class Module:
    """The module `name` in the variant that a host would choose for this device, or a stated one."""

    def __init__(self, name, variant=None, folder=PTX):
        torch.cuda.init()
        torch.empty(1, device="cuda")  # makes the primary context current
        variant = variant or ("sm80" if torch.cuda.get_device_capability() >= (8, 0) else "sm52")
        self.handle = ctypes.c_void_p()
        text = (Path(folder) / f"{name}_{variant}.ptx").read_bytes() + b"\0"
        _check(_cuda.cuModuleLoadData(ctypes.byref(self.handle), text), name)

    def kernel(self, name, signature):
        return Kernel(self.handle, name, signature)
