#!/usr/bin/env python3
"""Makes golden files of this folder: random weights of small models, an input and their logits, by timm.

    pip install timm torch safetensors
    tests/golden/make_golden.py [FOLDER]

Made with timm 1.0.31 on PyTorch 1.13. NAME.safetensors is what timm's model saves; NAME.io.safetensors holds "images"
[2, 3, 32, 32] and "logits" [2, 10]. eq_vit holds an EQ-ViT as its authors store it; its logits are those of the timm model
that has the same matrices written out.
"""

import sys
from pathlib import Path

import timm
import torch
from safetensors.torch import save_file
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer

MODELS = {
    "vit_token": lambda: VisionTransformer(
        img_size=32, patch_size=8, embed_dim=64, depth=2, num_heads=2, mlp_ratio=2, num_classes=10),
    # Mean over tokens with the norm before it, as gyre does.
    "vit_mean": lambda: VisionTransformer(
        img_size=32, patch_size=8, embed_dim=48, depth=1, num_heads=3, num_classes=10,
        class_token=False, global_pool="avg", fc_norm=False),
    # Windows of 4 on grids of 16 and 8, so that both stages have moved windows.
    "swin": lambda: SwinTransformer(
        img_size=32, patch_size=2, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(2, 4), num_classes=10),
    # The window of the last stage fills its grid of 4 and is not moved.
    "swin_clamped": lambda: SwinTransformer(
        img_size=32, patch_size=4, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(1, 2), num_classes=10),
}


def randomise(tensors):
    """Nothing may stay at a value that hides a wrong name: zeros, ones, or equal rows."""
    with torch.no_grad():
        for tensor in tensors:
            tensor.add_(torch.randn_like(tensor) * (0.3 if tensor.ndim < 2 else tensor[0].numel() ** -0.5))


def store(folder, name, tensors, model):
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        logits = model.eval()(images)
    save_file({k: v.contiguous() for k, v in tensors.items()}, folder / f"{name}.safetensors", metadata={"format": "pt"})
    save_file({"images": images, "logits": logits}, folder / f"{name}.io.safetensors")
    print(name, sum(t.numel() for t in tensors.values()), "values, logits", logits.flatten()[:3].tolist())


def released_eq_vit(width=32, depth=2, patch=8, hidden=64, classes=10):
    """Random tensors as the authors of EQ-ViT store them; `basis` is a buffer that readers leave out."""
    c, h, half = width // 4, hidden // 4, 32 // patch // 2
    shapes = {"cls_token": (1, 1, c), "pos_embed_weights": (1, half, half, c), "cls_pos_embed": (1, 1, c),
              "patch_embed.proj.weight": (c, 3, 1, patch * patch), "patch_embed.proj.bias": (c,),
              "patch_embed.proj.basis": (patch, patch, 4, 1), "norm.weight": (c,), "norm.bias": (c,),
              "head.weight": (classes, c), "head.bias": (classes,)}
    for i in range(depth):
        for norm in ("norm1", "norm2"):
            shapes |= {f"blocks.{i}.{norm}.weight": (c,), f"blocks.{i}.{norm}.bias": (c,)}
        for layer, out, into in (("attn.qkv", 3 * c, c), ("attn.proj", c, c), ("mlp.fc1", h, c), ("mlp.fc2", c, h)):
            shapes |= {f"blocks.{i}.{layer}.weights": (out, 1, into, 4), f"blocks.{i}.{layer}.c": (out, 1)}
    tensors = {name: torch.full(shape, 1.0 if "norm" in name and "weight" in name else 0.0)
               for name, shape in shapes.items()}
    randomise(tensors.values())
    return tensors


def written_out(tensors):
    """The ordinary ViT that computes the same."""
    over_t = lambda v: v.reshape(-1, 1).expand(-1, 4).reshape(-1)
    plain = {}
    for name, value in tensors.items():
        if name.endswith(".weights"):
            out, _, into, _ = value.shape
            dense = torch.empty(out, 4, into, 4)
            for t in range(4):
                for s in range(4):
                    dense[:, t, :, s] = value[:, 0, :, (s - t) % 4]
            plain[name[:-1]] = dense.reshape(4 * out, 4 * into)
        elif name.endswith(".c"):
            plain[name[:-1] + "bias"] = over_t(value)
        elif "norm" in name or name == "patch_embed.proj.bias":
            plain[name] = over_t(value)
    filters = tensors["patch_embed.proj.weight"]
    side = int(filters.shape[-1] ** 0.5)
    base = filters.reshape(filters.shape[0], 3, side, side).transpose(2, 3)  # stored by columns
    turned = torch.stack([torch.rot90(base, t, (2, 3)) for t in range(4)], 1)
    plain["patch_embed.proj.weight"] = turned.reshape(-1, 3, side, side)
    quarter = tensors["pos_embed_weights"][0]
    top = torch.cat([quarter, torch.rot90(quarter, -1, (0, 1))], 1)
    bottom = torch.cat([torch.rot90(quarter, -3, (0, 1)), torch.rot90(quarter, -2, (0, 1))], 1)
    cells = torch.cat([tensors["cls_pos_embed"][0], torch.cat([top, bottom], 0).flatten(0, 1)], 0)
    plain["pos_embed"] = cells.repeat_interleave(4, 1)[None]
    plain["cls_token"] = over_t(tensors["cls_token"])[None, None]
    plain["head.weight"] = tensors["head.weight"].repeat_interleave(4, 1)
    plain["head.bias"] = tensors["head.bias"]
    return plain


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    print(f"timm {timm.__version__}, torch {torch.__version__}")
    for seed, (name, make) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        model = make()
        randomise(model.parameters())
        store(folder, name, model.state_dict(), model)
    torch.manual_seed(len(MODELS))
    tensors = released_eq_vit()
    model = VisionTransformer(
        img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2, num_classes=10)
    model.load_state_dict(written_out(tensors))
    store(folder, "eq_vit", tensors, model)


if __name__ == "__main__":
    main()
