"""The program tbd-sim: ``python -m tbdsim ARGUMENTS...``, and the command ``tbd-sim`` that pip installs."""

from __future__ import annotations

import sys

from .command_line import run_program


def main() -> None:
    sys.exit(run_program(*sys.argv[1:]))


if __name__ == "__main__":
    main()
