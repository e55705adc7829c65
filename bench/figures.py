"""Lines of a bench: what a figure is, what it should be, whether it is."""

missed = 0


def figure(name, value, unit, limit=None):
    global missed
    if value is None:
        print(f"  {name:<52} n/a")
        return
    verdict = ""
    if limit is not None:
        good = value <= limit
        miss(not good)
        verdict = f"  target <= {limit:g} {unit}  {'pass' if good else 'MISS'}"
    print(f"  {name:<52} {value:10.3f} {unit}{verdict}", flush=True)


def miss(count=1):
    global missed
    missed += count
