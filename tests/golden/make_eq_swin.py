#!/usr/bin/env python3
"""Makes eq_swin*.safetensors of this folder: a small EQ-Swin as its authors store it, and its logits.

    pip install numpy safetensors
    tests/golden/make_eq_swin.py [FOLDER]

The logits follow docs/math.md in f64, by sums over the group and turned filters, without orbits or gathers. eq_swin holds the
plain weights and norms that are tied over the group; eq_swin_planes holds the frequency planes of the same weights, computed
with as they are, and untied norms, whose averages are those of eq_swin. eq_swin.io holds "images" [2, 3, 32, 32] and the
"logits" [2, 10] of both.
"""

import math
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

T, SIDE, PATCH, WINDOW, WIDTH, MLP, CLASSES = 4, 32, 2, 4, 16, 2, 10
DEPTHS, HEADS = (2, 2), (2, 4)  # grids of 16 and 8: both stages have moved windows


def shapes():
    """Names and shapes of the released layout; norms have a value per channel and orientation, `basis` is not read."""
    c = WIDTH // T
    table = {"patch_embed.proj.weight": (c, 3, 1, PATCH * PATCH), "patch_embed.proj.bias": (c,),
             "patch_embed.proj.basis": (PATCH, PATCH, T, PATCH * PATCH)}
    norms = {"patch_embed.norm": c}
    for s, depth in enumerate(DEPTHS):
        for b in range(depth):
            block = f"layers.{s}.blocks.{b}"
            norms |= {f"{block}.norm1": c, f"{block}.norm2": c}
            table[f"{block}.attn.relative_position_bias_table"] = ((2 * WINDOW - 1) ** 2, HEADS[s])
            layers = ("attn.qkv", 3 * c, c), ("attn.proj", c, c), ("mlp.fc1", MLP * c, c), ("mlp.fc2", c, MLP * c)
            for layer, out, into in layers:
                table |= {f"{block}.{layer}.weights": (out, 1, into, T), f"{block}.{layer}.c": (out, 1)}
        if s + 1 < len(DEPTHS):
            merging = f"layers.{s}.downsample"
            table |= {f"{merging}.reduction.weight": (2 * c, c, T, 4), f"{merging}.reduction.bias": (2 * c,),
                      f"{merging}.reduction.basis": (2, 2, T, 4)}
            c *= 2
            norms[f"{merging}.norm"] = c
    norms["norm"] = c
    table |= {"head.weights": (CLASSES, c), "head.bias": (CLASSES,)}
    for norm, channels in norms.items():
        table |= {f"{norm}.weight": (channels * T,), f"{norm}.bias": (channels * T,)}
    return table


def is_norm(name):
    return "norm" in name


def random_tensors(rng):
    """Nothing may stay at a value that hides a wrong name: zeros, ones, or equal rows."""
    def draw(name, shape):
        scale = 0.3 if len(shape) < 2 else math.prod(shape[1:]) ** -0.5
        return (rng.standard_normal(shape) * scale + (is_norm(name) and name.endswith("weight"))).astype(np.float32)
    return {name: draw(name, shape) for name, shape in shapes().items()}


def tied(tensors):
    """The averages of norms over the group, repeated."""
    def average(v):
        return np.repeat(v.reshape(-1, T).astype(np.float64).mean(1), T).astype(np.float32)
    return {name: average(v) if is_norm(name) else v for name, v in tensors.items()}


def with_planes(tensors):
    """Weights [D, 1, C, T] as the planes [D, C, T] of their index-reversed form."""
    def planes(v):
        w0, w1, w2, w3 = np.moveaxis(v[:, 0].astype(np.float64), -1, 0)
        return np.stack([w0 + w1 + w2 + w3, w0 - w2, w0 - w1 + w2 - w3, w1 - w3], -1).astype(np.float32)
    return {name: planes(v) if name.endswith(".weights") and v.ndim == 4 else v for name, v in tensors.items()}


def turned(w, t):
    """t quarter turns of the last two axes: rot90(w)[i][j] = w[j][n-1-i]."""
    for _ in range(t):
        n = w.shape[-1]
        old, w = w, np.empty_like(w)
        for i in range(n):
            for j in range(n):
                w[..., i, j] = old[..., j, n - 1 - i]
    return w


class EqSwin:
    """Features are [row, column, C, T]."""

    def __init__(self, tensors):
        self.tensors = {name: v.astype(np.float64) for name, v in tensors.items()}

    def eq_linear(self, name, x):
        w, bias = self.tensors[f"{name}.weights"], self.tensors[f"{name}.c"]
        y = np.zeros((*x.shape[:-2], w.shape[0], T))
        if w.ndim == 4:
            for t in range(T):
                for s in range(T):
                    y[..., t] += x[..., s] @ w[:, 0, :, (s - t) % T].T
        else:
            x0, x1, x2, x3 = np.moveaxis(x, -1, 0)
            w0, w1, w2, w3 = np.moveaxis(w, -1, 0)
            f0, f1, f2, f3 = x0 + x1 + x2 + x3, x0 - x2, x0 - x1 + x2 - x3, x3 - x1
            a0, a2 = f0 @ w0.T / 4, f2 @ w2.T / 4
            a1, a3 = (f1 @ w1.T - f3 @ w3.T) / 2, (f1 @ w3.T + f3 @ w1.T) / 2
            y = np.stack([a0 + a1 + a2, a0 - a2 - a3, a0 - a1 + a2, a0 - a2 + a3], -1)
        return y + bias

    def norm(self, name, x):
        shape = (x.shape[-2], T)
        mean, variance = x.mean((-2, -1), keepdims=True), x.var((-2, -1), keepdims=True)
        y = (x - mean) / np.sqrt(variance + 1e-5)
        return y * self.tensors[f"{name}.weight"].reshape(shape) + self.tensors[f"{name}.bias"].reshape(shape)

    def patch_embed(self, image):
        v, bias = self.tensors["patch_embed.proj.weight"], self.tensors["patch_embed.proj.bias"]
        base = np.empty((*v.shape[:2], PATCH, PATCH))
        for i in range(PATCH):
            for j in range(PATCH):
                base[:, :, i, j] = v[:, :, 0, j * PATCH + i]
        grid = SIDE // PATCH
        y = np.empty((grid, grid, v.shape[0], T))
        for t in range(T):
            filters = turned(base, t)
            for row in range(grid):
                for col in range(grid):
                    patch = image[:, row * PATCH:(row + 1) * PATCH, col * PATCH:(col + 1) * PATCH]
                    y[row, col, :, t] = (filters * patch).sum((1, 2, 3)) + bias
        return self.norm("patch_embed.norm", y)

    def merge(self, name, x):
        """Convolution with kernel and stride 2: output t takes input a through the filter of a - t, turned t times."""
        v, bias = self.tensors[f"{name}.reduction.weight"], self.tensors[f"{name}.reduction.bias"]
        grid = x.shape[0] // 2
        y = np.zeros((grid, grid, v.shape[0], T)) + bias[:, None]
        for t in range(T):
            for a in range(T):
                stored = v[:, :, (a - t) % T]
                w = turned(np.stack([stored[..., [0, 2]], stored[..., [1, 3]]], -2), t)
                for row in range(grid):
                    for col in range(grid):
                        for i in range(2):
                            for j in range(2):
                                y[row, col, :, t] += w[:, :, i, j] @ x[2 * row + i, 2 * col + j, :, a]
        return self.norm(f"{name}.norm", y)

    def bias(self, name, offset):
        """The average of the table [(2w-1)², heads] over the four turns of an offset, query minus key."""
        table, n = self.tensors[f"{name}.relative_position_bias_table"], 2 * WINDOW - 1
        total = 0
        for _ in range(T):
            total = total + table[(offset[0] + WINDOW - 1) * n + offset[1] + WINDOW - 1]
            offset = (-offset[1], offset[0])
        return total / T

    def attention(self, name, x, heads, shift):
        grid, channels = x.shape[0], x.shape[2]
        size = channels * T // heads
        qkv = self.eq_linear(f"{name}.qkv", x).reshape(grid, grid, 3, heads, size)
        out = np.zeros((grid, grid, heads, size))
        bias = {(a, b): self.bias(name, (a, b)) for a in range(1 - WINDOW, WINDOW) for b in range(1 - WINDOW, WINDOW)}
        for top in range(shift, grid + shift, WINDOW):
            for left in range(shift, grid + shift, WINDOW):
                places = [(top + i, left + j) for i in range(WINDOW) for j in range(WINDOW)]
                for q in places:
                    # Seen are the tokens on the same side of the edges.
                    seen = [k for k in places if (k[0] < grid) == (q[0] < grid) and (k[1] < grid) == (q[1] < grid)]
                    query, *_ = qkv[q[0] % grid, q[1] % grid]
                    scores = np.array([(query * qkv[k[0] % grid, k[1] % grid, 1]).sum(-1) * size ** -0.5
                                       + bias[q[0] - k[0], q[1] - k[1]] for k in seen])
                    weights = np.exp(scores - scores.max(0))
                    weights /= weights.sum(0)
                    for weight, k in zip(weights, seen):
                        out[q[0] % grid, q[1] % grid] += weight[:, None] * qkv[k[0] % grid, k[1] % grid, 2]
        return self.eq_linear(f"{name}.proj", out.reshape(grid, grid, channels, T))

    def mlp(self, name, x):
        hidden = self.eq_linear(f"{name}.fc1", x)
        gelu = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
        return self.eq_linear(f"{name}.fc2", gelu)

    def logits(self, image):
        x = self.patch_embed(image.astype(np.float64))
        for s, depth in enumerate(DEPTHS):
            if s > 0:
                x = self.merge(f"layers.{s - 1}.downsample", x)
            for b in range(depth):
                block = f"layers.{s}.blocks.{b}"
                x = x + self.attention(f"{block}.attn", self.norm(f"{block}.norm1", x), HEADS[s], b % 2 * WINDOW // 2)
                x = x + self.mlp(f"{block}.mlp", self.norm(f"{block}.norm2", x))
        pooled = self.norm("norm", x).mean((0, 1)).sum(-1)
        return self.tensors["head.weights"] @ pooled + self.tensors["head.bias"]


def largest(a, b):
    return np.abs(np.array(a) - np.array(b)).max()


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    rng = np.random.default_rng(5)
    untied = random_tensors(rng)
    plain = tied(untied)
    images = rng.standard_normal((2, 3, SIDE, SIDE)).astype(np.float32)
    model = EqSwin(plain)
    logits = [model.logits(image) for image in images]
    print("logits", logits[0][:3], "turned by", largest(model.logits(turned(images[0], 1)), logits[0]))
    print("by planes", largest(EqSwin(with_planes(plain)).logits(images[0]), logits[0]))
    print("with untied norms", largest(EqSwin(untied).logits(images[0]), logits[0]))
    names = [name for name in plain if is_norm(name)]
    before, after = (np.concatenate([v[name] for name in names]).astype(np.float64) for v in (untied, plain))
    lost = np.linalg.norm(before - after) / np.linalg.norm(before)
    print(f"{len(names)} tensors of norms lose {lost:.2e} of their norm, {largest(before, after):.2e} in one value")

    for name, tensors in (("eq_swin", plain), ("eq_swin_planes", with_planes(untied))):
        save_file(tensors, folder / f"{name}.safetensors", metadata={"format": "pt"})
    save_file({"images": images, "logits": np.array(logits, np.float32)}, folder / "eq_swin.io.safetensors")


if __name__ == "__main__":
    main()
