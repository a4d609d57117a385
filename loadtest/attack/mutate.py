"""Bad values, and good documents made bad: of JSON by a schema, of lines, of words."""

import copy
import json

NUMBERS = [
    0, -1, 1, 1.5, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40, -(2**63), -(10**30),
    1e308, 1e-308,
]
WORDS = [
    "", " ", "\t", "\n", "a\nb", "\x7f", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\u202egnp", "\ufeff", "é", "🙂" * 300, "a" * 64,
    "a" * 256, "a" * 1025, "a" * 5000, "-",
    "--", "--help", "-rf", "-1", "0", "00", "1", "7", "1_1", "1_0-9", "1.0", "1+1", "0_0", "1_4294967296", "9" * 20, "9" * 300, "1e5",
    "0x10", "+3", "NaN", "inf", "-inf", "1,2,,3",
    ",", ":", "::", "1:2:3:4", "1-", "-1-5", "5-1", "0-4294967295", "0-99999999%0", "1-5:0", "0-9:18446744073709551615", "node[1-",
    "node[1-999999999]", "node[]", "node[2-1]",
    "node1", "node1,node1", "[1-2]", "null", "true", "false", "none", "all", "ALL", "root", "nobody", "%s%n%x", "%j", "%99999j", "%",
    "$(id)", "`id`", ";id", "|id", "'", '"', "\\",
    "../../tmp/odd", "/", "//", "/dev/null", "/dev/full", "/proc/self/mem", ".", "..", "2026-13-45T99:99:99Z",
    "9999-12-31T23:59:59.999999Z", "0000-01-01T00:00:00Z",
    "1969-12-31T23:59:59Z", "+292277026596-12-04T15:30:08Z", "2026-11-20T08:30:00Z", "2026-02-30", "24:61", "now", "now+", "+99999999999h",
    "-10m", "1000000000000 years ago",
    "UNLIMITED", "0:0:0", "-1:30", "99999999999:00", "106751991168-00:00:00", "1T", "99999999999999P", "0G", "-1G", "1.5.5G",
    "9" * 19 + "G", "1" * 400 + "M", "gpu:-1", "gpu:99999999999",
    "a100:", ":2", "x=y", "=", "=x", "x=", "a=b=c", "mem>=", "((((", "!" * 300, "a&", "gpu & !", "(" * 500 + "a" + ")" * 500, "ok:", "ok:0",
    "ok:1+", "singleton", "ok:1?", "same-index:1",
    "SIGKILL", "USR1@", "USR1@-1", "KILL@99999999999", "65", "0", "-9", "exec:", "mail:", "exec:\x01", "mail:--exec=id@x", "@", "a@b",
    "fcfs", "./x", "queue_priority",
    "{\"a\":1}", "[1]", "<a/>", "&#0;", "&lt;", "\\u0000", "\\xff", "job.1.1." + "0" * 64,
]
RAW_WORDS = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\x80b", b"\xc0\xaf"]
CONTAINERS = [None, True, False, [], {}, [[]], {"": ""}, [None] * 1000, {"a": {"a": {"a": []}}}, [[[[[[[[]]]]]]]],
    {str(n): n for n in range(300)}]


def words(choices):
    """One odd word."""
    word = choices.choice(WORDS)
    return word + choices.choice(WORDS)[:20] if choices.random() < 0.1 else word


def odd(choices):
    """One odd value of JSON."""
    return copy.deepcopy(choices.choice(choices.choice((NUMBERS, WORDS, WORDS, CONTAINERS))))


class Schemas:
    """Values by the schemas of an OpenAPI document. `bases` has whole good values, by the schema's name."""

    def __init__(self, document, choices, bases):
        self.known, self.choices, self.bases = document["components"]["schemas"], choices, bases

    def value(self, schema, depth=0):
        """A value that the schema allows, as far as it says."""
        name = schema.get("$ref", "").rpartition("/")[2]
        if name in self.bases and self.choices.random() < 0.95:
            return copy.deepcopy(self.choices.choice(self.bases[name]))
        if name:
            return self.value(self.known[name], depth + 1)
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self.one_of(schema[several], depth)
        if "allOf" in schema:
            parts = [self.value(part, depth + 1) for part in schema["allOf"]]
            return {key: value for part in parts if isinstance(part, dict) for key, value in part.items()}
        if "enum" in schema:
            return self.choices.choice(schema["enum"])
        return self.plain(schema, depth)

    def one_of(self, several, depth):
        if depth > 8:
            return self.value(min(several, key=lambda one: len(json.dumps(one))), depth + 1)
        return self.value(self.choices.choice(several), depth + 1)

    def plain(self, schema, depth):
        kind = schema.get("type", "string")
        if isinstance(kind, list):
            kind = self.choices.choice(kind)
        if kind == "object":
            return self.object(schema, depth)
        if kind == "array":
            few = 1 if depth > 8 else self.choices.choice((0, 1, 1, 2))
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(max(few, schema.get("minItems", 0)))]
        simple = {"integer": [0, 1, 2, 5, 60, 1000], "number": [0.0, 0.5, 2.0], "boolean": [True, False], "null": [None]}
        return self.choices.choice(simple.get(kind, ["a", "default", "node1", "normal", "fbb", "1"]))

    def object(self, schema, depth):
        required = schema.get("required", [])
        properties = schema.get("properties", {})
        few = 0.1 if depth > 8 else 0.4
        taken = {key: self.value(of, depth + 1) for key, of in properties.items() if key in required or self.choices.random() < few}
        further = schema.get("additionalProperties")
        if isinstance(further, dict) and depth <= 8 and self.choices.random() < 0.5:
            taken[self.choice_of_key()] = self.value(further, depth + 1)
        return taken

    def choice_of_key(self):
        return self.choices.choice(["a", "default", "slurm.x", "hpcpack.y", "normal", ""])


def places(value, path=()):
    """The paths of all values inside a value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def put(value, path, new):
    """The value with another one at a path."""
    if not path:
        return new
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = new
    return value


def take(value, path):
    """The value without what is at a path."""
    if not path:
        return None
    inside = value
    for key in path[:-1]:
        inside = inside[key]
    del inside[path[-1]]
    return value


def like(value, choices):
    """An odd value of the same kind as this one, so that it comes further than one of another kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return choices.choice(NUMBERS)
    if isinstance(value, str):
        return words(choices)
    return odd(choices)


def made_bad(value, choices):
    """One change of a document."""
    path = choices.choice(list(places(value)))
    kind = choices.randrange(10)
    inside = value
    for key in path:
        inside = inside[key]
    if kind < 7:
        return put(value, path, like(inside, choices))
    if kind == 7:
        return put(value, path, odd(choices))
    if kind == 8:
        return take(value, path)
    if isinstance(inside, dict):
        inside[choices.choice(WORDS + ["unknown_field", "__proto__"])] = odd(choices)
        return value
    if isinstance(inside, list):
        return put(value, path, inside * choices.choice((2, 100, 3000)) or [odd(choices)])
    return put(value, path, [inside])


def text_made_bad(text, choices):
    """One change of the bytes of a document."""
    at = choices.randrange(len(text) + 1)
    deep = choices.choice((65, 300, 100_000))
    changes = [
        lambda: text[:at],
        lambda: text[:at] + choices.choice(RAW_WORDS) + text[at:],
        lambda: text[:at] + b"\0" + text[at:],
        lambda: text[:at] + choices.randbytes(8) + text[at + 8:],
        lambda: text + b"{}",
        lambda: b"\xef\xbb\xbf" + text,
        lambda: text.decode(errors="replace").encode("utf-16"),
        lambda: text[:at] + text[at + 1:],
        lambda: b"[" * deep + text + b"]" * deep,
        lambda: b'{"a":' * deep,
        lambda: text.replace(b":", b":1e999,\"x\":", 1),
        lambda: text.replace(b'":"', b'":"\\ud800', 1),
        lambda: text.replace(b"1", b"-0", 1),
        lambda: text.replace(b"1", b"1" * 5000, 1),
        lambda: text.replace(b"{", b"{/**/", 1),
        lambda: text.replace(b"\"", b"'"),
        lambda: doubled_key(text, choices),
        lambda: doubled_key(text, choices),
        lambda: choices.randbytes(choices.randrange(1, 300)),
        lambda: b"",
    ]
    return choices.choice(changes)()


def doubled_key(text, choices):
    """The text with one key twice."""
    marks = [at for at in range(len(text) - 1) if text[at:at + 2] in (b'{"', b', "', b',"')]
    if not marks:
        return text + text
    start = choices.choice(marks) + 1
    end = text.find(b":", start)
    return text[:start] + text[start:end] + b": " + json.dumps(odd(choices)).encode() + b"," + text[start:] if end > 0 else text
