# SPDX-License-Identifier: MIT OR Apache-2.0
"""A scheduler that workers of other processes find."""

import blklab


class Fifo(blklab.Scheduler):
    """First come, first served."""

    name = "sweep-fifo"

    def __init__(self, queue):
        super().__init__(queue)
        self.waiting = []

    def insert(self, request, at_head):
        self.waiting.append(request)

    def dispatch(self):
        return self.waiting.pop(0) if self.waiting else None

    def absorbed(self, request, other):
        self.waiting.remove(other)
