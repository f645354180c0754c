# SPDX-License-Identifier: MIT OR Apache-2.0
"""Conditions on the points of a sweep: a small language of its own, which runs no code.

It has the factors by name, numbers, texts, lists, ``+ - * / // %``, comparisons, ``in``,
``and``, ``or``, ``not``. Python's parser reads it; what is not in this list is refused.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any

from blklab._native import InputError

#: Says of a point whether it is wanted.
Condition = Callable[[Mapping[str, Any]], bool]

#: Characters of a condition, at most: its parser is recursive.
_LENGTH_MAX = 1000

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_COMPARED: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def condition(text: str, names: Collection[str]) -> Condition:
    """The condition that a text says.

    Parameters
    ----------
    text : str
        Such as ``sched != 'none' or nr_requests <= 64``.
    names : collection of str
        The factors that it may name.

    Raises
    ------
    InputError
        If it says something else.

    Examples
    --------
    >>> few = condition("sched == 'none' or nr_requests < 64", ["sched", "nr_requests"])
    >>> few({"sched": "bfq", "nr_requests": 32}), few({"sched": "bfq", "nr_requests": 64})
    (True, False)
    """
    if len(text) > _LENGTH_MAX:
        raise InputError(f"where: a condition has at most {_LENGTH_MAX} characters")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise InputError(f"where={text!r}: it is no condition") from e
    _check(tree, text, names)

    def holds(point: Mapping[str, Any]) -> bool:
        try:
            return bool(_value(tree, point))
        except (TypeError, ZeroDivisionError, OverflowError, MemoryError) as e:
            raise InputError(f"where={text!r}: {e}") from e

    return holds


def _check(node: ast.AST, text: str, names: Collection[str]) -> None:
    dotted = _dotted(node)
    if dotted is not None:
        if dotted not in names:
            there = ", ".join(names)
            raise InputError(f"where={text!r}: no factor is called '{dotted}': there are {there}")
        return
    parts: list[ast.AST]
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return
        case ast.BoolOp(values=values):
            parts = [*values]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            parts = [operand]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            parts = [left, right]
        case ast.Compare(left=left, ops=ops, comparators=others) if all(
            type(op) in _COMPARED for op in ops
        ):
            parts = [left, *others]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            parts = [*elements]
        case _:
            raise InputError(
                f"where={text!r}: '{ast.unparse(node)}' has no place in a condition: it has "
                "factors, numbers, texts, lists, + - * / // %, comparisons, in, and, or, not"
            )
    for part in parts:
        _check(part, text, names)


def _dotted(node: ast.AST) -> str | None:
    """A name with its dots: ``device.rpm``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def _value(node: ast.AST, point: Mapping[str, Any]) -> Any:
    dotted = _dotted(node)
    if dotted is not None:
        return point[dotted]
    match node:
        case ast.Constant(value=value):
            return value
        case ast.BoolOp(op=ast.And(), values=values):
            return all(_value(v, point) for v in values)
        case ast.BoolOp(values=values):
            return any(_value(v, point) for v in values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, point)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, point)
        case ast.BinOp(left=left, op=op, right=right):
            return _computed(type(op), _value(left, point), _value(right, point))
        case ast.Compare(left=left, ops=ops, comparators=others):
            one = _value(left, point)
            for sign, node_ in zip(ops, others, strict=True):
                other = _value(node_, point)
                if not _COMPARED[type(sign)](one, other):
                    return False
                one = other
            return True
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_value(element, point) for element in elements]
    raise AssertionError("conditions are checked before they are used")


def _computed(op: type[ast.AST], one: Any, other: Any) -> Any:
    for value in (one, other):
        if not isinstance(value, (int, float)):
            raise TypeError(f"{value!r} is no number")
    return _BINARY[op](one, other)
