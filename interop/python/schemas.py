"""Trust schemas: what python-ndn's compiler and checker of Light VerSec say of generated schemas, names and keys.

Usage: schemas.py golden SEED SCHEMAS FILE    writes the verdicts that crates/apps/tests/schemas compares with
       schemas.py live SEED TRIPLES COMMAND…  asks COMMAND the same over its standard input and output, and checks that python-ndn
                                              reads what it compiled, and that it reads what python-ndn compiled
       schemas.py check SEED TRIPLES COMMAND… asks COMMAND for verdicts alone, of schemas without functions
"""

import json
import random
import subprocess
import sys

import lark
from ndn.app_support.light_versec import DEFAULT_USER_FNS, Checker, SemanticError, compile_lvs
from ndn.app_support.light_versec.binary import LvsModel
from ndn.app_support.light_versec.checker import LvsModelError
from ndn.encoding import Component, Name

WORDS = ["a", "b", "c", "KEY", "v=3", "v=7", "32=roster", "8=%00", "", "..."]
PATTERNS = ["x", "y", "z", "_", "_t"]
# Names, triples and schemas of one line of the exchange.
TRIPLES_PER_SCHEMA = 20


class Schemas:
    """Makes schemas, some of them wrong."""

    def __init__(self, seed, has_functions=True):
        self.random = random.Random(seed)
        self.has_functions = has_functions

    def word(self):
        return '"' + self.random.choice(WORDS) + '"'

    def name(self, known):
        parts = []
        for _ in range(self.random.randint(1, 4)):
            kind = self.random.random()
            if kind < 0.4:
                parts.append(self.word())
            elif kind < 0.8 or not known:
                parts.append(self.random.choice(PATTERNS))
            else:
                parts.append(self.random.choice(known))
        return self.random.choice(["", "", "/"]) + "/".join(parts)

    def operand(self):
        return self.word() if self.random.random() < 0.7 else self.random.choice(PATTERNS[:3])

    def option(self):
        if not self.has_functions or self.random.random() < 0.8:
            return self.operand()
        arguments = ", ".join(self.operand() for _ in range(self.random.randint(0, 2)))
        return self.random.choice(["$eq", "$eq_type"]) + f"({arguments})"

    def terms(self, name):
        """Mostly of patterns that the name has."""
        own = [part for part in name.split("/") if part in PATTERNS] or PATTERNS
        patterns = own if self.random.random() < 0.95 else PATTERNS

        def term():
            options = "|".join(self.option() for _ in range(self.random.randint(1, 3)))
            return f"{self.random.choice(patterns)}: {options}"

        return "{" + ", ".join(term() for _ in range(self.random.randint(1, 2))) + "}"

    def rule(self, number, known):
        """A definition, which refers to earlier rules; now and then to itself or to none."""
        rule = f"#r{number}" if self.random.random() < 0.85 else self.random.choice(["#_", "#_s", "#r0", f"#r{number}"])
        others = [other for other in known if other != rule] if self.random.random() < 0.98 else [rule, "#_", "#none"]
        name = self.name(others)
        text = f"{rule}: {name}"
        if self.random.random() < 0.4:
            text += " & " + " | ".join(self.terms(name) for _ in range(self.random.randint(1, 2)))
        if others and self.random.random() < 0.8:
            text += " <= " + " | ".join(self.random.choice(others) for _ in range(self.random.randint(1, 2)))
        return rule, text + self.random.choice(["\n", "\n", " // a comment\n"])

    def schema(self):
        known, lines = [], []
        for number in range(self.random.randint(2, 7)):
            rule, line = self.rule(number, known)
            if not rule.startswith("#_") and rule not in known:
                known.append(rule)
            lines.append(line)
        self.random.shuffle(lines)
        return "".join(lines)


class Names:
    """Makes names that a model matches, and others."""

    def __init__(self, generator, model):
        self.random = generator
        self.model = model

    def value(self, edge, context):
        options = [option for constraint in edge.cons_sets for option in constraint.options]
        values = [bytes(option.value) for option in options if option.value is not None]
        values += [context[option.tag] for option in options if option.tag in context]
        if values and self.random.random() < 0.8:
            return self.random.choice(values)
        return bytes(Component.from_str(self.random.choice(WORDS)))

    def ending_at(self, node_id, context):
        edges = []
        while node_id != self.model.start_id:
            parent = self.model.nodes[self.model.nodes[node_id].parent]
            [edge] = [edge for edge in parent.v_edges + parent.p_edges if edge.dest == node_id]
            edges.append(edge)
            node_id = parent.id
        name = []
        for edge in reversed(edges):
            if hasattr(edge, "value"):
                name.append(bytes(edge.value))
                continue
            value = context.get(edge.tag) or self.value(edge, context)
            if edge.tag <= self.model.named_pattern_cnt:
                context[edge.tag] = value
            name.append(value)
        return name

    def changed(self, name):
        name = list(name)
        kind = self.random.random()
        word = bytes(Component.from_str(self.random.choice(WORDS)))
        if kind < 0.6:
            name[self.random.randrange(len(name))] = word
        elif kind < 0.8:
            name.append(word)
        elif len(name) > 1:
            name.pop()
        return name

    def pair(self):
        signed = [node for node in self.model.nodes if node.sign_cons]
        if not signed:
            return None
        node, context = self.random.choice(signed), {}
        packet = self.ending_at(node.id, context)
        key = self.ending_at(self.random.choice(node.sign_cons), context)
        if self.random.random() < 0.25:
            packet = self.changed(packet)
        if self.random.random() < 0.25:
            key = self.changed(key)
        if self.random.random() < 0.1:
            packet.append(Component.from_bytes(bytes(32), Component.TYPE_IMPLICIT_SHA256))
        return [bytes(Name.to_bytes(name)).hex() for name in (packet, key)]


def judged(schemas):
    """A schema with its model and verdicts; without, if python-ndn refuses it."""
    source = schemas.schema()
    try:
        model = compile_lvs(source)
        octets = bytes(model.encode())
        checker = Checker(LvsModel.parse(octets), DEFAULT_USER_FNS)
    except (SemanticError, LvsModelError, lark.exceptions.LarkError):
        return {"source": source}
    names, checks = Names(schemas.random, checker.model), []
    for _ in range(TRIPLES_PER_SCHEMA):
        pair = names.pair()
        if pair is None:
            break
        try:
            checks.append(pair + [checker.check(*(Name.from_bytes(bytes.fromhex(name)) for name in pair))])
        except TypeError:
            # A function of a pattern without a value: python-ndn fails, ours says no.
            continue
    return {"source": source, "model": octets.hex(), "checks": checks}


def golden(seed, count, path):
    schemas = Schemas(seed)
    with open(path, "w") as file:
        for _ in range(count):
            file.write(json.dumps(judged(schemas), separators=(",", ":")) + "\n")


def live(seed, count, command, compiles):
    schemas = Schemas(seed, has_functions=compiles)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    triples = allowed = refused = 0
    while triples < count:
        line = judged(schemas)
        print(json.dumps(line), file=process.stdin, flush=True)
        answer = json.loads(process.stdout.readline())
        assert not compiles or answer.get("model") == line.get("model"), (line, answer)
        if "model" not in line:
            refused += 1
            continue
        verdicts = [verdict for _, _, verdict in line["checks"]]
        assert answer["verdicts"] == verdicts, (line, answer)
        theirs = Checker(LvsModel.parse(bytes.fromhex(answer["model"])), DEFAULT_USER_FNS)
        for packet, key, verdict in line["checks"]:
            names = (Name.from_bytes(bytes.fromhex(name)) for name in (packet, key))
            assert theirs.check(*names) == verdict, (line, packet, key)
        triples += len(verdicts)
        allowed += sum(verdicts)
    process.stdin.close()
    assert process.wait() == 0
    both = f"; both refuse {refused} schemas" if compiles else ""
    peer = "namecast" if compiles else "ndnd"
    print(f"ok  {peer} and python-ndn: {triples} verdicts of schemas are the same, {allowed} of them yes{both}")


if __name__ == "__main__":
    if sys.argv[1] == "golden":
        golden(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    else:
        live(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:], compiles=sys.argv[1] == "live")
