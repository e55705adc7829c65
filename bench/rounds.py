"""Plain and recorded rounds by turns, so that what drifts on a machine is not taken for a cost."""

import json
import pathlib
import signal
import statistics
import subprocess
import sys

import figures
from figures import figure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "truth"))
import wait_tools  # noqa: E402


def wall(*command, before=()):
    """What the workload says it took: without the start and end of whoever looks on."""
    done = subprocess.run([*before, *command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"  {' '.join(before[:8])}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        return None
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return next(row["value"] for row in rows if row.get("name") == "wall_ms")


def alternate(command, ways, rounds, peers=()):
    """Rounds of plain and of each way (a function that gives what stands before the command);
    returns the median ratio of each. Those of `peers` may fail; we may not."""
    plain, ratios = [], {name: [] for name in ways}
    for _ in range(rounds):
        plain.append(wall(*command))
        for name, before in ways.items():
            took = wall(*command, before=before())
            if took is not None:
                ratios[name].append(took / plain[-1])
            elif name not in peers:
                figures.miss()
    figure("plain", statistics.median(plain) / 1e3, "s")
    for name, values in ratios.items():
        if values:
            print(f"  {name}, rounds against plain: " + " ".join(f"{x:.3f}" for x in values))
    return {name: statistics.median(values) if values else None for name, values in ratios.items()}


def loss(rate_of, recorder_command, rounds):
    """Throughput plain and recorded by turns on one running server; the median loss in percent.
    The command ends with -o FILE."""
    losses = []
    rate_of()  # warm
    for number in range(rounds):
        def recorded():
            pathlib.Path(recorder_command[-1]).unlink(missing_ok=True)
            recorder = subprocess.Popen(recorder_command, stderr=subprocess.DEVNULL)
            try:
                wait_tools.wait_attached(recorder)
                return rate_of()
            finally:
                recorder.send_signal(signal.SIGINT)
                recorder.wait(timeout=120)

        # Who comes first changes: what warms up must not be taken for a cost either.
        if number % 2:
            under, plain = recorded(), rate_of()
        else:
            plain, under = rate_of(), recorded()
        losses.append((1 - under / plain) * 100)
    print("  rounds, loss: " + " ".join(f"{x:+.1f}%" for x in losses))
    return statistics.median(losses)
