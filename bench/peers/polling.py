"""Watches the sessions of a home the usual way: every two seconds it looks at each record and
each sidecar that has changed, and at the process of each. Prints who died or changed."""

import glob
import json
import os
import sys
import time

EVERY_S = 2

home = sys.argv[1]
PATTERNS = [
    ".claude/sessions/*.json",
    ".qwen/projects/*/chats/*.runtime.json",
    ".kimi/sessions/*/*/runtime.json",
]
known = {}
while True:
    seen = {}
    for pattern in PATTERNS:
        for path in glob.glob(os.path.join(home, pattern)):
            try:
                stat = os.stat(path)
                before = known.get(path)
                if before and before[0] == (stat.st_ino, stat.st_mtime_ns):
                    fields = before[1]
                else:
                    with open(path) as file:
                        fields = json.load(file)
                try:
                    os.kill(fields["pid"], 0)
                    is_alive = True
                except ProcessLookupError:
                    is_alive = False
                seen[path] = ((stat.st_ino, stat.st_mtime_ns), fields, is_alive)
            except (OSError, ValueError, KeyError):
                continue
            if known and before is not None and before[1:] != seen[path][1:]:
                print(path, is_alive, flush=True)
    known = seen
    time.sleep(EVERY_S)
