"""The last usage in a transcript, from its last MiB.

    last_usage.py print PATH      the usage
    last_usage.py time PATH N     N times: wall time of each, in milliseconds
"""

import json
import os
import sys
import time

TAIL_BYTES = 1024 * 1024


def last_usage(path):
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().splitlines()
    for line in reversed(lines):
        if line.strip():
            usage = json.loads(line)["message"].get("usage")
            if usage is not None:
                return usage
    return None


def main():
    path = sys.argv[2]
    if sys.argv[1] == "print":
        json.dump(last_usage(path), sys.stdout)
        return
    samples = []
    for _ in range(int(sys.argv[3])):
        began, cpu = time.perf_counter(), time.process_time()
        last_usage(path)
        samples.append([(time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000])
    json.dump({"samples": samples}, sys.stdout)


if __name__ == "__main__":
    main()
