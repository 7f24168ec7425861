"""Waits for the death of one process whose PID it is given, and for nothing else. Prints a line
when it waits, and one when the process has exited."""

import os
import select
import sys

waiting = select.poll()
waiting.register(os.pidfd_open(int(sys.argv[1])), select.POLLIN)
print("waiting", flush=True)
waiting.poll()
print("exited", flush=True)
