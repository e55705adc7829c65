"""What `whyslow run` says could be saved, beside what mending really saves, measured by turns.

Both are shares of the planted program's time: a machine that others use is not as fast now as it was then.
"""

import statistics
import subprocess
import time

import corpus_tools

SKIP = 77
PAIRS = 11
# Of the gain itself. Noisy: where half of the pairs differ by more than a fifth of it.
TOLERANCE, TOLERANCE_NOISY, NOISY = 0.15, 0.30, 0.20


def wall(command, folder):
    start = time.monotonic()
    # A session of its own, as whyslow gives it: on a busy machine the scheduler shares the CPUs among sessions.
    # Without a time limit: Python looks only every 50 ms then whether it is over.
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, start_new_session=True)
    return time.monotonic() - start


def around(pair, look):
    """Pairs (planted, mended) before and after what is asked, and its answer."""
    pair()  # a first one warms up
    pairs = [pair() for _ in range(PAIRS // 2)]
    answer = look()
    return pairs + [pair() for _ in range(PAIRS - PAIRS // 2)], answer


def confirmed(result, detector):
    """The row of the detector; None when the machine was too busy to record it."""
    is_apart = detector in corpus_tools.APART
    rows = corpus_tools.apart(result, detector) if is_apart else corpus_tools.suspicions(result, detector=detector)
    for row in rows:
        if row["verdict"] == "not judged":
            print(f"not judged: {row['reason']}")
            return None
    own = [row for row in rows if row["verdict"] == "confirmed"]
    assert own, f"not confirmed: {rows}"
    return {**own[0], "recoverable_ms": own[0]["ms"]} if is_apart else own[0]


def baseline_of(result):
    return next(row["median"] for row in result["metrics"] if row["metric"] == "wall") / 1e9


def compared(detector, pairs, said, typical=statistics.median, planted=None, noise=0.0):
    """How far what was said is off, and how restless it was. `planted`: the planted program's time, if not that of
    the pairs."""
    before, after = (typical(column) for column in zip(*pairs))
    before = planted or before
    true = 1 - after / before
    gains = sorted(1 - b / (planted or a) for a, b in pairs)
    spread = (gains[-1 - PAIRS // 4] - gains[PAIRS // 4]) / true
    print(f"{detector}: {before * 1e3:.0f} ms planted, {after * 1e3:.0f} ms mended: {true * 100:.1f}% gained; said "
          f"{said * 100:.1f}%, off by {(said / true - 1) * 100:+.1f}%; pairs differ by {spread * 100:.0f}%, other noise "
          f"{noise * 100:.0f}%", flush=True)
    return said / true - 1, max(spread, noise)


def compared_by_wall(detector, pairs, result, typical=statistics.median, planted=None):
    """The same where shares are of the wall time. None: not judged."""
    own = confirmed(result, detector)
    if not own:
        return None
    baseline = baseline_of(result)
    before = planted or typical([a for a, _ in pairs])
    return compared(detector, pairs, own["recoverable_ms"] / 1e3 / baseline, typical, planted,
                    abs(baseline / before - 1))


def verdict(attempt):
    """Up to three attempts, until the machine is quiet enough for an answer; else the quietest counts."""
    attempts = []
    for _ in range(3):
        one = attempt()
        attempts += [one] if one else []
        if one and one[1] < NOISY:
            break
    if not attempts:
        print("SKIP: the machine is too busy to record anything")
        return SKIP
    error, noise = min(attempts, key=lambda one: one[1])
    allowed = TOLERANCE if noise < NOISY else TOLERANCE_NOISY
    good = abs(error) <= allowed
    print(f"{'ok' if good else 'WRONG'}: off by {error * 100:+.1f}%, {allowed * 100:.0f}% are allowed"
          f"{': the machine is noisy' if noise >= NOISY else ''}")
    return 0 if good else 1
