#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls that climb from a room of host/ into a higher one, of all that a command runs.

    climbs.py [--root FOLDER] [--limit N] [--self-check] ROOT..      ROOT: sample, evidence

Rooms, from the ground up: targets/ and kernels/ (one floor), then util, formats, estimators, options, engines, modes,
runs, paths, commands, studies, cli. Includes run down, so a call can climb in three ways alone, and these are what is counted:
  - a lambda, function or std::function that was made in a higher room and is called in a lower one: as an argument,
    through a member, or returned;
  - a virtual function overridden in a higher room;
  - a method of a template parameter's type, where a class of a higher room has one of that name.
The call graph is read from the sources: by names, as far as includes make them visible, with values followed through
arguments, members and returns. Where names leave several functions, all are taken: the count is never too small for
that. What is reached from ROOT counts, and what reaches it from main; each pair of caller and callee once.

Not counted: fields(archive), where it does nothing but list members. That is a type's description, not a call.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

from sources import NO_CALL, PAIR, Function, closing, parse, read_tree, split

ROOMS = ["util", "formats", "estimators", "options", "engines", "modes", "runs", "paths", "commands", "studies", "cli"]
WRAPPERS = {"move", "forward", "ref", "cref", "make_shared", "make_unique"}


def room_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "host" and len(parts) > 2 else parts[0]


def floor_of(path):
    room = room_of(path)
    return ROOMS.index(room) if room in ROOMS else -1


class Call:
    """`name(arguments)` in a body: with a receiver (tokens) for methods, `made` for a variable of a class."""

    def __init__(self, name, receiver, qualifier, arguments, named):
        self.name, self.receiver, self.qualifier, self.arguments, self.named = name, receiver, qualifier, arguments, named


def calls_in(tokens):
    for i, t in enumerate(tokens):
        if tokens[i:i + 2] == ["(", "*"] and tokens[i + 3:i + 5] == [")", "("]:  # (*name)(arguments)
            arguments = split(tokens[i + 5:closing(tokens, i + 4)])
            yield Call(str(tokens[i + 2]), None, None, arguments, str(tokens[i + 2]))
        if not t.is_name or t in NO_CALL or i + 1 >= len(tokens):
            continue
        j = i + 1
        inside = []
        if tokens[j] == "<":  # template arguments
            k = j + 1
            depth = 1
            while k < len(tokens) and depth and (tokens[k].is_name or tokens[k] in ("::", ",", "*", "&", "<", ">", "(", ")")):
                depth += (tokens[k] == "<") - (tokens[k] == ">")
                k += 1
            if depth == 0 and k < len(tokens) and tokens[k] in ("(", "{"):
                inside, j = tokens[j + 1:k - 1], k
        if j >= len(tokens) or tokens[j] not in ("(", "{"):
            continue
        before = tokens[i - 1] if i else ";"
        if tokens[j] == "{" and (before in (")", "else", "do") or not t[0].isupper() and before not in (".", ",")
                                 and not (i and tokens[i - 1].is_name)):
            continue
        arguments = split(tokens[j + 1:closing(tokens, j)])
        receiver, qualifier, k = None, None, i
        if before in (".", "->"):
            k = i - 1
            while k > 0 and tokens[k] in (".", "->", "::"):
                k -= 1
                while k > 0 and tokens[k] in (")", "]"):  # back to what is called or indexed
                    depth = 0
                    while k >= 0:
                        depth += (tokens[k] in PAIR.values()) - (tokens[k] in PAIR)
                        k -= 1
                        if depth == 0:
                            break
                k -= tokens[k].is_name
            k += 1
            receiver = tokens[k:i - 1]
        elif before == "::" and i > 1:
            qualifier = str(tokens[i - 2])
        names = [str(t)]
        if receiver is None and qualifier is None and i and tokens[i - 1].is_name and tokens[i - 1] not in NO_CALL \
                and tokens[i - 1] not in ("return", "const", "auto"):
            names = [str(tokens[i - 1])]  # a variable of that class
        elif t in ("make_unique", "make_shared", "optional", "emplace") and inside:
            names = [str(x) for x in inside if x.is_name and x[0].isupper()][:1] or names
            qualifier = None
        yield Call(names[0], receiver, qualifier, arguments, str(t))


class Graph:
    def __init__(self, tree, target=None):
        self.target = target
        self.sources = parse(tree)
        self.functions = [f for s in self.sources.values() for f in s.functions]
        self.by_name = defaultdict(list)
        for f in self.functions:
            if f.outer is None:
                self.by_name[f.short].append(f)
        self.classes = {}
        for s in self.sources.values():
            self.classes.update(s.classes)
        self.members = defaultdict(list)  # name -> (class, number of parameters, file)
        for s in self.sources.values():
            for owner, name, count in s.members:
                self.members[name].append((owner, count, s.path))
        self.types = defaultdict(set)  # of a variable's or a member's name: the classes it is declared with
        for s in self.sources.values():
            for name, kind in s.types:
                if kind in self.classes:
                    self.types[name].add(kind)
        self.virtual = {name for s in self.sources.values() for name, _, _, virtual in s.declared if virtual}
        self.closures = {}
        self.where = defaultdict(set)  # qualified name -> files that declare it
        for path, s in self.sources.items():
            for name, _, _, _ in s.declared:
                self.where[name].add(path)
        self.locals = {}
        self.values = defaultdict(set)  # ("p", function, parameter), ("f", class, member), ("r", function) -> functions
        self.calls = {f: list(calls_in(f.body)) + self.initialising(f) for f in self.functions}
        self.visible_cache = {}
        self.flow()
        self.link()

    def initialising(self, f):
        """The calls and members in the initialisers of a constructor."""
        return list(calls_in(f.initialisers))

    def closure(self, path):
        if path not in self.closures:
            seen, todo = set(), [path]
            while todo:
                p = todo.pop()
                if p in seen or p not in self.sources:
                    continue
                seen.add(p)
                todo += self.sources[p].includes
            self.closures[path] = seen
        return self.closures[path]

    def named(self, path, name):
        """Functions of that name which a file sees."""
        key = (path, name)
        if key not in self.visible_cache:
            closure = self.closure(path)
            declared = lambda f: self.where[f.name] & closure & self.closure(f.path)
            found = [f for f in self.by_name.get(name, []) if f.path in closure or declared(f)]
            # The file that belongs to the header, and not another's own function of that name.
            sure = {f.name for f in found if f.path in closure or self.belongs(f) & declared(f)}
            found = [f for f in found if f.name not in sure or f.path in closure or self.belongs(f) & declared(f)]
            if name in self.classes:
                found = [f for f in found if f.owner.split("::")[-1] == name]
            self.visible_cache[key] = found
        return self.visible_cache[key]

    def belongs(self, f):
        return set(self.sources[f.path].includes[:1])

    def heirs(self, base):
        return {c for c, bases in self.classes.items() if base in bases} | \
               {d for c, bases in self.classes.items() if base in bases for d in self.heirs(c)}

    # --- which functions a value may be --------------------------------------------------------------------

    def parameter(self, f, name):
        for g in f.around():
            if name in g.captures:
                return ("c", g, name)
            if any(name == p for p, _ in g.parameters):
                return ("p", g, name)
        return None

    def local(self, f, name):
        """The tokens that a local variable of f, or of what it stands in, begins with; or None."""
        for g in f.around():
            if g not in self.locals:
                found = {}
                for i, t in enumerate(g.body):
                    if t == "=" and i > 1 and g.body[i - 1].is_name and g.body[i - 2] in ("auto", "&", ">", "&&"):
                        end = i
                        while end < len(g.body) and g.body[end] != ";":
                            end = closing(g.body, end) + 1 if g.body[end] in PAIR else end + 1
                        found[str(g.body[i - 1])] = g.body[i + 1:end]
                self.locals[g] = found
            if name in self.locals[g]:
                return self.locals[g][name], g
        return None

    def class_of(self, f, name):
        """Of an object, where it is a variable or a parameter of a class that the sources define."""
        for g in f.around():
            if name == "this":
                return {g.owner.split("::[")[0].split("::")[-1]} & set(self.classes)
            for p, kind in g.parameters:
                if p == name:
                    return set([k for k in kind if k in self.classes][:1])
            for i, t in enumerate(g.body):
                if t == name and i and g.body[i - 1] in self.classes:
                    return {str(g.body[i - 1])}
            if found := self.local(g, name):  # auto name = std::make_shared<Class>(..)
                return {str(t) for t in found[0][:6] if t in self.classes}
        return set()

    def evaluate(self, tokens, f, seen=()):
        out = set()
        i = 0
        while i < len(tokens):
            t = tokens[i]
            lambdas = [g.lambdas[t] for g in f.around() if t in g.lambdas][:1]
            called = i + 1 < len(tokens) and tokens[i + 1] == "("
            if lambdas and i + 1 < len(tokens) and tokens[i + 1] == "(":
                i = closing(tokens, i + 1)  # called at once
            elif lambdas:
                out |= set(lambdas)
            elif t.is_name and called and t not in WRAPPERS:
                if not (i and tokens[i - 1] in (".", "->")):
                    for g in self.named(f.path, t):
                        out |= self.values[("r", g)]
                i = closing(tokens, i + 1)
            elif t.is_name and t not in seen:
                node = self.parameter(f, t)
                member = i and tokens[i - 1] in (".", "->")
                if not member and (i + 1 == len(tokens) or tokens[i + 1] in (",", ")", "}")):
                    out |= self.class_of(f, t)
                if node and not member:
                    if node[0] == "c":
                        out |= self.evaluate(node[1].captures[t], node[1].outer or f, seen + (t,))
                    else:
                        out |= self.values[node]
                elif not member and (found := self.local(f, t)):
                    out |= self.evaluate(found[0], found[1], seen + (t,))
                elif t in self.members:
                    out |= self.held(f, t)
                elif not member and t not in self.classes:
                    out |= {g for g in self.named(f.path, t) if not g.owner}
            i += 1
        return out

    def held(self, f, member):
        """What the members of that name may hold, of classes that f sees."""
        return {v for owner, _, path in self.members[member] if path in self.closure(f.path)
                for v in self.values[("f", owner, str(member))]}

    def hold(self, f, member, found):
        for owner, _, path in self.members[member]:
            if path in self.closure(f.path):
                self.add(("f", owner, str(member)), found)

    def add(self, node, found):
        if not found <= self.values[node]:
            self.values[node] |= found
            self.changed = True

    def flow(self):
        """To arguments, members and returns, until nothing changes."""
        self.changed = True
        while self.changed:
            self.changed = False
            for f in self.functions:
                for c in self.calls[f]:
                    self.flow_into(f, c)
                self.flow_members(f, f.body)
                for i, t in enumerate(f.body):
                    if t == "return":
                        end = i
                        while end < len(f.body) and f.body[end] != ";":
                            end = closing(f.body, end) + 1 if f.body[end] in PAIR else end + 1
                        self.add(("r", f), self.evaluate(f.body[i + 1:end], f))

    def flow_into(self, f, c):
        if c.named in self.members and c.receiver is None:  # an initialiser
            self.hold(f, c.named, {v for a in c.arguments for v in self.evaluate(a, f)})
        targets = self.targets(f, c)
        for k, argument in enumerate(c.arguments):
            found = self.evaluate(argument, f)
            if not found:
                continue
            braced = "{" in argument or c.name in self.classes and not targets
            for g in targets:
                if g.parameters:
                    self.add(("p", g, g.parameters[min(k, len(g.parameters) - 1)][0]), found)
            if braced:  # a member of some struct
                self.to_members(f, found, targets, c.name)

    def to_members(self, f, found, targets, name):
        """Of structs that f, or a parameter it is given to, names."""
        said = {t for g in f.around() for t in g.body} | {k for g in targets for _, kind in g.parameters for k in kind}
        for member, places in self.members.items():
            for owner, count, path in places:
                fit = {v for v in found if isinstance(v, Function) and (count is None or len(v.parameters) == count)}
                if path in self.closure(f.path) and owner.split("::")[-1] in said | {name}:
                    self.add(("f", owner, member), fit)

    def flow_members(self, f, tokens):
        for i, t in enumerate(tokens):
            if t == "=" and i and tokens[i - 1] in self.members:
                end = i
                while end < len(tokens) and tokens[end] not in (";", ",", "}", ")"):
                    end = closing(tokens, end) + 1 if tokens[end] in PAIR else end + 1
                self.hold(f, tokens[i - 1], self.evaluate(tokens[i + 1:end], f))

    # --- calls ---------------------------------------------------------------------------------------------

    def targets(self, f, c):
        """Functions that a call by name may mean."""
        found = self.named(f.path, c.name)
        if c.receiver is not None:
            return [g for g in found if g.owner]
        if c.qualifier:
            return [g for g in found if g.owner.split("::")[-1] == c.qualifier or not g.owner]
        owner = f.owner.split("::[")[0]
        return [g for g in found if not g.owner or c.name in self.classes or owner.startswith(g.owner)
                or g.owner.split("::")[-1] in self.classes.get(owner.split("::")[-1], [])]

    def link(self):
        self.edges = {f: set(f.lambdas.values()) for f in self.functions}
        methods = defaultdict(list)
        for f in self.functions:
            if f.owner and f.outer is None:
                methods[f.short].append(f)
        for f in self.functions:
            for c in self.calls[f]:
                self.edges[f] |= set(self.targets(f, c))
                if c.receiver is not None and c.name in {v.split("::")[-1] for v in self.virtual_names(f, c.name)}:
                    bases = {v.split("::")[-2] for v in self.virtual_names(f, c.name)}
                    heirs = {h for b in bases for h in self.heirs(b)}
                    of_receiver = self.types[str(c.receiver[-1])] if c.receiver else set()
                    if of_receiver and not of_receiver & (bases | heirs):
                        continue  # a method of that name of classes that have no virtual one
                    self.edges[f] |= {g for g in methods[c.name] if g.owner.split("::")[-1] in heirs
                                      and len(g.parameters) == len(c.arguments)}
                if c.receiver is None:
                    node = self.parameter(f, c.named)
                    if node and node[0] == "p":
                        self.edges[f] |= self.values[node]
                    elif node:
                        self.edges[f] |= self.evaluate(node[1].captures[c.named], node[1].outer or f)
                    elif found := self.local(f, c.named):
                        self.edges[f] |= self.evaluate(found[0], found[1])
                    elif c.named in self.members:
                        self.edges[f] |= self.held(f, c.named)
                elif c.name in self.members:
                    self.edges[f] |= self.held(f, c.name)
                if c.receiver is None:  # an object that is called
                    kinds = self.class_of(f, c.named)
                    self.edges[f] |= {g for g in methods["operator()"] if g.owner.split("::")[-1] in kinds}
                if c.qualifier and c.qualifier in f.template:
                    self.edges[f] |= {g for g in methods[c.name] if self.target in (None, Path(g.path).stem)}
                if c.receiver and len(c.receiver) == 1 and floor_of(f.path) >= 0 and \
                        (node := self.template_parameter(f, c.receiver[0])):
                    kinds = {k for k in self.values[node] if isinstance(k, str)}
                    kinds |= {b for k in kinds for b in self.classes[k]}
                    self.edges[f] |= {g for g in methods[c.name] if not self.lists_fields(g)
                                      and (g.owner.split("::")[-1] in kinds or
                                           # of any class: runs saves its own, and those of the rooms below
                                           c.name == "fields" and floor_of(g.path) > ROOMS.index("runs"))}
        for f, called in self.edges.items():
            self.edges[f] = {g for g in called if isinstance(g, Function)}

    def virtual_names(self, f, name):
        closure = self.closure(f.path)
        return {v for v in self.virtual if v.endswith("::" + name) and self.where[v] & closure}

    @staticmethod
    def template_parameter(f, name):
        for g in f.around():
            for p, kind in g.parameters:
                if p == name and ("auto" in kind or any(k in h.template for k in kind for h in f.around())):
                    return ("p", g, p)
        return None

    def lists_fields(self, g):
        """Whether it is fields(archive) that lists members and calls no other function of the sources."""
        if g.short not in ("fields", "head", "tail") or g.lambdas:
            return False
        archive = g.parameters[0][0] if g.parameters else ""
        return all(c.named in (archive, "fields", "head", "tail") or c.receiver == [archive] or not self.targets(g, c)
                   for c in calls_in(g.body))

    # --- what is asked --------------------------------------------------------------------------------------

    def reached(self, start, edges):
        """Functions there is a way to. A lambda is there when what it stands in is: its callers may have others."""
        seen, todo = set(), list(start)
        while todo:
            f = todo.pop()
            if f not in seen:
                seen.add(f)
                todo += [g for g in edges[f] if g.outer is None or g.outer is f or edges is not self.edges]
        return seen

    def climbs(self, root):
        """Pairs of caller and callee, where a call climbs, of what `root` runs and what runs it from main."""
        starts = [f for f in self.by_name[root] if not f.owner and floor_of(f.path) >= 0]
        if not starts:
            raise SystemExit(f"no function {root} in host/")
        backwards = defaultdict(set)
        for f, called in self.edges.items():
            for g in called:
                backwards[g].add(f)
        below = self.reached(starts, self.edges)
        above = self.reached(starts, backwards) & self.reached(self.by_name["main"] or starts, self.edges)
        return sorted({(f, g) for f in below | above for g in self.edges[f]
                       if (f in below and g in below or f in above and g in above)
                       and floor_of(g.path) > floor_of(f.path)},
                      key=lambda pair: (floor_of(pair[0].path), str(pair)))


def named(f):
    return f"{room_of(f.path)}/{f.name} ({f.path}:{f.begin})"


PLANTED = {
    "host/cli/main.cpp": '#include "host/commands/sample.hpp"\nint main() { return sample(1); }\n',
    "host/commands/sample.hpp": '#include "host/runs/loop.hpp"\nint sample(int run);\n',
    "host/commands/sample.cpp": '#include "host/commands/sample.hpp"\n'
                                "int sample(int run) { Loop loop; return loop.go(run); }\n"
                                "int unused() { return each(3, [](int i) { return i; }); }\n",
    "host/runs/loop.hpp": "struct Hook { virtual int at(int i) { return i; } };\n"
                          "struct Loop { int go(int n) { return n; } std::function<int(int)> seen; };\n"
                          "template <class F> int each(int n, F&& f) { return f(n); }\n"
                          "template <class R> int recorded(R& recorder) { return recorder.record(1); }\n"
                          "inline int passed(const std::function<int(int)>& g) { return each(2, g); }\n"
                          "inline int told(const Loop& loop) { return loop.seen(1); }\n"
                          "inline int hooked(Hook& hook) { return hook.at(1); }\n",
}
SAMPLE = "host/commands/sample.cpp"
PLANTS = {  # what sample() does -> who climbs
    "return each(run, [&](int i) { return i + run; });": ["each"],
    "const auto f = [&](int i) { return i; };\n  return passed(f);": ["each"],
    "Loop loop;\n  loop.seen = [](int i) { return i; };\n  return told(loop);": ["told"],
    "Mine mine;\n  return hooked(mine);": ["hooked"],
    "Recorder r;\n  return recorded(r);": ["recorded"],
    "return each(run, twice);": ["each"],
    "return each(run, made());": ["each"],
    "Loop loop;\n  return loop.go(run);": [],
    "std::sort(a, b, [](int i, int j) { return i < j; });\n  return run;": [],
}


def self_check():
    """Planted climbs are found, each kind of them, and none where there is none."""
    for body, callers in PLANTS.items():
        tree = dict(PLANTED)
        tree[SAMPLE] = ('#include "host/commands/sample.hpp"\n'
                        "struct Mine : Hook { int at(int i) override { return 2 * i; } };\n"
                        "struct Recorder { int record(int i) { return i; } };\n"
                        "int twice(int i) { return 2 * i; }\n"
                        "std::function<int(int)> made() { return [](int i) { return i; }; }\n"
                        f"int sample(int run) {{\n  {body}\n}}\n")
        found = [f.short for f, _ in Graph(tree).climbs("sample")]
        if found != callers:
            raise SystemExit(f"self-check: {body!r}: {found} climb, not {callers}")
    if Graph(PLANTED).climbs("sample"):
        raise SystemExit("self-check: what sample() does not reach is counted")
    print(f"self-check: {len(PLANTS)} planted trees")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2], help="of the source tree")
    parser.add_argument("--target", default="mixture20",
                        help="the target that is run: each asks for its own settings and data (default %(default)s)")
    parser.add_argument("--limit", type=int, help="fails where more calls climb")
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("functions", nargs="*", metavar="ROOT")
    args = parser.parse_args()
    if args.self_check:
        self_check()
    if not args.functions:
        return 0
    graph = Graph(read_tree(args.root, ["host", "targets", "kernels"]), args.target)
    status = 0
    for root in args.functions:
        found = graph.climbs(root)
        for caller, callee in found:
            print(f"{named(caller)}\n    -> {named(callee)}")
        print(f"{root}: {len(found)} calls climb")
        status |= args.limit is not None and len(found) > args.limit
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
