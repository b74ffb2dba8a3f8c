"""Compilation of templates into metered code.

It builds on Jinja's code generator, which is not public API: see `pyproject.toml` for the versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame, operators


class MeteredCodeGenerator(CodeGenerator):
    """Generates calls of `spend`, `measured`, `charge` and `concatenate` of the environment."""

    def visit(self, node: nodes.Node, *args: Any, **options: Any) -> Any:
        """Charge expressions that build values for their result."""
        if not _puts_together(node):
            return super().visit(node, *args, **options)
        self.write("environment.charge(")
        super().visit(node, *args, **options)
        self.write(")")
        return None

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        """Charge each block of statements when it begins, such as a loop's or macro's body."""
        block = list(nodes)
        self.writeline(f"environment.spend({_size(block)})", block[0] if block else None)
        super().blockvisit(block, frame)

    def visit_For(self, node: nodes.For, frame: Frame) -> None:  # noqa: N802 - Jinja's name
        """Charge the condition of a loop per item: not all items reach the body."""
        if node.test is not None:
            spend = nodes.EnvironmentAttribute("spend")
            payment = nodes.Call(spend, [nodes.Const(_size([node.test]))], [], None, None)
            node.test = nodes.And(payment, node.test, lineno=node.test.lineno)
            node.test.set_environment(self.environment)
        super().visit_For(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        """Charge `~` before it joins its operands."""
        self.write("environment.concatenate(context, (")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

    def visit_Operand(self, node: nodes.Operand, frame: Frame) -> None:  # noqa: N802
        """Charge a comparison for its right side, whose length bounds its cost."""
        self.write(f" {operators[node.op]} environment.measured(")
        self.visit(node.expr, frame)
        self.write(")")


def _puts_together(node: nodes.Node) -> bool:
    match node:
        case (
            nodes.List() | nodes.Dict() | nodes.Tuple(ctx="load") | nodes.Getitem(arg=nodes.Slice())
        ):
            return True
    return False


def _size(block: Iterable[nodes.Node]) -> int:
    return 1 + sum(1 + sum(1 for _ in node.find_all(nodes.Node)) for node in block)
