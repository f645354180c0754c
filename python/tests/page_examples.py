# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the examples of a page of the docs: page_examples.py PAGE. Fails if one is not true."""

import doctest
import re
import sys
from pathlib import Path

page = Path(sys.argv[1])
blocks = re.findall(
    r"^```(?:pycon|python)\n(>>> .*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE
)
assert blocks, f"{page} has no examples"
test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page.name, str(page), 0)
runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
runner.run(test)
sys.exit(runner.summarize(verbose=False).failed)
