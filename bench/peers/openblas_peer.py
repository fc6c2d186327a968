"""OpenBLAS's side of the comparison: cblas_sgemm on the shapes of a linear layer, called without any wrapper
library. Prints one JSON object.

forward is one product, backward two (dX and dW); biases are left out, which favours this side.
"""

import argparse
import ctypes
import ctypes.util
import json
import random

from timing import row, time_rounds

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


def load(path):
    name = path or ctypes.util.find_library("openblas") or "libopenblas.so.0"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise SystemExit(f"openblas_peer: OpenBLAS cannot be loaded ({error}); see bench/peers/README.md")
    if not hasattr(library, "openblas_get_config"):
        raise SystemExit(f"openblas_peer: {name} is not OpenBLAS; see bench/peers/README.md")
    return library


def name_of(library):
    """"OpenBLAS 0.3.21 (SkylakeX)", with the processor whose kernels it takes."""
    library.openblas_get_config.restype = library.openblas_get_corename.restype = ctypes.c_char_p
    version = library.openblas_get_config().decode().split()[1]
    return f"OpenBLAS {version} ({library.openblas_get_corename().decode()})"


def matrix(rows, columns, seed):
    """Random values, a block of them repeated."""
    block = [random.Random(seed).gauss(0, 1) for _ in range(4093)]
    count = rows * columns
    repeated = (ctypes.c_float * (len(block) * (count // len(block) + 1)))()
    source = (ctypes.c_float * len(block))(*block)
    size = ctypes.sizeof(source)
    for at in range(0, ctypes.sizeof(repeated), size):
        ctypes.memmove(ctypes.addressof(repeated) + at, source, size)
    return repeated


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=["op"])
    parser.add_argument("--library", default="")
    parser.add_argument("--widths", default="64,128,256,384,512,1024,2048,4096")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.1)
    options = parser.parse_args()
    library = load(options.library)
    library.openblas_set_num_threads(options.threads)
    sgemm, real, whole = library.cblas_sgemm, ctypes.c_float, ctypes.c_int
    sgemm.restype = None
    sgemm.argtypes = [whole] * 6 + [real, ctypes.c_void_p, whole, ctypes.c_void_p, whole, real,
                                    ctypes.c_void_p, whole]

    def product(trans_a, trans_b, m, n, k, a, lda, b, ldb, c):
        sgemm(ROW_MAJOR, trans_a, trans_b, m, n, k, 1.0, a, lda, b, ldb, 0.0, c, n)

    results = []
    n = options.rows
    for width in (int(word) for word in options.widths.split(",")):
        x, dy, w = matrix(n, width, 1), matrix(n, width, 2), matrix(width, width, 3)
        out, dw = matrix(n, width, 4), matrix(width, width, 5)

        def forward():
            product(PLAIN, TRANSPOSED, n, width, width, x, width, w, width, out)

        def backward():
            product(PLAIN, PLAIN, n, width, width, dy, width, w, width, out)
            product(TRANSPOSED, PLAIN, width, width, n, dy, width, x, width, dw)

        for direction, call in (("forward", forward), ("backward", backward)):
            times = time_rounds(call, options.rounds, options.seconds)
            results.append(row(times, op="linear", width=width, rows=n, direction=direction))
    print(json.dumps({
        "library": name_of(library),
        "threads": library.openblas_get_num_threads(),
        "results": results,
    }))


if __name__ == "__main__":
    main()
