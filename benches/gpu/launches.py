"""One launch of each kernel at full size, for profilers."""

import torch

from kernels import DTYPES, Frames, Kernels

kernels = Kernels()
frames = torch.randint(0, 256, (64, 640, 640, 3), dtype=torch.uint8, device="cuda")
images = torch.rand((64, 3, 640, 640), device="cuda")
gains = (torch.rand((64, 3), dtype=torch.float64, device="cuda") * 2 - 1) * 0.4
for dtype in DTYPES.values():
    out = torch.empty((64, 640, 640, 3), dtype=dtype, device="cuda")
    for force_any in (False, True):
        kernels.pack_floats(images, gains, out, force_any=force_any)
        kernels.pack_bytes(Frames.of(frames, "RGB"), gains, out, force_any=force_any)
for format in ("RGB", "RGBx"):
    wrapped = Frames.of(frames, format)
    kernels.jitter_frames(wrapped, gains, wrapped)
torch.cuda.synchronize()
