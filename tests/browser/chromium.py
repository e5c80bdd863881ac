"""The browser that the tests drive: Debian's Chromium. Run as a program, this installs it.

python -m tests.browser.chromium
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

PACKAGE_NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW_TO_INSTALL = (
    "The browser tests need Chromium, and none was found. Install it (Debian: apt-get install "
    "chromium), or say where it is: CHROMIUM=/path/to/chromium make test"
)

# No sandbox: tests run as root in containers. The rest keeps the browser from calling home.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-fake-device-for-media-stream",
)


class ChromiumMissing(Exception):
    """No browser was found; the message says how to get one."""


def find_chromium() -> str:
    """The path of the browser's program; $CHROMIUM overrules the PATH.

    Raises:
        ChromiumMissing: there is none.
    """
    if named := os.environ.get("CHROMIUM"):
        if shutil.which(named) is None:
            raise ChromiumMissing(f"CHROMIUM={named} is no program. {HOW_TO_INSTALL}")
        return named
    for name in PACKAGE_NAMES:
        if path := shutil.which(name):
            return path
    raise ChromiumMissing(HOW_TO_INSTALL)


def install_chromium() -> None:
    """From Debian's packages, which only root may add.

    Raises:
        ChromiumMissing: not root, not Debian, or the packages did not come.
    """
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ChromiumMissing(HOW_TO_INSTALL)
    sys.stdout.write("Installing Chromium for the browser tests (about 100 MB, once) ...\n")
    sys.stdout.flush()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        done = subprocess.run(
            ["apt-get", "-qq", *words],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            said = done.stdout.strip()
            raise ChromiumMissing(f"{said}\napt-get {' '.join(words)} failed. {HOW_TO_INSTALL}")


def main() -> int:
    try:
        try:
            find_chromium()
        except ChromiumMissing:
            if "CHROMIUM" in os.environ:
                raise
            install_chromium()
            find_chromium()
    except ChromiumMissing as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
