"""A terminal in use, as the one in which a person types `whosup`.

The kernel notes the use of a terminal in steps of eight seconds, and whosup believes such
notes only where some terminal shows one: one that was used later than it was made. The
agents' own terminals may all be too young for that, on a machine with no other terminal.
"""

import os
import pty

import wait

SECONDS_MAX = 20
STEP_SECONDS = 0.5


class UsedTerminal:
    """Makes a terminal, uses it until the kernel has noted that, and keeps it open."""

    def __enter__(self):
        self.ends = pty.openpty()
        try:
            wait.until("a kernel that notes the use of a terminal", self.is_noted, SECONDS_MAX, STEP_SECONDS)
        except wait.NotSeen as reason:
            print(f"note: {reason}; what only the use of a terminal decides stays undecided", flush=True)
        return self

    def __exit__(self, *_):
        for end in self.ends:
            os.close(end)

    def is_noted(self):
        """Writes there, and tells whether a later time than that of its making is noted."""
        reader, writer = self.ends
        os.write(writer, b".")
        os.read(reader, 1)
        seen = os.fstat(writer)
        return seen.st_mtime_ns > seen.st_ctime_ns
