#!/usr/bin/env python3
"""Measures the tables of docs/performance.md on this machine and prints them as Markdown."""

import argparse
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def bench(options, *arguments, simd=None):
    environment = {**os.environ, **({"GYRE_SIMD": simd} if simd else {})}
    command = [options.gyre, "bench", *arguments, "--runs", str(options.runs), "--rounds", str(options.rounds),
               "--json"] + (["--threads", str(options.threads)] if options.threads else [])
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"tables.py: {result.stderr.strip()}")
    return json.loads(result.stdout)


def table(header, rows):
    print("| " + " | ".join(map(str, header)) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def machine_line(machine):
    pinned = "pinned" if machine["pinned"] else "free"
    print(f"{machine['cpu']}, {machine['threads']} {pinned} threads, {machine['simd']}, "
          f"{machine['peak_gflops']:.0f} GFLOP/s of multiply-adds, {machine['bandwidth_gbs']:.0f} GB/s; "
          f"{machine['dense_library']}, Highway {machine['highway']}, {machine['compiler']}\n")


def both(row, runs, other="standard"):
    """The median of all rounds, and in brackets the best run's."""
    plain = row[f"ratio_to_{other}"]
    if plain is None:
        return "-"
    return f"{plain:.2f} ({row[f'best_ratio_to_{other}']:.2f})" if runs > 1 else f"{plain:.2f}"


def layer(options, simd=None, group="c4", impls="naive,flash", channels=None):
    channels = channels or options.channels
    answer = bench(options, "op", "--group", group, "--impl", impls, "--channels", channels, "--seconds", "0.05",
                   simd=simd)
    machine_line(answer["machine"])
    widths = channels.split(",")
    found = {(r["direction"], r["impl"], str(r["channels_in"])): r for r in answer["results"]}
    rows = []
    for direction in ("forward", "backward"):
        for impl in impls.split(","):
            rows.append([f"{direction}, {impl}"] + [both(found[direction, impl, c], options.runs) for c in widths])
    for direction in ("forward", "backward"):
        share = [[100 * found[direction, impl, c]["peak_fraction"] for impl in ("flash", "standard")] for c in widths]
        rows.append([f"{direction}, % of peak, flash / standard"] + ["{:.0f} / {:.0f}".format(*pair) for pair in share])
    for title, key, direction in (("Y", "rel_l2_y", "forward"), ("dX", "rel_l2_dx", "backward"),
                                  ("dW", "rel_l2_dw", "backward")):
        errors = [[found[direction, impl, c][key] * 1e7 for impl in ("flash", "standard")] for c in widths]
        rows.append([f"rel-L2 of {title}, flash / standard (1e-7)"]
                    + ["{:.1f} / {:.1f}".format(*pair) for pair in errors])
    table(["C = D per group element"] + widths, rows)


def roofline(options):
    """Arithmetic intensity of the fused forms, and what peak and bandwidth allow."""
    machine = bench(options, "op", "--channels", "4", "--rows", "16", "--seconds", "0.001")["machine"]
    machine_line(machine)
    peak, bandwidth, rows = machine["peak_gflops"], machine["bandwidth_gbs"], 4096
    widths = [int(word) for word in options.channels.split(",")]

    def times(products, order, c):
        """Milliseconds of the products, and of moving x, y and the weights once."""
        compute = 2 * products * rows * c * c / peak / 1e6
        traffic = 4 * (2 * rows * c * order + products * c * c) / bandwidth / 1e6
        return compute, traffic

    lines = []
    for group, order, products in (("c2", 2, 2), ("c4", 4, 5), ("c8", 8, 11)):
        intensity = [2 * products * rows * c * c / (4 * (2 * rows * c * order + products * c * c)) for c in widths]
        bound = [max(times(order * order, order, c)) / max(times(products, order, c)) for c in widths]
        lines.append([f"{group}: FLOP per byte"] + [f"{value:.0f}" for value in intensity])
        lines.append([f"{group}: ratio allowed (at most {order * order / products:.1f})"]
                     + [f"{value:.1f}" for value in bound])
    table(["C = D per group element"] + widths, lines)


def model_rows(answer, title):
    for row in answer["results"]:
        runs = answer["runs"]
        yield [title, row["impl"], f"{row['ms_per_step']:.4g}", f"{row['images_per_s']:,.0f}",
               f"{100 * row['linear_share']:.0f} %", both(row, runs), both(row, runs, "naive"),
               f"{row['peak_memory_mb']:.0f} MB"]


def models(options):
    vit_t = ["--model", "eq_vit_t", "--batch", "16", "--seconds", "0.1"]
    small = ["--set", "model.width=64", "--set", "model.depth=3", "--set", "model.patch_size=8", "--batch", "32",
             "--seconds", "0.1"]
    rows = []
    for title, arguments in (("EQ-ViT-T, batch 16: training", ["train", *vit_t]),
                             ("EQ-ViT-T, batch 16: inference", ["model", *vit_t]),
                             ("width 64, depth 3, 16 tokens, batch 32: training", ["train", *small])):
        answer = bench(options, *arguments)
        rows += model_rows(answer, title)
    machine_line(answer["machine"])
    table(["model", "layers", "ms", "images/s", "in linear layers", "against standard", "against naive", "tensors"],
          rows)


def groups(options):
    for group, channels in (("c2", "128,256,512,1024,2048"), ("c8", "64,128,256,512")):
        print(f"Group {group}:\n")
        layer(options, group=group, impls="flash", channels=channels)


SECTIONS = {"roofline": roofline, "layer": layer, "avx2": lambda options: layer(options, simd="avx2", impls="flash"),
            "groups": groups, "models": models}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("section", nargs="*", help=f"of {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--gyre", default=os.path.join(ROOT, "build/release/gyre"))
    parser.add_argument("--threads", type=int, default=0, help="0: one per core")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--channels", default="16,32,64,96,128,256,512,1024")
    options = parser.parse_args()
    for name in options.section or SECTIONS:
        if name not in SECTIONS:
            parser.error(f"unknown section {name}; known are {', '.join(SECTIONS)}")
        print(f"### {name}\n")
        SECTIONS[name](options)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
