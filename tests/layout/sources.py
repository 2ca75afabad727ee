# SPDX-License-Identifier: Apache-2.0
"""Functions of C++ sources, as far as formatted code shows them without a compiler: their names, parameters and
bodies, with every lambda as a function of its own."""

import re
from pathlib import Path

ENDINGS = {".hpp", ".cpp", ".cuh", ".cu", ".in"}
TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|&&|<<=|[-+*/%&|^=!<>]=|\S")
BLANK = re.compile(r'R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|' r"(?<![\w'])'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*(?:.|\n)*?\*/")
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
PAIR = {"(": ")", "[": "]", "{": "}"}
NO_CALL = set("if for while switch return sizeof catch requires decltype static_assert alignof noexcept throw new delete "
              "constexpr explicit alignas defined operator co_return case else do".split())


class Token(str):
    """Text of a token, and the line it stands in."""
    line = 0

    @property
    def is_name(self):
        return self[0].isalpha() or self[0] == "_"


def tokens_of(text):
    """Without comments and preprocessor lines; a literal is one token."""
    keep_lines = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = BLANK.sub(lambda m: '0' + keep_lines(m)[1:] if m.group()[0] in "\"'R" else keep_lines(m), text)
    text = PREPROCESSOR.sub(keep_lines, text)
    result, line, at = [], 1, 0
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        token = Token(match.group())
        token.line = line
        result.append(token)
    return result


def closing(tokens, at):
    """Index of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] in PAIR) - (tokens[i] in PAIR.values())
        if depth == 0:
            return i
    return len(tokens) - 1


def split(tokens, angles=False):
    """The parts between commas; with `angles`, commas of template arguments do not count (types, no comparisons)."""
    parts, depth, angle = [[]], 0, 0
    for t in tokens:
        depth += (t in PAIR) - (t in PAIR.values())
        angle += (t == "<") - (t == ">") if angles else 0
        if t == "," and depth == 0 and angle == 0:
            parts.append([])
        else:
            parts[-1].append(t)
    return [p for p in parts if p]


class Function:
    """A function or lambda: `name` qualified by classes, `parameters` as (name, type tokens), `body` without what
    stands in its lambdas; in it, a lambda is a token of its own, listed in `lambdas`."""

    def __init__(self, path, name, outer=None):
        self.path, self.name, self.outer = path, name, outer
        self.parameters, self.body, self.lambdas, self.begin, self.end = [], [], {}, 0, 0
        self.template, self.virtual, self.captures, self.initialisers = set(), False, {}, []

    @property
    def short(self):
        return self.name.split("::")[-1]

    @property
    def owner(self):
        return self.name.rpartition("::")[0]

    @property
    def lines(self):
        return self.end - self.begin + 1

    def around(self):
        """Itself and the functions it stands in, from the inside."""
        f = self
        while f is not None:
            yield f
            f = f.outer

    def __repr__(self):
        return f"{self.path}:{self.begin} {self.name}"


def parameters_of(tokens):
    result = []
    for part in split(tokens, angles=True):
        part = part[:next((i for i, t in enumerate(part) if t == "="), len(part))]
        if part == ["void"] or not part:
            continue
        names = [t for t in part if t.is_name]
        named = len(names) > 1 and part[-1].is_name and part[-1] not in ("const", "int", "double")
        result.append((str(part[-1]) if named else "", [str(t) for t in (part[:-1] if named else part)]))
    return result


class Source:
    """What a file defines: functions, classes with their bases and their members of callable type."""

    def __init__(self, path, text):
        self.path = path
        self.includes = re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.M)
        # Members: (class, name, parameters) of those that are std::function, by that name or another.
        self.functions, self.classes, self.members = [], {}, []
        self.callables = set(re.findall(r"using (\w+) =\s*std::function<", text)) | {"function"}
        self.declared = []  # (name, parameters, line) of every function, also where it has no body here
        tokens = tokens_of(text)
        # Variables and members, by name: the last word of the types that they are declared with.
        self.types = [(str(tokens[i]), str(tokens[i - (2 if tokens[i - 1] in ("&", "*") else 1)]))
                      for i in range(2, len(tokens) - 1)
                      if tokens[i].is_name and tokens[i + 1] in (";", "=", "{", ",", ")", ":")]
        self.scope(tokens, [], set())

    def scope(self, tokens, owners, template):
        """Declarations between the braces of a namespace or a class."""
        head, i = [], 0
        while i < len(tokens):
            t = tokens[i]
            if t == ";":
                self.declaration(head, owners)
                head = []
            elif t == ":" and head and head[-1] in ("public", "private", "protected"):
                head = []
            elif t in ("(", "["):
                end = closing(tokens, i)
                head += tokens[i:end + 1]
                i = end
            elif t == "{":
                end = closing(tokens, i)
                kind = self.kind(head)
                if kind == "skip":
                    head += tokens[i:end + 1]
                elif kind == "namespace":
                    self.scope(tokens[i + 1:end], owners, template)
                    head = []
                elif kind == "class":
                    name = self.class_head(head)
                    self.scope(tokens[i + 1:end], owners + [name], template | self.strip_template(head)[1])
                    head = [Token("struct"), Token(name)]  # a variable may follow
                else:
                    self.define(head, tokens[i:end + 1], owners, template)
                    head = []
                i = end
            else:
                head.append(t)
            i += 1

    @staticmethod
    def strip_template(head):
        """Without template<..>, and the names of its parameters."""
        names = set()
        while head and head[0] == "template":
            depth, i = 0, 1
            while i < len(head):
                depth += (head[i] == "<") - (head[i] == ">")
                if depth == 0:
                    break
                i += 1
            for part in split(head[2:i], angles=True):
                part = part[:part.index("=")] if "=" in part else part
                if part and part[-1].is_name:
                    names.add(str(part[-1]))
            head = head[i + 1:]
            if head and head[0] == "requires":
                head = head[1:]
                while head and head[0] == "(":
                    head = head[closing(head, 0) + 1:]
        return head, names

    def kind(self, head):
        rest, _ = self.strip_template(head)
        if rest and rest[0] == "inline" and len(rest) > 1 and rest[1] == "namespace":
            rest = rest[1:]
        if "namespace" in rest[:1] or rest[:1] == ["extern"]:
            return "namespace"
        opened = self.opening(rest)
        if rest and rest[0] in ("class", "struct", "union", "enum", "concept", "typedef") and opened is None:
            return "skip" if rest[0] in ("enum", "concept") or "=" in rest else "class"
        if opened is None or "=" in rest[:opened]:
            return "skip"
        after = rest[closing(rest, opened) + 1:]
        if ":" in after:  # initialisers: the brace behind a name is a member's
            return "skip" if rest[-1].is_name or rest[-1] == ">" else "function"
        return "skip" if "=" in after else "function"

    @staticmethod
    def opening(head):
        """Index of the bracket that opens the parameters, or None."""
        angle = 0
        for i, t in enumerate(head):
            if t == "operator" and head[i + 1:i + 3] == ["(", ")"]:
                return i + 3
            if t == "<" and i and head[i - 1] != "operator":
                angle += 1
            if t == ">" and angle:
                angle -= 1
            if t == "(" and angle == 0 and i and (head[i - 1].is_name or head[i - 2:i - 1] == ["operator"] or
                                                  head[i - 3:i - 2] == ["operator"]):
                if head[i - 1] in ("alignas", "decltype", "__attribute__", "noexcept", "explicit", "__launch_bounds__"):
                    continue
                return i
        return None

    def class_head(self, head):
        rest, _ = self.strip_template(head)
        colon = next((i for i, t in enumerate(rest) if t == ":"), len(rest))
        name = str([t for t in rest[1:colon] if t.is_name and t != "final"][-1]) if colon > 1 else "?"
        if "<" in rest[:colon]:
            name = str(rest[1])
        self.classes[name] = [str(t) for t in rest[colon + 1:] if t.is_name]
        return name

    def declaration(self, head, owners):
        rest, _ = self.strip_template(head)
        opened = self.opening(rest) if rest and rest[0] not in ("using", "typedef", "friend") else None
        equals = rest.index("=") if "=" in rest else len(rest)
        pointer = next((i for i in range(len(rest) - 3) if rest[i:i + 2] == ["(", "*"] and rest[i + 3] == ")"), None)
        if owners and pointer is not None:
            inside = rest[pointer + 4:]
            self.members.append(("::".join(owners), str(rest[pointer + 2]), len(parameters_of(inside[1:-1]))))
        elif opened is not None and opened < equals:
            name, _ = self.function_name(rest, opened, owners)
            self.declared.append((name, parameters_of(rest[opened + 1:closing(rest, opened)]), rest[0].line,
                                  "virtual" in rest or "override" in rest))
        elif owners and self.callables & set(rest[:equals]) and rest[0] != "using" and rest[equals - 1].is_name:
            inside = rest[rest.index("("):] if "(" in rest[:equals] else []
            parameters = parameters_of(inside[1:closing(inside, 0)]) if inside else []
            self.members.append(("::".join(owners), str(rest[equals - 1]), len(parameters) if inside else None))
        if equals < len(rest) and "[" in rest[equals:]:  # a member that begins as a lambda
            f = Function(self.path, "::".join(owners + ["(initial)"]))
            f.begin = f.end = rest[0].line
            f.body = self.lift(rest[equals - 1:], f)
            self.functions.append(f)

    @staticmethod
    def function_name(rest, opened, owners):
        i = opened - 1
        if "operator" in rest[max(0, opened - 4):opened]:
            i = opened - 1 - rest[:opened][::-1].index("operator")
            name = "".join(rest[i:opened])
        else:
            name = str(rest[i])
            if i and rest[i - 1] == "~":
                name, i = "~" + name, i - 1
        given = []
        while i >= 2 and rest[i - 1] == "::":
            i -= 2
            if rest[i] == ">":
                while i and rest[i] != "<":
                    i -= 1
                i -= 1
            given.insert(0, str(rest[i]))
        return "::".join(owners + [g for g in given if g not in ("lockstep", "std")] + [name]), i

    def define(self, head, body, owners, template):
        rest, own = self.strip_template(head)
        opened = self.opening(rest)
        name, _ = self.function_name(rest, opened, owners)
        end = closing(rest, opened)
        f = Function(self.path, name)
        f.template, f.parameters = template | own, parameters_of(rest[opened + 1:end])
        f.begin, f.end = head[0].line, body[-1].line
        f.virtual = "virtual" in rest or "override" in rest
        self.declared.append((name, f.parameters, rest[0].line, f.virtual))
        self.functions.append(f)
        f.initialisers = self.lift(rest[end + 1:], f)
        f.body = self.lift(body, f)

    def lift(self, tokens, f):
        """`tokens` with every lambda replaced by one token, and the lambdas as functions."""
        out, i = [], 0
        while i < len(tokens):
            t = tokens[i]
            before = out[-1] if out else Token(";")
            if t == "[" and not (before.is_name and before != "return" or before in (")", "]") or before == "operator"):
                close = closing(tokens, i)
                j = close + 1
                template = set()
                if j < len(tokens) and tokens[j] == "<":
                    stop = next(k for k in range(j, len(tokens)) if tokens[k] == ">")
                    template = {str(p[-1]) for p in split(tokens[j + 1:stop], angles=True)}
                    j = stop + 1
                parameters = []
                if j < len(tokens) and tokens[j] == "(":
                    stop = closing(tokens, j)
                    parameters = parameters_of(tokens[j + 1:stop])
                    j = stop + 1
                while j < len(tokens) and tokens[j] not in ("{", ";", ",", ")"):
                    j += 1
                if j < len(tokens) and tokens[j] == "{":
                    stop = closing(tokens, j)
                    inner = Function(self.path, f"{f.name}::[lambda {len(f.lambdas) + 1}]", f)
                    inner.parameters, inner.template = parameters, template
                    inner.begin, inner.end = t.line, tokens[stop].line
                    for part in split(tokens[i + 1:close]):
                        if "=" in part and len(part) > 2:
                            inner.captures[str(part[0])] = self.lift(part[2:], f)
                    self.functions.append(inner)
                    inner.body = self.lift(tokens[j:stop + 1], inner)
                    mark = Token(f"lambda{len(f.lambdas)}")
                    mark.line = t.line
                    f.lambdas[str(mark)] = inner
                    out.append(mark)
                    i = stop + 1
                    continue
            out.append(t)
            i += 1
        return out


def read_tree(root, folders):
    """{path from the root: text} of the C++ sources."""
    root = Path(root)
    return {p.relative_to(root).as_posix(): p.read_text()
            for folder in folders for p in sorted((root / folder).rglob("*")) if p.suffix in ENDINGS}


def parse(tree):
    return {path: Source(path, text) for path, text in tree.items()}
