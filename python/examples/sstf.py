# SPDX-License-Identifier: MIT OR Apache-2.0
"""A scheduler in Python: shortest seek time first.

It does what examples/write-a-scheduler does in Rust, to the last event. Run it to see how it
compares with the kernel's schedulers on a disk.
"""

import bisect

import blklab


class Sstf(blklab.Scheduler):
    """Shortest seek time first, as examples/write-a-scheduler has it in Rust."""

    name = "py-sstf"
    tunables = {"patience": (64, 0, 1_000_000, "how often the oldest may be passed over")}

    def __init__(self, queue):
        super().__init__(queue)
        self.patience = queue.tunables["patience"]
        self.passed = 0
        self.position = 0
        self.fifo = []
        self.tree = []
        self.urgent = []

    def insert(self, request, at_head):
        if at_head:
            self.urgent.insert(0, request)
            return
        bisect.insort(self.tree, request, key=lambda r: r.sector)
        self.fifo.append(request)

    def dispatch(self):
        if self.urgent:
            request = self.urgent.pop(0)
        elif self.fifo:
            oldest = self.fifo[0]
            nearest = self.nearest() if self.passed < self.patience else None
            request = nearest or oldest
            self.passed = 0 if request is oldest else self.passed + 1
            self.fifo.remove(request)
            self.tree.remove(request)
        else:
            return None
        self.position = request.end
        return request

    def nearest(self):
        above = bisect.bisect_left(self.tree, self.position, key=lambda r: r.sector)
        if above == len(self.tree):
            return self.tree[-1]
        up = self.tree[above]
        if above:
            below = self.tree[above - 1]
            if abs(below.sector - self.position) < abs(up.sector - self.position):
                return below
        return up

    def find_front_merge(self, end):
        place = bisect.bisect_left(self.tree, end, key=lambda r: r.sector)
        there = place < len(self.tree) and self.tree[place].sector == end
        return self.tree[place] if there else None

    def _beside(self, request, step):
        if request not in self.tree:
            return None
        place = self.tree.index(request) + step
        return self.tree[place] if 0 <= place < len(self.tree) else None

    def former(self, request):
        return self._beside(request, -1)

    def latter(self, request):
        return self._beside(request, 1)

    def merged(self, request, at_front):
        if at_front:
            self.tree.sort(key=lambda r: r.sector)

    def absorbed(self, request, other):
        # Together they are as old as the older one.
        if request.start_ns == other.start_ns:
            self.fifo.remove(request)
            self.fifo.insert(self.fifo.index(other), request)
        self.fifo.remove(other)
        self.tree.remove(other)


if __name__ == "__main__":
    job = {
        "reader": {
            "rw": "randread",
            "direct": 1,
            "ioengine": "libaio",
            "iodepth": 32,
            "size": "1g",
            "io_size": "4m",
        }
    }
    # A disk without a queue of its own, and requests enough for a scheduler to choose from.
    stack = {"kernel": "6.12", "device": "sata-7200-2008,queue_depth=1"}
    for scheduler in ("mq-deadline", "bfq", Sstf):
        run = blklab.run(job, sched=scheduler, set={"nr_requests": 64}, **stack)
        p50, longest = (run.metric(m, job="reader") / 1e6 for m in ("clat_p50_ns", "clat_max_ns"))
        name = run.record["scheduler"]
        print(f"{name:12} median {p50:6.1f} ms, longest {longest:6.1f} ms")
