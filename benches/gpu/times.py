"""Times on a GPU: eager PyTorch, torch.compile, Triton, these kernels, and a copy of as many bytes.

A batch of 64 images of 640 x 640, more than any L2, inputs and outputs rotating; CUDA events around launches that are
all queued before the first one runs; medians. Every path is timed in the same run, in turns.
"""

import argparse
import functools
import itertools
import statistics
from pathlib import Path

import cupy
import torch

import peers
from kernels import DTYPES, Frames, Kernels

BATCH, SIDE, SETS = 64, 640, 3
THREADS = (128, 256, 512, 1024)
_reference = cupy.RawModule(code=(Path(__file__).parent / "reference.cu").read_text(), options=("--fmad=false",))


def once(call, launches):
    """Milliseconds a launch, of `launches` behind each other."""
    # Long enough that the host has queued them all.
    torch.cuda._sleep(4_000_000)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for turn in range(launches):
        call(turn % SETS)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / launches


def median(calls, rounds=9, launches=12):
    """Medians of `calls`, a dictionary, in turns."""
    for call in calls.values():
        for turn in range(SETS):
            call(turn)
    torch.cuda.synchronize()
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(once(call, launches))
    return {name: statistics.median(values) for name, values in times.items()}


def copies(size):
    """Ways to copy `size / 2` bytes: the driver's and a kernel's, by grid."""
    half = size // 2 // 16 * 16
    sets = [(torch.randint(0, 256, (half,), dtype=torch.uint8, device="cuda"),
             torch.empty(half, dtype=torch.uint8, device="cuda")) for _ in range(SETS)]
    kernel = _reference.get_function("copy")
    calls = {"copy: memcpy": lambda turn: sets[turn][1].copy_(sets[turn][0])}

    def by_kernel(threads, per_thread):
        blocks = -(-half // (16 * threads * per_thread))
        count = cupy.int64(half // 16)

        def call(turn):
            kernel((blocks,), (threads,), (sets[turn][0].data_ptr(), sets[turn][1].data_ptr(), count))
        return call

    for threads in (256, 1024):
        for per_thread in (1, 4):
            calls[f"copy: kernel {threads}x{per_thread}"] = by_kernel(threads, per_thread)
    return calls


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--per-thread", type=int, nargs="*", default=[None],
                        help="pixels a thread is launched for, instead of the recommendation")
    parser.add_argument("--only", nargs="*", help="cases such as uint8-bfloat16")
    parser.add_argument("--folder", help="PTX from elsewhere")
    arguments = parser.parse_args()
    kernels = Kernels(folder=arguments.folder)
    generator = torch.Generator(device="cuda").manual_seed(1)
    frames = [torch.randint(0, 256, (BATCH, SIDE, SIDE, 3), dtype=torch.uint8, device="cuda", generator=generator)
              for _ in range(SETS)]
    wrapped = [Frames.of(rgb, "RGB") for rgb in frames]
    images = [torch.rand((BATCH, 3, SIDE, SIDE), device="cuda", generator=generator) for _ in range(SETS)]
    gains = ((torch.rand((BATCH, 3), dtype=torch.float64, device="cuda", generator=generator) * 2 - 1)
             * torch.tensor([0.015, 0.7, 0.4], dtype=torch.float64, device="cuda")).contiguous()
    rows = []
    for source in ("float32", "uint8"):
        for name, dtype in DTYPES.items():
            if arguments.only and f"{source}-{name}" not in arguments.only:
                continue
            sources = images if source == "float32" else frames
            outs = [torch.empty((BATCH, SIDE, SIDE, 3), dtype=dtype, device="cuda") for _ in range(SETS)]
            size = images[0].numel() * ((4 if source == "float32" else 1) + outs[0].element_size())

            def ours(threads, per_thread):
                def call(turn):
                    kernels.threads, kernels.per_thread = threads, per_thread
                    if source == "float32":
                        kernels.pack_floats(images[turn], gains, outs[turn])
                    else:
                        kernels.pack_bytes(wrapped[turn], gains, outs[turn])
                return call

            calls = copies(size)
            for threads in THREADS:
                for per_thread in arguments.per_thread:
                    calls[f"ours: {threads}" + (f"x{per_thread}" if per_thread else "")] = ours(threads, per_thread)
            result = median(calls)
            if not arguments.no_peers:
                result |= peer_times(source, dtype, sources, gains, outs)
            best = {kind: min(((value, key) for key, value in result.items() if key.startswith(kind)), default=None)
                    for kind in ("copy", "ours", "triton", "compile", "eager")}
            rows.append((f"{source} -> {name}", size, best))
            every = ", ".join(f"{key} {value:.4f}" for key, value in result.items())
            print(f"{source} -> {name}: {every}", flush=True)
            del outs, calls
            torch.cuda.empty_cache()
    table(rows)


def peer_times(source, dtype, sources, gains, outs):
    """Each peer in its fastest form that we found; how many bytes differ from eager PyTorch is printed."""
    step = peers.step if source == "float32" else peers.step_bytes
    want = step(sources[0], gains, dtype).view(torch.uint8)
    result = {}
    for select in peers.SELECT:
        # Eager PyTorch takes gigabytes of intermediate results; few launches are enough at its length.
        result |= median({f"eager: {select}": lambda turn: step(sources[turn], gains, dtype, select)}, 3, 3)
        torch._dynamo.reset()
        compiled = torch.compile(step, dynamic=False)
        result |= median({f"compile: {select}": lambda turn: compiled(sources[turn], gains, dtype, select)}, 5)
        differing = int((compiled(sources[0], gains, dtype, select).view(torch.uint8) != want).sum())
        print(f"torch.compile, {select}: {differing} bytes differ from eager PyTorch")
        torch.cuda.empty_cache()
    calls = {}
    for block, warps in itertools.product((128, 256, 512, 1024, 2048), (1, 2, 4, 8)):
        if 2 <= block // (32 * warps) <= 16:
            calls[f"triton: {block}/{warps}"] = functools.partial(
                lambda turn, block, warps: peers.triton_step(sources[turn], gains, outs[turn], block, warps),
                block=block, warps=warps)
    result |= median(calls, rounds=5)
    outs[0].view(torch.uint8).fill_(0xA5)
    peers.triton_step(sources[0], gains, outs[0], 256, 4)
    print(f"Triton: {int((outs[0].view(torch.uint8) != want).sum())} bytes differ from eager PyTorch")
    return result


def table(rows):
    print(f"\nmilliseconds, batch {BATCH} of {SIDE} x {SIDE}, {torch.cuda.get_device_name()}")
    print(f"{'':22} {'MB':>5} {'copy':>7} {'ours':>7} {'of copy':>8} {'triton':>7} {'compile':>8} {'eager':>7}   "
          "ours is faster than triton, compile, eager by")
    for name, size, best in rows:
        value = {kind: entry[0] if entry else float("nan") for kind, entry in best.items()}
        ratio = [f"{value[kind] / value['ours']:.2f}" for kind in ("triton", "compile", "eager")]
        print(f"{name:22} {size / 1e6:5.0f} {value['copy']:7.4f} {value['ours']:7.4f} "
              f"{value['copy'] / value['ours']:8.1%} {value['triton']:7.4f} {value['compile']:8.4f} "
              f"{value['eager']:7.3f}   {', '.join(ratio)}   ({best['ours'][1]}; {best['copy'][1]}; {best['triton'] and best['triton'][1]})")


if __name__ == "__main__":
    main()
