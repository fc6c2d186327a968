#!/usr/bin/env python3
"""Turns the tensors of a PyTorch checkpoint into a safetensors file for `gyre import`.

Needs torch and safetensors. Loads with weights_only, so that a file can hold data but run nothing.
"""

import argparse
import sys


def tensors_of(torch, loaded, key):
    """The dictionary of tensors, which programs put under different keys."""
    keys = [key] if key else ["state_dict", "model", "module", "ema", "state_dict_ema", "model_ema"]
    for name in keys:
        inner = loaded.get(name) if isinstance(loaded, dict) else None
        if isinstance(inner, dict):
            loaded = inner
            break
    else:
        if key:
            raise SystemExit(f"pth_to_safetensors.py: no dictionary {key!r}; found {', '.join(map(str, loaded))}")
    tensors = {name: value for name, value in loaded.items() if torch.is_tensor(value)}
    if not tensors:
        raise SystemExit(f"pth_to_safetensors.py: no tensors; found {', '.join(map(str, loaded))} (try --key)")
    for prefix in ("module.", "_orig_mod."):  # of data-parallel and compiled models
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name[len(prefix):]: value for name, value in tensors.items()}
    return tensors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help=".pth, .pt or .bin file")
    parser.add_argument("target", help="safetensors file to write")
    parser.add_argument("--key", help="dictionary inside the file, such as state_dict (default: looked for)")
    options = parser.parse_args()

    import torch
    from safetensors.torch import save_file

    loaded = torch.load(options.source, map_location="cpu", weights_only=True)
    tensors = tensors_of(torch, loaded, options.key)
    # Copies, because safetensors refuses tensors that share memory.
    save_file({name: value.detach().clone().contiguous() for name, value in tensors.items()}, options.target,
              metadata={"format": "pt"})
    print(f"{len(tensors)} tensors in {options.target}", file=sys.stderr)


if __name__ == "__main__":
    main()
