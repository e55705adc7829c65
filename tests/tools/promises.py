#!/usr/bin/python3
"""Every test that docs/security.md names is there: a promise whose test is gone is none.

    promises.py BUILD

A test is named in backquotes, as `fault/trust-source` or with '*' for any number of them; `-counts` behind it is another
one that begins alike.
"""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys


def missing(text, tests):
    """Names in the text that fit none of the tests."""
    suites = {name.split("/")[0] for name in tests}
    absent, last = [], ""
    for line in text.splitlines():
        for word in re.findall(r"`([^`]+)`", line):
            if re.fullmatch(r"-[a-z0-9-]+", word) and last:
                word = last.rsplit("-", 1)[0] + word
            elif "/" in word and word.split("/")[0] in suites and not re.search(r"[\s…]", word):
                last = word
            else:
                last = ""
                continue
            if not fnmatch.filter(tests, word):
                absent.append(word)
        last = ""
    return absent


def main():
    done = subprocess.run(["meson", "introspect", "--tests", sys.argv[1]], capture_output=True, text=True, check=True)
    tests = [test["name"] for test in json.loads(done.stdout)]
    page = pathlib.Path(os.environ["SOURCE_ROOT"]) / "docs/security.md"
    text = page.read_text()
    # It can fail.
    made = ["fault/trust-one", "fault/trust-two", "base/redact"]
    assert missing("| `fault/trust-*`, `fault/trust-one`, `-two` | `src/base/trust.h` `-p` | `base/redact` |", made) == []
    assert missing("| `fault/trust-none`, `-two`, `-three` | `base/*.h`", made) == ["fault/trust-none", "fault/trust-three", "base/*.h"]
    absent = missing(text, tests)
    assert not absent, f"{page} names tests that are not there: {', '.join(absent)}"
    assert len(re.findall(r"`fault/", text)) > 10


if __name__ == "__main__":
    main()
