"""What the hypervisor took of this machine's CPUs: a guest that is held back does not know it.

Such time passes on clocks, a thread that runs seems to run on, and the kernel charges nobody for it: whoever compares
the two must allow for it, and it is 0 where no other guest is.
"""

import os


def stolen_ms():
    """Since the machine started, of all its CPUs."""
    with open("/proc/stat", encoding="ascii") as file:
        return int(file.readline().split()[8]) * 1000 / os.sysconf("SC_CLK_TCK")


START_MS = stolen_ms()


def stolen_here_ms():
    """Since this test began; each CPU's part is told in ticks."""
    return stolen_ms() - START_MS
