#!/usr/bin/env python3
"""Rows that differ among those that a batch of Criteo's terabyte looks up, for each click: `distinct` of dlrm_dcnv2's
variant nvidia.

    tests/validation/distinct_rows.py [BATCH ...]

By Heaps' law n draws of a category have n^b different values; b follows from the values of the whole data set. A value
stands for `hot` rows of a table of at most 40 M rows, drawn once and for all (uniformly), of which some coincide.
"""
import math
import sys

CLICKS = 4_195_197_692
LARGEST_TABLE = 40_000_000
# Values of the 26 categories (facebookresearch/dlrm, torchrec_dlrm/README.MD; of the tables it caps from memory)
# and rows that one stands for (MULTI_HOT_SIZES of the submissions' train.py).
VALUES = [227605432, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 130229467, 3067956, 405282, 10, 2209, 11938, 155, 4, 976,
          14, 292775614, 40790948, 187188510, 590152, 12973, 108, 36]
HOT = [3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1]


def distinct_rows(batch: int) -> float:
    """Rows that differ in a batch of so many clicks."""
    rows = 0.0
    for values, hot in zip(VALUES, HOT):
        seen = min(values, batch ** (math.log(values) / math.log(CLICKS)))
        table = min(values, LARGEST_TABLE)
        rows += table * (1 - math.exp(-seen * hot / table))
    return rows


def main() -> None:
    for batch in map(int, sys.argv[1:] or ["6912", "32768", "55296", "135168"]):
        print(f"{batch:8} clicks: {distinct_rows(batch) / batch:6.2f} rows a click of {sum(HOT)}")


if __name__ == "__main__":
    main()
