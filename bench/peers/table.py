"""The process table by psutil.

    table.py print        one line for each process: pid, parent, start, name
    table.py time N       N looks: wall and CPU time of each, in milliseconds
"""

import json
import os
import resource
import sys
import time

import psutil

FIELDS = ["pid", "ppid", "name", "create_time", "status"]


def look():
    return [process.info for process in psutil.process_iter(FIELDS)]


def main():
    if sys.argv[1] == "print":
        for info in look():
            print(info["pid"], info["ppid"], f"{info['create_time']:.2f}", info["name"], sep="\t")
        return
    samples = []
    for _ in range(int(sys.argv[2])):
        # Processes that were seen before must not be answered from a cache.
        psutil.process_iter.cache_clear()
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        look()
        after, ended = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        samples.append([(ended - began) * 1000, cpu * 1000])
    json.dump({"samples": samples, "pid": os.getpid()}, sys.stdout)


if __name__ == "__main__":
    main()
