# SPDX-License-Identifier: Apache-2.0
"""A load generator of somebody else: 50 requests, written as Locust-like CSV."""

import sys
import time
import urllib.request
from pathlib import Path

url, output = sys.argv[1:]
rows = ["start_time,response_time"]
for _ in range(50):
    start = time.time()
    with urllib.request.urlopen(url, timeout=5) as answer:
        answer.read()
    rows.append(f"{start:.6f},{(time.time() - start) * 1000:.3f}")
Path(output).write_text("\n".join(rows) + "\n")
