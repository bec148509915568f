"""Exit codes that the programs here share."""

OK = 0
CANNOT_WRITE = 2
"""Also a wrong command line, as argparse has it."""
DEVICE_LOST = 75
NO_GPU = 77
"""What test drivers take for "skipped"."""
