"""Masks that a step draws on the host, as SpecAugment of wav2vec 2.0 does: how many numbers they hide is chance."""

from __future__ import annotations


class DrawnMasks:
    """How many numbers masks of known values let through, look-up by look-up, in the recordings of a step.

    The numbers drawn for five samples are no multiple of those for two, so that no size behind them is a + b x batch. Where that made
    a capture fail, it is recorded again with `even` set: then each sample has as many numbers as the mean one at the first batch.
    """

    def __init__(self, even: bool = False) -> None:
        self.even = even
        self.met = False  # a look-up of a known mask
        self.batch = 0  # of the recording
        self._first: list[tuple[int, int, int]] = []  # of each look-up at the first batch: numbers of the mask, those found, the batch
        self._next = 0

    def begin(self) -> None:
        """Begins a recording."""
        self._next = 0

    def count(self, mask: int, found: int) -> int:
        """Returns how many places are recorded where `found` of the numbers of a mask hold."""
        self.met = True
        if not self.even:
            return found
        if self._next == len(self._first):
            self._first.append((mask, found, self.batch))
        first, found, batch = self._first[self._next]
        self._next += 1
        grows = first % batch == 0 and mask == first // batch * self.batch
        return min(mask, max(1, round(found / batch)) * self.batch) if grows and found else found
