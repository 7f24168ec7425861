"""The last record of a transcript, from its last MiB.

    last_record.py print PATH      the record
    last_record.py time PATH N     N times: wall time of each, in milliseconds
"""

import json
import os
import sys
import time

TAIL_BYTES = 1024 * 1024


def last_record(path):
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        lines = file.read().splitlines()
    for line in reversed(lines):
        if line.strip():
            return json.loads(line)
    return None


def main():
    path = sys.argv[2]
    if sys.argv[1] == "print":
        json.dump(last_record(path), sys.stdout)
        return
    samples = []
    for _ in range(int(sys.argv[3])):
        began, cpu = time.perf_counter(), time.process_time()
        last_record(path)
        samples.append([(time.perf_counter() - began) * 1000, (time.process_time() - cpu) * 1000])
    json.dump({"samples": samples}, sys.stdout)


if __name__ == "__main__":
    main()
