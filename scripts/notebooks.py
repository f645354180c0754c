# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs the notebooks anew and writes what comes out into them: scripts/notebooks.py [FILE...]

It takes nbformat, nbclient and ipykernel beside what the notebooks import.
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "python" / "notebooks"

for path in [Path(p) for p in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
    book = nbformat.read(path, 4)
    NotebookClient(book, timeout=600, kernel_name="python3").execute()
    for cell in book.cells:
        # When it ran is nobody's business.
        cell.metadata = {}
    nbformat.write(book, path)
    print(path.name)
