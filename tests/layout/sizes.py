#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Complains about functions of more than 80 lines and about lists of more than 6 parameters, in host/, targets/,
kernels/, bench/ and plot/. A lambda is a function too, and its lines are also those of the function it stands in.

    sizes.py [--root FOLDER] [--self-check]
"""

import argparse
import ast
import sys
from pathlib import Path

from sources import parse, read_tree

MOST_LINES, MOST_PARAMETERS = 80, 6
FOLDERS = ["host", "targets", "kernels", "bench"]


def of_sources(tree):
    """(place, name, lines, parameters) of every function, also of those that are only declared."""
    for path, source in parse(tree).items():
        for f in source.functions:
            yield f"{path}:{f.begin}", f.name, f.lines, len(f.parameters)
        for name, parameters, line, _ in source.declared:
            yield f"{path}:{line}", name, 0, len(parameters)


def of_scripts(tree):
    for path, text in tree.items():
        for f in ast.walk(ast.parse(text)):
            if isinstance(f, (ast.FunctionDef, ast.Lambda)):
                a = f.args
                yield (f"{path}:{f.lineno}", getattr(f, "name", "lambda"), f.end_lineno - f.lineno + 1,
                       len(a.posonlyargs + a.args + a.kwonlyargs))


def complaints(functions):
    found = set()
    for place, name, lines, parameters in functions:
        if lines > MOST_LINES:
            found.add(f"{place} {name} has {lines} lines")
        if parameters > MOST_PARAMETERS:
            found.add(f"{place} {name} has {parameters} parameters")
    return sorted(found)


def self_check():
    """What is too long is found, and nothing else."""
    body = lambda lines: "\n".join(["  ++i;"] * lines)
    six, seven = ", ".join(["int"] * 6), ", ".join(f"const std::map<int, int>& m{i} = {{}}" for i in range(7))
    code = {"host/a.cpp": f"int f({six}) {{\n{body(78)}\n}}\nstruct A {{\n  int g({seven});\n"
                          f"  A(int i) : i_{{i}} {{\n{body(79)}\n  }}\n}};\n"
                          f"int h() {{\n  return [](int a, int b, int c, int d, int e, int f, int g) {{ return a; }};\n}}\n"}
    scripts = {"plot/a.py": "def f(a, b, c, d, *, e, f, g):\n" + "    a += 1\n" * 79 + "    a = (b,\n         c)\n"}
    found = complaints(of_sources(code)) + complaints(of_scripts(scripts))
    expected = ["host/a.cpp:82 A::g has 7 parameters", "host/a.cpp:83 A::A has 81 lines",
                "host/a.cpp:166 h::[lambda 1] has 7 parameters", "plot/a.py:1 f has 7 parameters",
                "plot/a.py:1 f has 82 lines"]
    if sorted(found) != sorted(expected):
        raise SystemExit(f"self-check: {found}, not {expected}")
    print(f"self-check: {len(found)} planted")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2], help="of the source tree")
    parser.add_argument("--self-check", action="store_true")
    args = parser.parse_args()
    if args.self_check:
        self_check()
    scripts = {p.relative_to(args.root).as_posix(): p.read_text() for p in sorted((args.root / "plot").glob("*.py"))}
    found = complaints(of_sources(read_tree(args.root, FOLDERS))) + complaints(of_scripts(scripts))
    for line in found:
        print(line)
    print(f"{len(found)} functions are too long, or take too many parameters")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
