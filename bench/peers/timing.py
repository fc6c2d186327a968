"""Timing that the peers share."""

import statistics
import time


def time_rounds(call, rounds, seconds):
    """Milliseconds of one call in each of `rounds` measurements, after two calls that are not counted."""
    call()
    start = time.perf_counter()
    call()
    repeats = max(1, int(seconds / max(1e-6, time.perf_counter() - start)))
    result = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        result.append(1e3 * (time.perf_counter() - start) / repeats)
    return result


def row(times, **names):
    return {**names, "ms_median": statistics.median(times), "ms_min": min(times), "ms_max": max(times)}
