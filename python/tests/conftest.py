# SPDX-License-Identifier: MIT OR Apache-2.0
"""What tests have in common."""

import pytest


@pytest.fixture
def reader():
    """A job that reads 256 KiB at random places."""
    return {"reader": {"rw": "randread", "direct": 1, "size": "64m", "io_size": "256k"}}
