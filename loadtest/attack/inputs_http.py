"""Bad requests: every address of the OpenAPI document with bad bodies, parameters, heads, methods and keys."""

import json
import re
import threading

import mutate
import raw
from hostile import until

WAITING = re.compile(r"/events|/wait|/steps|/output|/input|/terminal|/audit|/forecast|/plan")
"""These may take as long as they are asked to."""
RIGHT_503 = re.compile(
    r"as many as|too many large requests|your requests take|the requests of all callers|not taken in yet|has not reached|not known yet|is not there yet"
)
OWN_ONLY = re.compile(r"POST /v1/jobs$|described|forecast|/steps")
"""Asked for as the user alone: what an administrator submits would run."""
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "FOO", "PROPFIND", "G\u00c9T", "A" * 300]
PATHS = [
    "//v1/jobs", "/v1//jobs", "/v1/./jobs", "/v1/x/../jobs", "/V1/jobs", "/v1/jobs/", "/v1/jobs/.", "/v1/jobs/..", "/v1/jobs/%2e%2e/nodes",
    "/v1/jobs/%00", "/v1/jobs/%ff",
    "/v1/jobs/%2f", "/v1/jobs/1%2f2", "/v1/jobs/%", "/v1/jobs/%zz", "/v1/jobs/1;x=1", "/v1/jobs/1#x", "/v1/jobs?", "/v1/jobs??",
    "/v1/jobs?&&&", "/v1/jobs?=", "/v1/jobs?id", "/v1/jobs?id=%",
    "/v1/jobs?id=%ff", "/v1/jobs?id=1&id=2", "/v1/jobs?" + "a=1&" * 5000, "/v1/jobs?id=" + "1," * 20000, "/" + "a" * 60000,
    "/" + "a/" * 20000, "*", "x", "http://x/v1/jobs",
    "http:///v1/jobs", "http://[::1]:99999/v1/jobs", "/v1/jobs/\u00e9", b"/v1/jobs/\xff", b"/v1/jobs/a b", b"/v1/jobs\x00", b"/v1/jobs\t",
    "/.well-known/x", "/openapi.json/x", "/metrics?x=1",
    "/healthz?x=1", "/v1/jobs/all/x", "/v1/jobs/actions/", "/v1/jobs/actions/nothing", "/v1/records?from=18446744073709551615",
    "/v1/records?from=0&max_bytes=4294967295",
    "/v1/events?from=18446744073709551615", "/v1/jobs?limit=4294967295", "/v1/jobs?limit=0", "/v1/jobs?at=9999-12-31T23:59:59Z",
    "/v1/jobs?at_seq=18446744073709551615",
    "/v1/jobs?wait_seq=18446744073709551615", "/v1/usage?by=,,,", "/v1/usage?from=9999-12-31T23:59:59Z&to=0001-01-01T00:00:00Z",
    "/v1/plan?limit=4294967295",
]


class Http:
    """Makes and judges requests."""

    def __init__(self, run):
        self.run, self.choices = run, run.choices
        answer = raw.ask(run.system.socket, raw.request("GET", "/openapi.json"))
        document = json.loads(answer.body)
        self.routes = [
            (method.upper(), path, operation) for path, item in document["paths"].items() for method, operation in item.items()
        ]
        self.jobs = victims(run)
        self.schemas = mutate.Schemas(document, self.choices, self.bases())
        self.keys = 0
        run.last = run.sequence()

    def bases(self):
        """Good values by schema: those that chance would never make."""
        spec = json.loads(self.run.system.of(self.run.user, "submit", "--dry-run", "-o", "/dev/null", "-e", "/dev/null", "-t", "1", "--",
            "true").stdout)
        spec["environment"] = {"PATH": "/usr/bin:/bin"}
        array = {**spec, "array": {"indices": "0-3"}}
        several = {**spec, "components": spec["components"] * 2}
        info = json.loads(raw.ask(self.run.system.socket, raw.request("GET", "/v1/info")).body)
        return {
            "JobSpec": [spec, spec, array, several], "JobId": self.jobs,
            "Timestamp": ["2026-11-20T08:30:00Z", info["time"], "2036-01-01T00:00:00Z"],
            "Sequence": [1, 20, info["sequence"]], "RunId": [1, 2, 3],
        }

    # Making

    def path(self, template, is_odd):
        """An address with values for what is in brackets."""
        def value(match):
            if is_odd:
                return quoted(mutate.words(self.choices))
            known = {"id": self.jobs, "step": ["1", "2"], "name": ["node1", "r1", "Default"]}
            return self.choices.choice(known.get(match[1], ["1"]))

        return re.sub(r"\{(\w+)\}", value, template)

    def parameters(self, operation, odd_share):
        """Parameters of an operation, some with odd values."""
        pairs = []
        for known in operation.get("parameters", []):
            if known["in"] != "query" or (not known.get("required") and self.choices.random() < 0.6):
                continue
            is_odd = self.choices.random() < odd_share
            value = mutate.words(self.choices) if is_odd else self.schemas.value(known["schema"])
            if known["name"] in ("wait_seconds", "timeout_seconds") and not is_odd:
                value = 0
            pairs.append((known["name"], value if isinstance(value, str) else json.dumps(value)))
        if odd_share and self.choices.random() < 0.15:
            pairs.append((self.choices.choice(["x", "", "at", "id", "%00"]), mutate.words(self.choices)))
        return "?" + "&".join(f"{name}={quoted(value)}" for name, value in pairs) if pairs else ""

    def key(self):
        self.keys += 1
        return f"idempotency-key: k{self.run.seed}-{self.run.name}-{self.keys}"

    def good_body(self, operation):
        content = operation.get("requestBody", {}).get("content", {})
        if "application/octet-stream" in content:
            return "some bytes"
        return self.schemas.value(content["application/json"]["schema"]) if content else None

    # Sending and judging

    def send(self, method, path, data, user=None, is_http=True):
        """Sends one request as a user and judges the answer."""
        user = user or self.run.user
        where = self.run.system.socket
        is_waiting = bool(WAITING.search(raw.to_bytes(path).decode(errors="replace")))
        if raw.to_bytes(path).startswith(b"/v1/agent/"):
            # As the agent of a node: who has no token is answered ever later, which `tcp.py` looks at.
            where, is_waiting = self.run.address, False
            data = data.replace(b"\r\n", b"\r\nauthorization: Bearer " + self.run.agent.encode() + b"\r\n", 1)
        answer = raw.ask(where, data, user, method, 0.7 if is_waiting else 20)
        self.run.note(str(answer.status) if answer.status else answer.why.split()[0],
            f"{method} {path[:100]!r} {data[-600:]!r} -> {answer.text[:200]!r}")
        self.judge(answer, method, path, data, is_waiting, is_http)
        if method not in ("GET", "HEAD") and user is self.run.user:
            self.run.was_asked(answer.status >= 400)
        return answer

    def judge(self, answer, method, path, data, is_waiting, is_http):
        sent = f"{method} {path[:200]!r} {data[:1200]!r} -> {answer}"
        if answer.status == 0 and is_http and not (is_waiting and "in time" in answer.why):
            self.run.fault("no answer", sent)
        if answer.status >= 500 and not (answer.status == 503 and RIGHT_503.search(answer.text)):
            self.run.fault(f"status {answer.status}", sent)
        if answer.status >= 400 and is_http and method != "HEAD":
            self.check_reason(answer, sent)
        if b"panicked" in answer.body or b"unwrap()" in answer.body:
            self.run.fault("an answer tells of a panic", sent)

    def check_reason(self, answer, sent):
        try:
            said = json.loads(answer.body)
            is_told = bool(said["code"]) and len(said["message"]) > 4
        except (ValueError, KeyError, TypeError):
            is_told = False
        if not is_told:
            self.run.fault(f"a refusal ({answer.status}) does not say why", sent)


def quoted(text):
    """A value for an address."""
    return "".join(letter if letter.isalnum() or letter in "-_.,:" else "".join(f"%{byte:02X}" for byte in letter.encode("utf-8",
        "replace")) for letter in text)


def victims(run):
    """Numbers of jobs to name: one that runs, one that waits, an array, one of several components, one of another, one that is over, none."""
    of, user = run.system.submit, run.user
    over = of(user, "-o", "/dev/null", "-e", "/dev/null", "--", "true")
    run.system.wait(over)
    script = user.write("het.sh", "#!/bin/sh\nsleep 600\n", 0o755)
    het = run.system.of(user, "slurm", "sbatch", "--parsable", "-o", "/dev/null", "-n1", ":", "-n1", script).stdout.strip()
    running = of(user, "-o", "/dev/null", "-e", "/dev/null", "--", "sleep", "600")
    until(lambda: run.system.is_running(running))
    return [
        over, running, of(user, "--hold", "--", "true"), of(user, "--hold", "--array", "0-3", "--", "true"), het,
        of(run.administrator, "--hold", "--", "true"), "999999",
    ]


# Kinds


def bodies(run, count):
    """Good documents with a few changes, as the user."""
    http = Http(run)
    with_body = [route for route in http.routes if "requestBody" in route[2]]
    for _ in range(count):
        method, template, operation = run.choices.choice(with_body)
        send_changed(http, method, template, operation, run.user)


def send_changed(http, method, template, operation, user):
    choices = http.choices
    value = http.good_body(operation)
    for _ in range(choices.choice((0, 1, 1, 1, 1, 2))):
        value = mutate.made_bad(value, choices)
    text = encoded(value)
    if choices.random() < 0.12:
        text = mutate.text_made_bad(text, choices)
    path = http.path(template, choices.random() < 0.1) + http.parameters(operation, 0.1)
    http.send(method, path, raw.request(method, path, text, [http.key()]), user)


def encoded(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") if not isinstance(value, str) else value.encode("utf-8",
        "replace")


def administrators_bodies(run, count):
    """The same as an administrator, on the addresses by which a cluster is changed."""
    http = Http(run)
    routes = [route for route in http.routes if "requestBody" in route[2] and not OWN_ONLY.search(f"{route[0]} {route[1]}")]
    for number in range(count):
        method, template, operation = run.choices.choice(routes)
        send_changed(http, method, template, operation, run.administrator)
        if number % 100 == 99:
            run.restore()


def parameters(run, count):
    """Odd parameters and names in addresses."""
    http = Http(run)
    for _ in range(count):
        method, template, operation = run.choices.choice(http.routes)
        path = http.path(template, run.choices.random() < 0.6) + http.parameters(operation, 0.7)
        body = encoded(http.good_body(operation)) if "requestBody" in operation else b""
        http.send(method, path, raw.request(method, path, body, [http.key()]))


def methods(run, count):
    """Every method on every address."""
    http = Http(run)
    for template in sorted({path for _, path, _ in http.routes}):
        for method in METHODS:
            path = http.path(template, False)
            is_http = method not in ("G\u00c9T", "CONNECT")
            http.send(method, path, raw.request(method, path, b"{}" if method in ("POST", "PUT", "PATCH") else b"", [http.key()]),
                is_http=is_http)


def paths(run, count):
    """Tricks with addresses."""
    http = Http(run)
    for number in range(count):
        path = PATHS[number % len(PATHS)] if number < 2 * len(PATHS) else "/" + "/".join(quoted(mutate.words(run.choices)) for _ in range(run.choices.randrange(1, 6)))
        method = "GET" if number < len(PATHS) else run.choices.choice(("GET", "POST", "PUT", "DELETE"))
        is_http = isinstance(path, str) and path.startswith(("/", "http://x")) and path.isascii() and len(path) < 65000 and "#" not in path
        http.send(method, path, raw.request(method, path, b"{}" if method in ("POST", "PUT") else b""), is_http=is_http)


def heads(run, count):
    """Heads that are wrong, odd, huge or ambiguous. Whatever is accepted is one job; nothing is smuggled."""
    http = Http(run)
    makers = odd_heads(http)
    for number in range(count):
        name, data = makers[number % len(makers)](run.choices)
        http.send("POST", "/v1/jobs", data, is_http=False)
    smuggled = [event for event in events(run) if event["data"].get("job", "").partition("_")[0] and "smuggled" in json.dumps(event)]
    if smuggled:
        run.fault("a request inside a request was obeyed", smuggled[0])


def events(run):
    return [json.loads(line) for line in run.system.root("events", "--json", "--kind", "job", seconds=120).stdout.splitlines()]


def odd_heads(http):
    """Each gives a name and the bytes of a request."""
    spec = http.schemas.bases["JobSpec"][0]
    good = encoded({"jobs": [{**spec, "name": "outer"}]})
    inner = encoded({"jobs": [{**spec, "name": "smuggled"}]})
    hidden = raw.request("POST", "/v1/jobs", inner)

    def lines(*more, body=good, first="POST /v1/jobs HTTP/1.1", host=("host: x",)):
        head = [raw.to_bytes(line) for line in (first, *host, *more)]
        return b"\r\n".join(head) + b"\r\n\r\n" + body

    def chunked(body):
        return b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

    length, te = f"content-length: {len(good)}", "transfer-encoding: chunked"
    plain = [
        ("CL and TE", lines("content-length: 5", te, body=chunked(good) + hidden)),
        ("TE and CL", lines(te, f"content-length: {len(chunked(good))}", body=chunked(good))),
        ("CL.TE hides one", lines(f"content-length: {len(good) + len(hidden)}", te, body=b"0\r\n\r\n" + hidden)),
        ("two CL", lines(length, "content-length: 5")),
        ("same CL twice", lines(length, length)), ("CL list", lines(f"content-length: {len(good)}, {len(good)}")),
        ("CL -1", lines("content-length: -1")),
        ("CL +", lines(f"content-length: +{len(good)}")), ("CL hex", lines("content-length: 0x10")),
        ("CL 2^64", lines("content-length: 18446744073709551616")),
        ("CL 2^63", lines("content-length: 9223372036854775807")), ("CL empty", lines("content-length:")),
        ("CL spaces", lines(f"content-length:    {len(good)}   ")),
        ("CL name space", lines(f"content-length : {len(good)}")), ("TE twice", lines(te, te, body=chunked(good))),
        ("TE list", lines("transfer-encoding: chunked, chunked", body=chunked(good))),
        ("TE gzip", lines("transfer-encoding: gzip, chunked", body=chunked(good))),
        ("TE x", lines("transfer-encoding: xchunked", body=chunked(good))), ("TE identity", lines("transfer-encoding: identity", length)),
        ("TE tab", lines("transfer-encoding:\tchunked", body=chunked(good))),
        ("TE vt", lines(b"transfer-encoding: \x0bchunked", body=chunked(good))),
        ("TE 1.0", lines(te, first="POST /v1/jobs HTTP/1.0", body=chunked(good))),
        ("chunk huge", lines(te, body=b"ffffffffffffffff\r\n" + good)), ("chunk huger", lines(te, body=b"f" * 40 + b"\r\n" + good)),
        ("chunk negative", lines(te, body=b"-1\r\n" + good)), ("chunk 0x", lines(te, body=b"0x10\r\n" + good)),
        ("chunk extension", lines(te, body=b"%x;%s\r\n%s\r\n0\r\n\r\n" % (len(good), b"a=b;" * 10, good))),
        ("chunk long extension", lines(te, body=b"%x;%s\r\n%s\r\n0\r\n\r\n" % (len(good), b"a" * 200_000, good))),
        ("chunk no end", lines(te, body=b"%x\r\n%s" % (len(good), good))),
        ("chunk LF", lines(te, body=b"%x\n%s\n0\n\n" % (len(good), good))),
        ("trailers", lines(te, body=b"%x\r\n%s\r\n0\r\ncontent-length: 5\r\nx: y\r\n\r\n" % (len(good), good))),
        ("many trailers", lines(te, body=b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(good), good, b"a: b\r\n" * 20000))),
        ("no host", lines(length, host=())), ("two hosts", lines(length, host=("host: x", "host: y"))),
        ("odd host", lines(length, host=("host: \u00e9 @/\\",))), ("folded", lines(length, "x: a\r\n b")),
        ("NUL", lines(length, b"x: a\0b")), ("no colon", lines(length, "nothing")), ("empty name", lines(length, ": x")),
        ("name space", lines(length, "a b: c")), ("name high", lines(length, b"\xff: c")), ("value high", lines(length, b"x: \xff\xfe")),
        ("bare CR", lines(length, b"x: a\rb")), ("LF only", lines(length).replace(b"\r\n", b"\n")),
        ("5 MB header", lines(length, "x: " + "a" * 5_000_000)), ("10000 headers", lines(length, *["a: b"] * 10_000)),
        ("99 headers", lines(length, *["a: b"] * 95)),
        ("HTTP/0.9", b"GET /v1/jobs\r\n\r\n"), ("HTTP/1.0", lines(length, first="POST /v1/jobs HTTP/1.0")),
        ("HTTP/9.9", lines(length, first="POST /v1/jobs HTTP/9.9")), ("http/1.1", lines(length, first="POST /v1/jobs http/1.1")),
        ("two spaces", lines(length, first="POST  /v1/jobs  HTTP/1.1")), ("tab", lines(length, first="POST\t/v1/jobs\tHTTP/1.1")),
        ("leading CRLF", b"\r\n\r\n\r\n" + lines(length)), ("h2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 64),
        ("TLS hello", bytes.fromhex("16030100c5010000c10303") + b"a" * 200), ("expect", lines(length, "expect: 100-continue")),
        ("expect x", lines(length, "expect: nonsense")), ("expect, no body", lines(length, "expect: 100-continue", body=b"")),
        ("h2c", lines(length, "connection: upgrade, http2-settings", "upgrade: h2c", "http2-settings: AAMAAABkAAQAAP__")),
        ("websocket", lines("connection: upgrade", "upgrade: websocket", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-version: 13", first="GET /v1/events HTTP/1.1", body=b"")),
        ("type xml", lines(length, "content-type: text/xml")), ("type odd", lines(length, "content-type: ;;;\u00e9")),
        ("gzip", lines(length, "content-encoding: gzip")), ("range", lines("range: bytes=0-99999999999", first="GET /openapi.json HTTP/1.1",
        body=b"")),
        ("connection x", lines(length, "connection: close, keep-alive, content-length")),
        ("forwarded", lines(length, "x-forwarded-for: 127.0.0.1", "x-remote-user: root", "forwarded: for=127.0.0.1")),
        ("bearer on the socket", lines(length, "authorization: Bearer root")), ("traceparent", lines(length, "traceparent: 00-zz-zz-zz")),
        ("traceparent 0", lines(length, f"traceparent: 00-{'0' * 32}-{'0' * 16}-00")),
        ("traceparent long", lines(length, "traceparent: " + "0" * 5000)),
        ("last event", lines("last-event-id: 99999999999999999999999", first="GET /v1/jobs HTTP/1.1", body=b"")),
        ("hidden in the body", lines(length, body=good + hidden[:-1])),
        ("short body", lines("content-length: 5000")), ("no length", lines()), ("endless chunks", lines(te, body=b"1\r\n[\r\n" * 100_000)),
        ("empty", b""), ("CRLF", b"\r\n"), ("only method", b"POST"),
    ]
    makers = [lambda _, one=one: one for one in plain]
    makers.append(lambda choices: ("bytes", choices.randbytes(choices.randrange(1, 2000))))
    makers.append(lambda choices: ("changed", changed(lines(length), choices)))
    return makers * 1 + makers[-1:] * 30


def changed(data, choices):
    """A head with one byte changed, gone or more."""
    at = choices.randrange(data.index(b"\r\n\r\n"))
    return choices.choice((data[:at] + choices.randbytes(1) + data[at + 1:], data[:at] + data[at + 1:],
        data[:at] + choices.randbytes(1) + data[at:]))


def keys(run, count):
    """Idempotency keys that are odd, doubled, or another command's (F12, F13)."""
    http = Http(run)
    spec = http.schemas.bases["JobSpec"][0]
    odd_keys(run, http, encoded({"jobs": {"matching": {"user": "nobody-at-all"}}}))
    others = [
        ("POST", "/v1/jobs", {"jobs": [{**spec, "name": "other"}]}),
        ("POST", "/v1/nodes/actions/drain", {"nodes": ["node1"], "reason": "x"}),
        ("POST", f"/v1/jobs/{http.jobs[1]}/steps/launch", {"groups": [{"programs": [{"argv": ["true"]}]}]}),
        ("POST", f"/v1/jobs/{http.jobs[1]}/enter", None), ("POST", f"/v1/jobs/{http.jobs[1]}/keep", {"seconds": 5}),
        ("POST", "/v1/jobs/actions/hold", {"jobs": {"ids": [http.jobs[2]]}, "holds": ["user"]}),
        ("POST", "/v1/refusals", {"what": "x", "why": "because"}), ("POST", "/v1/reservations", {"name": "r1", "nodes": ["node1"]}),
        ("DELETE", "/v1/reservations/r1", None), ("DELETE", "/v1/templates/x", None),
        ("PUT", "/v1/policy", {}), ("PUT", "/v1/filters", {}), ("POST", "/v1/jobs/actions/cancel", {"jobs": {"ids": [http.jobs[2]]}}),
    ]
    numbers = iter(range(count))
    for round_number, _ in enumerate(iter(lambda: next(numbers, None), None)):
        if run.counts[run.name] >= count:
            break
        key = f"idempotency-key: shared-{run.seed}-{round_number}"
        first = others[round_number % len(others)]
        send_with(http, first, key)
        status = http.last.status
        for other in run.choices.sample(others, 5):
            if other is first:
                continue
            send_with(http, other, key)
            expected = (409,) if status == 200 else (409, 400, 403, 404, 422, 200)
            if http.last.status not in expected and http.last.status not in (400, 403, 404, 422):
                run.fault(f"a key of another command is answered {http.last.status}", (first, status, other, http.last))
            if status == 200 and http.last.status == 200:
                run.fault("a key of another command is taken", (first, other, http.last))
            status = 200 if http.last.status == 200 else status
    at_once(run, spec)


def send_with(http, what, key):
    method, path, body = what
    text = encoded(body) if body is not None else b""
    http.last = http.send(method, path, raw.request(method, path, text, [key]))


def odd_keys(run, http, body):
    for value in ["", " ", "a" * 255, "a" * 256, "a" * 60_000, "\u00e9", b"\xff", "a\tb", "a b", "0", "null", "../x", "\x7f", "a,b", "🙂"]:
        header = b"idempotency-key: " + raw.to_bytes(value)
        path = "/v1/jobs/actions/cancel"
        http.send("POST", path, raw.request("POST", path, body, [header]), is_http=False)
        http.send("POST", path, raw.request("POST", path, body, [header, b"Idempotency-Key: second"]), is_http=False)


def at_once(run, spec):
    """The same key from eight connections at once is one command."""
    for number in range(20):
        data = raw.request("POST", "/v1/jobs", encoded({"jobs": [{**spec, "name": f"once{number}"}]}),
            [f"idempotency-key: once-{run.seed}-{number}", "authorization: Bearer fbb-secret-token-0123456789"])
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(raw.ask(run.address, data))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        jobs = {answer.text for answer in answers if answer.status == 200}
        run.note("at once")
        if len(jobs) != 1 or any(answer.status != 200 for answer in answers):
            run.fault("a key used eight times at once is not one command", answers)
    run.last = run.sequence()


KINDS = [
    ("http-bodies", 12000, bodies), ("http-administrator", 6000, administrators_bodies), ("http-parameters", 3000, parameters),
    ("http-methods", 800, methods), ("http-paths", 300, paths), ("http-heads", 300, heads),
    ("http-keys", 200, keys),
]
