#!/usr/bin/env python3
"""A file of fuzz/corpus for protocols out of a connection that tests/truth/protocol_proxy.py noted.

    corpus_of_pieces.py PIECES CONNECTION [HOW] > FILE     HOW is the first byte, see fuzz_protocol.h
"""

import json
import sys

out = bytearray([int(sys.argv[3]) if len(sys.argv) > 3 else 0])
for row in map(json.loads, open(sys.argv[1])):
    if row["conn"] != int(sys.argv[2]) or row["dir"] == "end":
        continue
    head = bytes.fromhex(row["head"])
    hidden = min(row["bytes"] - len(head), (1 << 24) - 1)
    out.append((row["dir"] == "in") | (2 if hidden else 0))
    out += len(head).to_bytes(2, "big") + (hidden.to_bytes(3, "big") if hidden else b"") + head
sys.stdout.buffer.write(out[:1 << 16])
