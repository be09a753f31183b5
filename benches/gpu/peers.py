"""The same step elsewhere: eager PyTorch, torch.compile of it, and a Triton kernel."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


def jitter(img, gains, select):
    """torchvision's (v1) HSV jitter of float32 [B, 3, H, W] with float64 gains [B, 3]."""
    dh = gains[:, 0].float()[:, None, None]
    ks = (1.0 + gains[:, 1]).float()[:, None, None]
    kv = (1.0 + gains[:, 2]).float()[:, None, None]
    r, g, b = img.unbind(1)
    maxc, minc = torch.max(img, 1).values, torch.min(img, 1).values
    eqc = maxc == minc
    cr = maxc - minc
    ones = torch.ones_like(maxc)
    s = cr / torch.where(eqc, ones, maxc)
    divisor = torch.where(eqc, ones, cr)
    rc, gc, bc = (maxc - r) / divisor, (maxc - g) / divisor, (maxc - b) / divisor
    hr = (maxc == r) * (bc - gc)
    hg = ((maxc == g) & (maxc != r)) * (2.0 + rc - bc)
    hb = ((maxc != g) & (maxc != r)) * (4.0 + gc - rc)
    h = torch.fmod((hr + hg + hb) / 6.0 + 1.0, 1.0)
    h = (h + dh) % 1.0
    s = (s * ks).clamp(0, 1)
    v = (maxc * kv).clamp(0, 1)
    i = torch.floor(h * 6.0)
    f = h * 6.0 - i
    i = i.to(torch.int32) % 6
    p = torch.clamp(v * (1.0 - s), 0.0, 1.0)
    q = torch.clamp(v * (1.0 - s * f), 0.0, 1.0)
    t = torch.clamp(v * (1.0 - s * (1.0 - f)), 0.0, 1.0)
    return SELECT[select](i, v, p, q, t)


def _einsum(i, v, p, q, t):
    """torchvision's own way: a mask of the six sectors times the six candidates, summed."""
    mask = i.unsqueeze(1) == torch.arange(6, device=i.device).view(1, -1, 1, 1)
    a4 = torch.stack((
        torch.stack((v, q, p, p, t, v), 1),
        torch.stack((t, v, v, q, p, p), 1),
        torch.stack((p, p, t, v, v, q), 1),
    ), 1)
    return torch.einsum("nijk,nxijk->nxjk", mask.to(v.dtype), a4)


def _where(i, v, p, q, t):
    """The same as selections, which is faster, and exact for what is not finite."""
    x = torch.where(i == 1, q, torch.where((i == 2) | (i == 3), p, torch.where(i == 4, t, v)))
    y = torch.where((i == 1) | (i == 2), v, torch.where(i == 3, q, torch.where((i == 4) | (i == 5), p, t)))
    z = torch.where(i == 2, t, torch.where((i == 3) | (i == 4), v, torch.where(i == 5, q, p)))
    return torch.stack((x, y, z), 1)


SELECT = {"einsum": _einsum, "where": _where}


def step(img, gains, dtype, select="where"):
    """Jitter, quantize, restore, cast, channels last."""
    levels = (jitter(img, gains, select) * 255).round().clamp(0, 255).to(torch.uint8)
    out = levels if dtype == torch.uint8 else (levels.to(torch.float32) / 255).to(dtype)
    return out.permute(0, 2, 3, 1).contiguous()


def step_bytes(frames, gains, dtype, select="where"):
    """The same from uint8 [B, H, W, 3]."""
    return step(frames.permute(0, 3, 1, 2).to(torch.float32) / 255, gains, dtype, select)


@triton.jit
def _unit(x):
    return tl.where(x < 0.0, 0.0, tl.where(x > 1.0, 1.0, x))


@triton.jit
def _channel(x, OUT: tl.constexpr):
    # Ties to even: the inputs are in [0, 1] here (or NaN, which becomes 0).
    level = (tl.where(x != x, 0.0, x) * 255.0 + 8388608.0) - 8388608.0
    if OUT == tl.uint8:
        return level.to(tl.uint8)
    else:
        return (level * 0.003921568859368563).to(OUT)


@triton.jit
def _kernel(src, gains, out, pixels, BYTES: tl.constexpr, OUT: tl.constexpr, BLOCK: tl.constexpr):
    sample = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < pixels
    if BYTES:
        base = src + sample * pixels * 3 + at * 3
        r = tl.load(base, mask, 0).to(tl.float32) * 0.003921568859368563
        g = tl.load(base + 1, mask, 0).to(tl.float32) * 0.003921568859368563
        b = tl.load(base + 2, mask, 0).to(tl.float32) * 0.003921568859368563
    else:
        base = src + sample * pixels * 3 + at
        r = tl.load(base, mask, 0.0)
        g = tl.load(base + pixels, mask, 0.0)
        b = tl.load(base + 2 * pixels, mask, 0.0)
    dh = tl.load(gains + sample * 3).to(tl.float32)
    ks = (1.0 + tl.load(gains + sample * 3 + 1)).to(tl.float32)
    kv = (1.0 + tl.load(gains + sample * 3 + 2)).to(tl.float32)
    ALL: tl.constexpr = tl.PropagateNan.ALL
    maxc = tl.maximum(tl.maximum(r, g, propagate_nan=ALL), b, propagate_nan=ALL)
    minc = tl.minimum(tl.minimum(r, g, propagate_nan=ALL), b, propagate_nan=ALL)
    cr = maxc - minc
    eqc = maxc == minc
    s = tl.div_rn(cr, tl.where(eqc, 1.0, maxc))
    d = tl.where(eqc, 1.0, cr)
    rc = tl.div_rn(maxc - r, d)
    gc = tl.div_rn(maxc - g, d)
    bc = tl.div_rn(maxc - b, d)
    hr = (maxc == r).to(tl.float32) * (bc - gc)
    hg = ((maxc == g) & (maxc != r)).to(tl.float32) * (2.0 + rc - bc)
    hb = ((maxc != g) & (maxc != r)).to(tl.float32) * (4.0 + gc - rc)
    h = (hr + hg + hb) * 0.1666666716337204 + 1.0
    h = h - libdevice.trunc(h) + dh
    h = h - libdevice.trunc(h)
    h = tl.where(h < 0.0, h + 1.0, h)
    s = _unit(s * ks)
    v = _unit(maxc * kv)
    h6 = h * 6.0
    i = tl.floor(h6)
    f = h6 - i
    p = _unit(v * (1.0 - s))
    q = _unit(v * (1.0 - s * f))
    t = _unit(v * (1.0 - s * (1.0 - f)))
    # 6 and NaN are sector 0, the last alternative of each.
    x = tl.where(i == 1.0, q, tl.where((i == 2.0) | (i == 3.0), p, tl.where(i == 4.0, t, v)))
    y = tl.where((i == 1.0) | (i == 2.0), v, tl.where(i == 3.0, q, tl.where((i == 4.0) | (i == 5.0), p, t)))
    z = tl.where(i == 2.0, t, tl.where((i == 3.0) | (i == 4.0), v, tl.where(i == 5.0, q, p)))
    to = out + sample * pixels * 3 + at * 3
    tl.store(to, _channel(x, OUT), mask)
    tl.store(to + 1, _channel(y, OUT), mask)
    tl.store(to + 2, _channel(z, OUT), mask)


_OUT = {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.uint8: tl.uint8}


def triton_step(src, gains, out, block, warps):
    """`src`: float32 [B, 3, H, W] or uint8 [B, H, W, 3]; `out`: [B, H, W, 3]."""
    batch, height, width, _ = out.shape
    pixels = height * width
    _kernel[(triton.cdiv(pixels, block), batch)](
        src, gains, out, pixels, src.dtype == torch.uint8, _OUT[out.dtype], block, num_warps=warps,
        enable_fp_fusion=False)
