# SPDX-License-Identifier: MIT OR Apache-2.0
"""The stubs say what the native module has, and the examples of the docs are true."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import blklab
import pytest
from blklab import _native

ROOT = Path(__file__).parents[2]


def test_stubs_and_module_have_the_same_names_and_parameters():
    stubs = Path(blklab.__file__).with_name("_native.pyi")
    tree = ast.parse(stubs.read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    public = {name for name in dir(_native) if not name.startswith("_")}
    assert public == {*classes, *functions, "version"}
    for name, node in functions.items():
        assert _parameters(node.args) == [*inspect.signature(getattr(_native, name)).parameters]
    for name, node in classes.items():
        own = {f.name: f for f in node.body if isinstance(f, ast.FunctionDef)}
        module = getattr(_native, name)
        members = {m for m in vars(module) if not m.startswith("_")}
        assert members == {m for m in own if not m.startswith("_")}, name
        for member in members:
            value = inspect.getattr_static(module, member)
            if callable(value) or isinstance(value, staticmethod):
                said = [p for p in _parameters(own[member].args) if p != "self"]
                there = inspect.signature(getattr(module, member)).parameters
                assert said == [p for p in there if p != "self"], f"{name}.{member}"


def _parameters(args: ast.arguments) -> list[str]:
    return [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]


def _modules():
    found = pkgutil.walk_packages(blklab.__path__, "blklab.")
    return ["blklab", *(m.name for m in found if m.name != "blklab._native")]


@pytest.mark.parametrize("name", _modules())
def test_examples_in_docstrings(name):
    pytest.importorskip("scipy")
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("python*.md")), ids=lambda p: p.name)
def test_examples_in_docs(page, tmp_path):
    # Who reads a page begins with a fresh Python: no scheduler of another test is known there.
    runner = Path(__file__).with_name("page_examples.py")
    done = subprocess.run(
        [sys.executable, runner, page], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
