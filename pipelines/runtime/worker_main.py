"""A worker process begins: `python -m pipelines.runtime.worker_main ENDPOINT PARENT STAGE`.

A server starts it; it ends with the server, however that ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # of Linux's prctl


def die_with(parent: int) -> None:
    """Have Linux kill this process when `parent` dies, even while its loop is stuck.

    Elsewhere the closed standard input has to do.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it was too late
        os._exit(1)


def main() -> None:
    # A signal that goes to a whole group or service is the server's: it lets conversations end, and
    # then closes its workers. What a stage starts ignores both too, for they are inherited.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):  # the server held them back until here
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    endpoint, parent, _ = sys.argv[1:]  # the stage is for whoever lists processes
    die_with(int(parent))
    faulthandler.enable()
    # Only now, because it takes a while, in which both of the above may be needed.
    from pipelines.runtime.worker import serve

    asyncio.run(serve(endpoint))


if __name__ == "__main__":
    main()
