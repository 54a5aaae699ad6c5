"""Mutants of source files, and a sample of them."""

import ast
import random
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GROUPS = {  # a file belongs to the first that has it
    "secure aggregation": ("secagg", "service/helper"),
    "maths": ("methods", "simulation", "_numerics"),
    "protocol": ("federation", "privacy"),
    "server": ("service/server",),
}
LEFT_OUT = {"cluster", "__init__"}  # Ray's tests are slow
_SWAPPED = {"<": "<=", ">": ">=", "==": "!=", "in": "not in", "is": "is not", "+": "-", "*": "/", "<<": ">>", "&": "|"}
_SWAPPED |= {"and": "or"}
OPERATORS = _SWAPPED | {other: one for one, other in _SWAPPED.items()}
OPERATORS |= {"//": "*", "%": "*", "**": "*", "^": "&", "@": "*"}
OPERATOR = re.compile(r"not\s+in|is\s+not|<<|>>|\*\*|//|[<>=!]=|[-+*/%&|^@<>]|\b(in|is|and|or)\b")
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "defaults", "kw_defaults", "type_params"}
NO_EFFECT = re.compile(r"(^|\.)(log|logging|warnings|echo|print|fetch_row|fsync)\b|(Error|Message|Answer)$")


class Mutant(NamedTuple):
    """One change of one file."""

    group: str
    file: str
    line: int
    start: int  # in the file's bytes
    end: int
    text: str  # instead of what is there


def mutants_of(root, group, path):
    """All mutants of a file."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def span(node):
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def changes(node):
        """(start, end, text) of each change of this node itself."""
        if isinstance(node, ast.BinOp | ast.Compare | ast.BoolOp):
            parts = node.values if isinstance(node, ast.BoolOp) else [node.left]
            parts += [node.right] if isinstance(node, ast.BinOp) else getattr(node, "comparators", [])
            (_, begin), (end, _) = span(parts[0]), span(parts[1])
            found = OPERATOR.search(source[begin:end].decode())
            if found:
                yield begin + found.start(), begin + found.end(), OPERATORS[" ".join(found[0].split())]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield span(node)[0], span(node.operand)[0], ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield *span(node), repr(not node.value if isinstance(node.value, bool) else node.value + 1)
        elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
            yield *span(node), "pass"
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            begin, end = span(node.test)
            yield begin, end, f"not ({source[begin:end].decode()})"
            if isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise) and not node.orelse:
                yield *span(node), "pass"

    def visit(node, inside):
        if inside:
            called = node.value if isinstance(node, ast.Expr) else node
            has_no_effect = isinstance(called, ast.Call) and NO_EFFECT.search(ast.unparse(called.func))
            if has_no_effect or isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
                return
            for start, end, text in changes(node):
                yield Mutant(group, path.relative_to(root).as_posix(), node.lineno, start, end, text)
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for name, value in ast.iter_fields(node):
            if name not in SKIPPED_FIELDS and not (isinstance(node, ast.keyword) and node.arg == "strict"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from visit(child, inside)

    return visit(ast.parse(source), inside=False)


def sample(root, count, seed):
    """As many mutants of each group, the groups in turns, at most one per line."""
    chosen, taken = [], set()
    for group, folders in GROUPS.items():
        files = {file for folder in folders for file in (root / "src/federank" / folder).rglob("*.py")} - taken
        taken |= files
        lines = {}
        for file in sorted(files):
            for mutant in () if {*file.parts, file.stem} & LEFT_OUT else mutants_of(root, group, file):
                lines.setdefault((mutant.file, mutant.line), []).append(mutant)
        draw = random.Random(f"{seed} {group}")
        chosen.append([draw.choice(lines[place]) for place in draw.sample(list(lines), count // len(GROUPS))])
    return [mutant for turn in zip(*chosen, strict=True) for mutant in turn]
