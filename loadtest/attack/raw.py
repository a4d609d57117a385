"""HTTP by hand: what no library would send, and answers as they come."""

import contextlib
import os
import socket
import time

MOST_BYTES = 64 << 20


@contextlib.contextmanager
def acting_as(user):
    """What is connected in here the kernel takes for a connection of this user. For one thread only."""
    if user is None:
        yield
        return
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(user.gid)
    os.seteuid(user.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups(groups)


def connect(where, user=None, seconds=20):
    """A connection to a socket's path, by this user, or to `(host, port)` or `(host, port, own address)`."""
    if isinstance(where, tuple):
        host, port, *own = where
        return socket.create_connection((host, port), timeout=seconds, source_address=(own[0], 0) if own else None)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(seconds)
    try:
        with acting_as(user):
            connection.connect(where)
    except OSError:
        connection.close()
        raise
    return connection


class Answer:
    """What came back: `status` is 0 if there was no answer, and `why` says how it went instead."""

    def __init__(self, status=0, head=b"", body=b"", why="", is_open=False):
        self.status, self.head, self.body, self.why, self.is_open = status, head, body, why, is_open

    def header(self, name):
        """The value of a header, or none."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.encode():
                return value.strip().decode(errors="replace")
        return None

    @property
    def says_close(self):
        return "close" in (self.header("connection") or "").lower()

    @property
    def text(self):
        return self.body.decode(errors="replace")

    def __repr__(self):
        return f"<{self.status} {self.why} {self.head[:300]!r} {self.body[:300]!r}>"


class Reader:
    """Takes answers from a connection, one after the other."""

    def __init__(self, connection):
        self.connection, self.buffer = connection, b""

    def more(self, end):
        """Another piece; `False` at the end."""
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        piece = self.connection.recv(1 << 18)
        self.buffer += piece
        return bool(piece) and len(self.buffer) < MOST_BYTES

    def until(self, mark, end):
        """What stands before the mark, which is taken too."""
        while mark not in self.buffer:
            if not self.more(end):
                raise ConnectionError("ended")
        before, _, self.buffer = self.buffer.partition(mark)
        return before

    def exactly(self, count, end):
        while len(self.buffer) < count:
            if not self.more(end):
                raise ConnectionError("ended")
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def answer(self, method="GET", seconds=20):
        """The next answer. An interim one (100) is skipped."""
        end, head, body = time.monotonic() + seconds, b"", b""
        try:
            head = self.until(b"\r\n\r\n", end)
            status = int(head.split(None, 2)[1])
            if status == 100:
                return self.answer(method, seconds)
            answer = Answer(status, head)
            body = self.body(answer, method, end)
            return Answer(status, head, body, is_open=not answer.says_close)
        except (OSError, ValueError, IndexError, ConnectionError) as error:
            why = "no answer in time" if isinstance(error, TimeoutError) else f"{type(error).__name__} {error}"
            begun = head or self.buffer
            status = int(head.split(None, 2)[1]) if head[:5] == b"HTTP/" else 0
            return Answer(status, begun, self.buffer, why)

    def body(self, answer, method, end):
        length, coding = answer.header("content-length"), answer.header("transfer-encoding")
        if method == "HEAD" or answer.status in (204, 304):
            return b""
        if length is not None:
            return self.exactly(int(length), end)
        if coding != "chunked":
            return self.rest(end)
        pieces = []
        while size := int(self.until(b"\r\n", end).split(b";")[0], 16):
            pieces.append(self.exactly(size, end))
            self.exactly(2, end)
        self.until(b"\r\n", end)
        return b"".join(pieces)

    def rest(self, end):
        """All until the other side ends."""
        while self.more(end):
            pass
        taken, self.buffer = self.buffer, b""
        return taken


def request(method, path, body=b"", headers=(), version=b"HTTP/1.1"):
    """A request's bytes; of `headers` nothing is checked. A body gets its length."""
    lines = [b" ".join([to_bytes(method), to_bytes(path), version]), b"host: x"]
    if body or method in ("POST", "PUT"):
        lines += [b"content-type: application/json", b"content-length: %d" % len(body)]
    lines += [to_bytes(line) for line in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def to_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def ask(where, data, user=None, method="GET", seconds=20):
    """Sends bytes over a connection of their own; the answer, or how it went instead."""
    try:
        with connect(where, user, seconds) as connection:
            try:
                connection.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # It was refused before its end; the answer says why.
            return Reader(connection).answer(method, seconds)
    except OSError as error:
        return Answer(why=f"{type(error).__name__} {error}")


def until_end(connection, seconds):
    """All that comes until the other side ends the connection; `None` if it does not within this time."""
    end, said = time.monotonic() + seconds, b""
    while (left := end - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            piece = connection.recv(1 << 16)
        except TimeoutError:
            break
        except OSError:
            return said
        if not piece:
            return said
        said += piece
    return None
