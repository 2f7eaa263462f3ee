# Copyright (c) clouddb.control contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mutants of a Python file, made with the operators of mutmut.

mutmut itself is not used to run them: it leaves out decorated functions and everything outside of functions, and collects
the tests anew for each mutant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation.mutators import mutation_operators

# Texts for ansible-doc, which sanity tests check, and declarations for mypy, such as aliases of types, which have no effect when
# they run.
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
DECLARATIONS = {"NewType", "ParamSpec", "TypeVar", "cast"}
ALIAS = re.compile(r"[A-Z][a-z]\w*")


class Mutant(NamedTuple):
    """A change of a file: the bytes from C(start) to C(end) become C(replacement).

    C(function) is the line at which the outermost function that contains the change begins, with its decorators, or 0.
    C(scope) names the classes and functions that contain the change.
    """

    path: str
    line: int
    start: int
    end: int
    replacement: str
    function: int
    scope: str

    def change(self, source: bytes) -> tuple[str, str]:
        """The lines that change, before and after, without indentation."""
        before, after = source.decode().splitlines(), self.apply(source).decode().splitlines()
        while before and after and before[0] == after[0]:
            del before[0], after[0]
        while before and after and before[-1] == after[-1]:
            del before[-1], after[-1]
        return "\n".join(line.strip() for line in before), "\n".join(line.strip() for line in after)

    def apply(self, source: bytes) -> bytes:
        """The content of the file with the change."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]


class _Visitor(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (ByteSpanPositionProvider, ParentNodeProvider, PositionProvider)

    def __init__(self, path: str, source: bytes, module: cst.Module) -> None:
        super().__init__()
        self.path, self.source, self.module = path, source, module
        self.mutants: dict[Mutant, None] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _is_excluded(node):
            return False
        for node_type, operator in mutation_operators:
            if isinstance(node, node_type):
                for changed in operator(node):
                    self._add(node, changed)
        return True

    def _add(self, node: cst.CSTNode, changed: cst.CSTNode) -> None:
        span = self.get_metadata(ByteSpanPositionProvider, node, None)
        if span is None:
            return
        position = self.get_metadata(PositionProvider, node)
        replacement = self.module.code_for_node(changed)
        # The span of an expression includes its parentheses; the code that is generated for it does as well.
        mutant = Mutant(
            self.path, position.start.line, span.start, span.start + span.length, replacement, *self._place(node)
        )
        if mutant.apply(self.source) != self.source:
            self.mutants[mutant] = None

    def _place(self, node: cst.CSTNode) -> tuple[int, str]:
        line, names = 0, []
        child, parent = node, self.get_metadata(ParentNodeProvider, node, None)
        while parent is not None:
            # Default values and decorators are evaluated when the function is defined.
            if isinstance(parent, cst.FunctionDef) and child is parent.body:
                first = parent.decorators[0] if parent.decorators else parent
                line = self.get_metadata(PositionProvider, first).start.line
            if isinstance(parent, cst.FunctionDef | cst.ClassDef):
                names.append(parent.name.value)
            child, parent = parent, self.get_metadata(ParentNodeProvider, parent, None)
        return line, ".".join(reversed(names))


def _is_excluded(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Annotation | cst.Decorator | cst.Import | cst.ImportFrom):
        return True
    if isinstance(node, cst.Assign):
        names = {target.target.value for target in node.targets if isinstance(target.target, cst.Name)}
        return any(name in DOCUMENTATION or ALIAS.fullmatch(name) for name in names) or (
            isinstance(node.value, cst.Call) and _is_call(node.value, DECLARATIONS)
        )
    if isinstance(node, cst.Call):
        return _is_call(node, {"len", "isinstance"} | DECLARATIONS)
    if isinstance(node, cst.If):
        return isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"
    return False


def _is_call(node: cst.Call, names: set[str]) -> bool:
    return isinstance(node.func, cst.Name) and node.func.value in names


def mutants_of(path: str) -> Iterator[Mutant]:
    """The mutants of a file that are valid Python, in the order of the file."""
    source = Path(path).read_bytes()
    wrapper = MetadataWrapper(cst.parse_module(source))
    visitor = _Visitor(path, source, wrapper.module)
    wrapper.visit(visitor)
    for mutant in sorted(visitor.mutants):
        try:
            compile(mutant.apply(source), path, "exec", dont_inherit=True)
        except SyntaxError:
            continue
        yield mutant
