#!/usr/bin/env python3
"""Times gyre against PyTorch and OpenBLAS on this machine: each in a process of its own, one after the other,
turn by turn, with the same number of threads. Needs only Python; a peer that is missing is left out."""

import argparse
import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ORDER = 4  # of gyre's group: width = channels per group element times this
# Freed memory stays in the process, as in gyre.
KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184",
               "MALLOC_TOP_PAD_": "268435456"}


class Peer:
    """A peer program with the settings it runs fastest with."""

    def __init__(self, title, command, options):
        self.title, self.command, self.options = title, command, options
        self.settings, self.library = {}, ""

    def run(self, arguments, settings=None):
        threads = str(self.options.threads)
        environment = {**os.environ, **KEEP_MEMORY, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads,
                       "OPENBLAS_NUM_THREADS": threads, **(self.settings if settings is None else settings)}
        if self.options.blas:
            environment["LD_LIBRARY_PATH"] = ":".join(
                filter(None, [self.options.blas, os.environ.get("LD_LIBRARY_PATH")]))
        return run_json([*self.command, *arguments, "--threads", threads], environment)

    def choose_settings(self):
        """Threads bound by OpenMP or free, and OpenBLAS's own choice of kernels or those for AVX-512, which it
        does not take on processors younger than itself: the fastest by a short trial."""
        bound = {"OMP_PROC_BIND": "true", "OMP_PLACES": "cores"}
        cores = [{}, {"OPENBLAS_CORETYPE": "SkylakeX"}] if "avx512f" in processor_flags() else [{}]
        trial = ["op", "--widths", "128,1024", "--rows", "2048", "--rounds", "5", "--seconds", "0.03"]
        best = None
        for settings in ({**b, **c} for c in cores for b in (bound, {})):
            if "MKL" in self.library and "OPENBLAS_CORETYPE" in settings:
                continue
            answer = self.run(trial, settings)
            time = statistics.geometric_mean(result["ms_min"] for result in answer["results"])
            if best is None or time < 0.98 * best:
                best, self.settings, self.library = time, settings, answer["library"]


def processor_flags():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            return next((line.split() for line in file if line.startswith("flags")), [])
    except OSError:
        return []


class Missing(Exception):
    pass


def run_json(command, environment):
    try:
        result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Missing(f"{command[0]} does not start: {error.strerror}") from error
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise Missing(f"{command[0]} failed: {lines[-1]}")
    return json.loads(result.stdout)


def run_gyre(options, arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    return run_json([options.gyre, "bench", *arguments, "--threads", str(options.threads), "--json"],
                    environment)


def find_peers(options, with_openblas):
    candidates = [Peer(f"torch{i + 1 if len(options.torch) > 1 else ''}", [python, f"{HERE}/torch_peer.py"],
                       options) for i, python in enumerate(options.torch)]
    if with_openblas:
        candidates.append(Peer("openblas", [sys.executable, f"{HERE}/openblas_peer.py"], options))
    peers = []
    for peer in candidates:
        try:
            peer.choose_settings()
            peers.append(peer)
        except Missing as missing:
            print(f"{peer.title}: left out, {missing}", file=sys.stderr)
    return peers


def compare_op(options):
    channels = [int(word) for word in options.channels.split(",")]
    repeats = ["--rounds", "3", "--seconds", str(options.seconds)]
    peers = find_peers(options, True)
    times, machine = {}, {}

    def note(key, who, milliseconds):
        times.setdefault(key, {}).setdefault(who, []).append(milliseconds)

    for _ in range(options.rounds):
        for channel in channels:
            answer = run_gyre(options, ["op", "--channels", str(channel), "--rows", str(options.rows), *repeats])
            machine = answer["machine"]
            for result in answer["results"]:
                note((result["direction"], channel), result["impl"], result["ms_median"])
            for peer in peers:
                answer = peer.run(["op", "--widths", str(ORDER * channel), "--rows", str(options.rows), *repeats])
                for result in answer["results"]:
                    note((result["direction"], channel), peer.title, result["ms_median"])
    results = []
    for (direction, channel), own in sorted(times.items(), key=lambda item: (item[0][0] != "forward", item[0][1])):
        ms = {who: statistics.median(values) for who, values in own.items()}
        ratios = {}
        for who in ("standard", "flash"):
            for peer in peers:
                turns = zip(own[peer.title], own[who])
                ratios[f"{who}_to_{peer.title}"] = statistics.median(theirs / ours for theirs, ours in turns)
        best = min(ms[who] for who in ms if who not in ("naive", "flash"))
        results.append({"direction": direction, "channels": channel, "rows": options.rows, "ms": ms,
                        "ratios": ratios, "flash_to_best_dense": best / ms["flash"]})
    return machine, peers, results


def compare_model(options):
    peers = find_peers(options, False)
    times, machine = {}, {}
    shape = ["--model", "eq_vit_t", "--batch", str(options.batch), "--set", "train.ema_decay=0"]
    repeats = ["--rounds", "3", "--seconds", str(options.seconds)]
    for _ in range(options.rounds):
        for kind, command in (("train", "train"), ("infer", "model")):
            answer = run_gyre(options, [command, *shape, *repeats])
            machine = answer["machine"]
            for result in answer["results"]:
                times.setdefault(kind, {}).setdefault(result["impl"], []).append(result["ms_per_step"])
            for peer in peers:
                answer = peer.run(["model", "--pass", kind, "--batch", str(options.batch), *repeats])
                times[kind].setdefault(peer.title, []).append(answer["results"][0]["ms_median"])
    results = []
    for kind, own in times.items():
        ratios = {f"{who}_to_{peer.title}": statistics.median(t / o for t, o in zip(own[peer.title], own[who]))
                  for who in ("standard", "flash") for peer in peers}
        results.append({"pass": kind, "batch": options.batch, "ratios": ratios,
                        "ms": {who: statistics.median(values) for who, values in own.items()}})
    return machine, peers, results


def print_text(options, machine, peers, results):
    print(f"machine  {machine['cpu']}, {machine['threads']} threads, {machine['simd']}, "
          f"{machine['peak_gflops']:.0f} GFLOP/s of multiply-adds")
    print(f"gyre     {machine['dense_library']} behind the standard layer")
    for peer in peers:
        words = " ".join(f"{k}={v}" for k, v in peer.settings.items()) or "threads free"
        print(f"{peer.title:<8} {peer.library} ({words})")
    layer = options.what == "op"
    names = list(results[0]["ms"])
    ratios = list(results[0]["ratios"])
    titles = [*ratios, *(["flash_to_best_dense"] if layer else [])]
    print(f"\n{'way':<9} {'channels' if layer else 'batch':>8} " + " ".join(f"{name + ' ms':>12}" for name in names)
          + "   " + "  ".join(titles))
    for result in results:
        values = [*(result["ratios"][name] for name in ratios), *([result["flash_to_best_dense"]] if layer else [])]
        print(f"{result['direction' if layer else 'pass']:<9} {result['channels' if layer else 'batch']:>8} "
              + " ".join(f"{result['ms'][name]:>12.3f}" for name in names) + "   "
              + "  ".join(f"{value:>{len(title) - 1}.2f}x" for title, value in zip(titles, values)))
    print("\nstandard_to_torch: PyTorch's time over that of gyre's ordinary layer or model, above 1 gyre is faster;")
    print("each in its own process, in turn; packing of weights is outside gyre's time, peers take them as they are")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["op", "model"], help="one linear layer, or training and inference of ViT-T")
    parser.add_argument("--gyre", default=os.path.join(ROOT, "build/release/gyre"), help="the program")
    parser.add_argument("--torch", action="append", metavar="PYTHON",
                        help="an interpreter that can import torch; repeatable (default: this one)")
    parser.add_argument("--blas", default="", metavar="DIR", help="folder of libopenblas.so.0 and libblas.so.3")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3, help="turns of all programs")
    parser.add_argument("--seconds", type=float, default=0.1, help="length of one measurement")
    parser.add_argument("--channels", default="16,32,64,96,128,256,512,1024", help="op: per group element of c4")
    parser.add_argument("--rows", type=int, default=4096, help="op")
    parser.add_argument("--batch", type=int, default=16, help="model")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.torch = options.torch or [sys.executable]
    try:
        machine, peers, results = (compare_op if options.what == "op" else compare_model)(options)
    except Missing as missing:
        sys.exit(f"compare.py: {missing}")
    if options.json:
        print(json.dumps({"machine": machine, "results": results, "peers": [
            {"name": peer.title, "library": peer.library, "settings": peer.settings} for peer in peers]}, indent=2))
    else:
        print_text(options, machine, peers, results)


if __name__ == "__main__":
    main()
