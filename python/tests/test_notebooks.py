# SPDX-License-Identifier: MIT OR Apache-2.0
"""The notebooks run, and print what stands in them."""

import contextlib
import io
import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"


def printed(cell):
    streams = (o for o in cell["outputs"] if o.get("name") == "stdout")
    return "".join("".join(o["text"]) for o in streams)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_prints_what_stands_in_it(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib").use("Agg")
    if "tune" in path.name:
        pytest.importorskip("optuna")
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    assert cells
    names = {"__name__": "__main__"}
    for cell in cells:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
        assert out.getvalue() == printed(cell)
