"""What a forger knows who has the files of a log, its documentation and its source, but not its key: the chain, the checksums,
RocksDB's write-ahead log, and how bundles are made.

All of it is written here in plain Python. Records are read from a bundle; changes are appended to the write-ahead log as batches,
which RocksDB takes for its own, so there is no need for RocksDB itself.
"""

import base64
import gzip
import hashlib
import itertools
import json
import os
import shutil
import struct
import types
import zlib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def verifier():
    """`ops/verify-bundle` as a module: it has BLAKE3 and the arithmetic of Ed25519."""
    path = REPOSITORY / "ops/verify-bundle"
    module = types.ModuleType("verify_bundle")
    exec(compile(path.read_text(), path, "exec"), module.__dict__)
    return module


verify_bundle = verifier()
blake3 = verify_bundle.blake3

# ------------------------------------------------------------------------------------------------------------------- key


class Key:
    """An Ed25519 key of the forger's own."""

    def __init__(self, seed):
        self.seed = seed
        digest = hashlib.sha512(seed).digest()
        self.scalar = int.from_bytes(digest[:32], "little") & (1 << 254) - 8 | 1 << 254
        self.prefix = digest[32:]
        self.public = compressed(self.scalar)

    def sign(self, text):
        order = verify_bundle.ORDER
        nonce = int.from_bytes(hashlib.sha512(self.prefix + text).digest(), "little") % order
        r = compressed(nonce)
        challenge = int.from_bytes(hashlib.sha512(r + self.public + text).digest(), "little") % order
        return r + ((nonce + challenge * self.scalar) % order).to_bytes(32, "little")

    def pem(self):
        """As a ledger keeps its key: PKCS 8."""
        der = bytes.fromhex("302e020100300506032b657004220420") + self.seed
        return f"-----BEGIN PRIVATE KEY-----\n{base64.b64encode(der).decode()}\n-----END PRIVATE KEY-----\n"


def compressed(scalar):
    x, y, z, _ = verify_bundle.multiply(scalar, verify_bundle.BASE)
    inverse = pow(z, -1, verify_bundle.P)
    x, y = x * inverse % verify_bundle.P, y * inverse % verify_bundle.P
    return (y | (x & 1) << 255).to_bytes(32, "little")


# --------------------------------------------------------------------------------------------------------------- records


def varint(number):
    """A number as bincode 2 writes it."""
    for mark, size in ((None, 1), (251, 2), (252, 4), (253, 8)):
        if number < 251 and mark is None or mark and number < 1 << 8 * size:
            return (b"" if mark is None else bytes([mark])) + number.to_bytes(size, "little")
    raise ValueError(number)


def split_varint(data):
    """The number that the bytes begin with, and what is behind it."""
    size = {251: 2, 252: 4, 253: 8}.get(data[0])
    if size is None:
        return data[0], data[1:]
    return int.from_bytes(data[1 : 1 + size], "little"), data[1 + size :]


def sealed(body):
    """The payload of a body: with its right length and checksum."""
    return b"\2\1" + struct.pack("<II", len(body), zlib.crc32(body)) + body


def body(payload):
    return payload[10:]


def zigzag(number):
    return number * 2 if number >= 0 else -number * 2 - 1


def unzigzag(number):
    return number >> 1 if number % 2 == 0 else -(number + 1 >> 1)


class Record:
    """A record as far as a forger has to understand it: its sequence, its time, and the rest."""

    def __init__(self, payload):
        self.sequence, rest = split_varint(body(payload))
        time, self.rest = split_varint(rest)
        self.time = unzigzag(time)

    def payload(self):
        return sealed(varint(self.sequence) + varint(zigzag(self.time)) + self.rest)


class History:
    """The records of a bundle: what was exported, and what a forger makes of it."""

    def __init__(self, bundle):
        lines = [json.loads(line) for line in bundle.read_bytes().splitlines()]
        self.header, self.trailer = lines[0], lines[-1]
        self.lines = lines[1:-1]
        self.payloads = [bytes.fromhex(line["payload"]) for line in self.lines]
        self.hashes = [line["hash"] for line in self.lines]
        self.kinds = [kind(line["record"]) for line in self.lines]
        self.last = len(self.payloads)
        self.cluster = self.header["cluster_id"]
        self.public_key = bytes.fromhex(self.header["public_key"])

    def of_kind(self, *kinds):
        """Sequences of the records of such events."""
        return [at + 1 for at, found in enumerate(self.kinds) if found in kinds]

    def hash_before(self, sequence):
        return bytes.fromhex(self.hashes[sequence - 2]) if sequence > 1 else bytes(32)

    def values(self, payloads, first=1):
        """The values of records that follow the genuine ones before `first`, and the hash of the last."""
        previous, values = self.hash_before(first), []
        for payload in payloads:
            values.append(previous + payload)
            previous = blake3(values[-1])
        return values, previous


def kind(record):
    """The name of what happened."""
    event = record["event"]
    return event if isinstance(event, str) else next(iter(event))


def end_text(cluster, sequence, digest):
    return f"muster end 2\ncluster {cluster}\nsequence {sequence}\nrecord {digest.hex()}\nend open\n"


def witness(cluster, sequence, digest, key):
    """A witness, signed by a key of ours."""
    text = end_text(cluster, sequence, digest)
    return f"{text}signature {key.sign(text.encode()).hex()}\n"


# ---------------------------------------------------------------------------------------------------------------- crc32c

CASTAGNOLI = []
for number in range(256):
    for _ in range(8):
        number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
    CASTAGNOLI.append(number)


def masked_crc32c(data):
    """The checksum that RocksDB's files have."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CASTAGNOLI[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF


# ----------------------------------------------------------------------------------------------------- write-ahead log

BLOCK_BYTES = 32 << 10
HEAD_BYTES = 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
PUT, DELETE = 5, 4  # of a column family; 1 and 0 are those of the default one
# Higher than any sequence that RocksDB itself has come to.
SEQUENCES = itertools.count(1 << 40, 1 << 24)


def leb(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def split_leb(data, at):
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return number, at


def counted(data):
    return leb(len(data)) + data


def log_records(data):
    """The records of a file that is written in blocks, as far as it is whole."""
    parts = b""
    for start in range(0, len(data), BLOCK_BYTES):
        block, at = data[start : start + BLOCK_BYTES], 0
        while at + HEAD_BYTES <= len(block):
            length, kind = struct.unpack_from("<HB", block, at + 4)
            if kind == 0:
                break
            content = block[at + HEAD_BYTES : at + HEAD_BYTES + length]
            parts = content if kind in (FULL, FIRST) else parts + content
            if kind in (FULL, LAST):
                yield parts
            at += HEAD_BYTES + length


def framed(content, at):
    """A record as it is written to such a file at an offset."""
    out, is_first = b"", True
    while True:
        room = BLOCK_BYTES - (at + len(out)) % BLOCK_BYTES
        if room < HEAD_BYTES:
            out += bytes(room)
            continue
        part, content = content[: room - HEAD_BYTES], content[room - HEAD_BYTES :]
        kind = (FULL if is_first else LAST) if not content else FIRST if is_first else MIDDLE
        out += struct.pack("<IHB", masked_crc32c(bytes([kind]) + part), len(part), kind) + part
        is_first = False
        if not content:
            return out


def families(log):
    """The numbers of the column families, by name, from the manifest."""
    manifest = log / (log / "CURRENT").read_text().strip()
    found = {"default": 0}
    for edit in log_records(manifest.read_bytes()):
        # A new family has tag 201 and its name, in the same edit as tag 200 and its number.
        name_at, number_at = edit.find(b"\xc9\x01"), edit.find(b"\xc8\x01")
        for name in (b"records", b"by_job", b"commands", b"checkpoints", b"notices", b"meta"):
            if name_at >= 0 and number_at >= 0 and b"\xc9\x01" + counted(name) in edit:
                found[name.decode()] = split_leb(edit, number_at + 2)[0]
    return found


def newest_wal(log):
    return max(log.glob("*.log"), key=lambda path: int(path.stem), default=None)


def batches(log):
    """All that the write-ahead logs of a folder put and delete: (number of the family, key, value or None)."""
    for path in sorted(log.glob("*.log"), key=lambda path: int(path.stem)):
        for batch in log_records(path.read_bytes()):
            yield from operations(batch)


def operations(batch):
    at = 12
    while at < len(batch):
        kind, at, family = batch[at], at + 1, 0
        if kind not in (0, 1, PUT, DELETE):
            return
        if kind in (PUT, DELETE):
            family, at = split_leb(batch, at)
        length, at = split_leb(batch, at)
        key, at, value = batch[at : at + length], at + length, None
        if kind in (1, PUT):
            length, at = split_leb(batch, at)
            value, at = batch[at : at + length], at + length
        yield family, key, value


def contents(log):
    """What the write-ahead logs of a folder that was killed hold: for each family its keys and values."""
    names = {number: name for name, number in families(log).items()}
    found = {name: {} for name in names.values()}
    for family, key, value in batches(log):
        if value is None:
            found[names[family]].pop(key, None)
        else:
            found[names[family]][key] = value
    return found


def write(log, changes):
    """Appends a batch of changes, (family, key, value or None to delete), to the newest write-ahead log."""
    numbers = families(log)
    batch = bytearray(struct.pack("<QI", next(SEQUENCES), len(changes)))
    for family, key, value in changes:
        batch += bytes([DELETE if value is None else PUT]) + leb(numbers[family]) + counted(key)
        batch += b"" if value is None else counted(value)
    path = newest_wal(log)
    if path is None:
        path = log / f"{int((log / 'CURRENT').read_text().strip().split('-')[1]) + 100:06}.log"
    with open(path, "ab") as file:
        file.write(framed(bytes(batch), file.tell()))


def big(number):
    return number.to_bytes(8, "big")


# ------------------------------------------------------------------------------------------------- forgeries of a folder

OWN = Key(hashlib.sha256(b"a forger's own key").digest())
HONEST, FORGED = (b"honest-", b"root"), (b"forged-", b"toor")
"""What a forger puts in the place of what: the names of jobs and their owners, which stay as long."""


class Forger:
    """Forges copies of one folder. Each method changes the copy and says what it did."""

    def __init__(self, base, data, choices, jobs):
        self.base, self.data, self.choices, self.history = base, data, choices, base.history
        # The numbers of jobs to choose from where only some are attacked, and those that were.
        self.jobs, self.touched = jobs, []
        self.log = data / "ledger/log"

    # -- parts ---------------------------------------------------------------------------------------------------------

    def forged(self, payload):
        """The payload with another name and another owner in it, and all that proves it made right."""
        changed = body(payload)
        for honest, other in zip(HONEST, FORGED):
            changed = changed.replace(honest, other)
        return sealed(changed)

    def submission(self, first, last):
        """A submission from one record to another, by chance."""
        found = [at for at in self.history.of_kind("job_submitted") if first <= at <= last]
        return self.choices.choice(found) if found else None

    def put(self, payloads, first):
        """Puts records in the place of all from one on, in one chain with those before; the hash of the last."""
        values, last = self.history.values(payloads, first)
        changes = [("records", big(first + at), value) for at, value in enumerate(values)]
        changes += [("records", big(at), None) for at in range(first + len(values), self.history.last + 1)]
        write(self.log, changes)
        return first + len(values) - 1, last

    def renumbered(self, payloads, first):
        """The same records with the sequences that they have now."""
        made = []
        for at, payload in enumerate(payloads):
            record = Record(payload)
            record.sequence = first + at
            made.append(record.payload())
        return made

    def without_checkpoints(self, first):
        """The records from one on that are no checkpoints, and the changes that take these out of their index."""
        kept = [
            payload
            for payload, kind in zip(self.history.payloads[first - 1 :], self.history.kinds[first - 1 :])
            if kind != "checkpoint"
        ]
        signed = [line["checkpoint"]["of"] for line in self.history.lines[first - 1 :] if "checkpoint" in line]
        write(self.log, [("checkpoints", big(of), None) for of in signed])
        return kept

    def witness_variant(self, sequence, digest):
        """Something that a forger can do about the witness."""
        path = self.data / "ledger/witness"
        how = self.choices.choice(["as it is", "removed", "garbled", "edited", "own key", "own key, other cluster"])
        if how == "removed":
            path.unlink()
        elif how == "garbled":
            path.write_text("muster end 2\n")
        elif how == "edited":
            old = path.read_text().splitlines()[-1]
            path.write_text(end_text(self.history.cluster, sequence, digest) + old + "\n")
        elif how.startswith("own"):
            cluster = self.history.cluster if how == "own key" else "00000000-0000-4000-8000-000000000000"
            path.write_text(witness(cluster, sequence, digest, OWN))
        return f"witness {how}"

    def snapshots(self):
        return sorted((self.data / "ledger/snapshots").glob("*.snapshot"))

    # -- the records ---------------------------------------------------------------------------------------------------

    def owner_anywhere(self):
        """The owner of a job, and the chain behind it made right (F2)."""
        return self.owner(1, self.base.signed)

    def owner_behind_checkpoint(self):
        """The owner of a job that only the witness covers (F2)."""
        return self.owner(self.base.checkpoint + 1, self.base.signed) or self.owner_anywhere()

    def owner(self, first, last):
        at = self.submission(first, last)
        if at is None:
            return None
        payloads = [self.forged(self.history.payloads[at - 1]), *self.history.payloads[at:]]
        end, digest = self.put(payloads, at)
        return f"owner in record {at}, chain right, {self.witness_variant(end, digest)}"

    def owners_all(self):
        """The owner of all jobs from a record on, without the checkpoints behind it."""
        at = self.choices.randrange(2, self.history.last)
        payloads = [self.forged(payload) for payload in self.without_checkpoints(at)]
        end, digest = self.put(self.renumbered(payloads, at), at)
        return f"owners from record {at} on, no checkpoints behind it, {self.witness_variant(end, digest)}"

    def owner_without_chain(self):
        """The owner of a job, with a right checksum only."""
        at = self.submission(1, self.base.signed)
        write(
            self.log, [("records", big(at), self.history.hash_before(at) + self.forged(self.history.payloads[at - 1]))]
        )
        return f"owner in record {at}, chain as it was"

    def owner_without_witness(self):
        """The chain is made right up to the record that the witness tells of, which stays as it is."""
        at = self.submission(1, self.base.witnessed - 2)
        payloads = [self.forged(self.history.payloads[at - 1]), *self.history.payloads[at : self.base.witnessed - 1]]
        values, _ = self.history.values(payloads, at)
        write(self.log, [("records", big(at + number), value) for number, value in enumerate(values)])
        return f"owner in record {at}, chain right up to the witness's"

    def record_out(self):
        """A record is taken out, those behind it get its place."""
        at = self.choices.randrange(2, self.base.signed)
        end, digest = self.put(self.renumbered(self.history.payloads[at:], at), at)
        return f"record {at} taken out, chain right, {self.witness_variant(end, digest)}"

    def record_gone(self):
        """A record is deleted, and nothing else."""
        at = self.choices.choice(
            [self.base.witnessed, self.base.checkpoint, self.choices.randrange(1, self.base.signed)]
        )
        write(self.log, [("records", big(at), None)])
        return f"record {at} deleted"

    def record_twice(self):
        """A record is there a second time, behind itself."""
        at = self.choices.randrange(2, self.base.signed)
        payloads = self.renumbered([self.history.payloads[at - 1], *self.history.payloads[at - 1 :]], at)
        end, digest = self.put(payloads, at)
        return f"record {at} twice, chain right, {self.witness_variant(end, digest)}"

    def records_swapped(self):
        """Two neighbours change places, each with the number of its place."""
        at = self.choices.randrange(2, self.base.signed)
        one, two, *rest = self.history.payloads[at - 1 :] if at < self.history.last else (None, None)
        end, digest = self.put(self.renumbered([two, one, *rest], at), at)
        return f"records {at} and {at + 1} changed places, chain right, {self.witness_variant(end, digest)}"

    def time_moved(self):
        """A record says another time."""
        at = self.choices.randrange(2, self.base.signed)
        record = Record(self.history.payloads[at - 1])
        record.time += self.choices.choice([-(10**12), -1, 1, 10**12])
        end, digest = self.put([record.payload(), *self.history.payloads[at:]], at)
        return f"time of record {at}, chain right, {self.witness_variant(end, digest)}"

    def end_cut(self):
        """The end of the log is deleted (F4), with or without its checkpoints in the index."""
        count = self.choices.choice([1, 2, 10, 300, self.choices.randrange(1, self.base.signed)])
        last = min(self.base.signed, self.history.last) - count
        write(self.log, [("records", big(at), None) for at in range(last + 1, self.history.last + 1)])
        if self.choices.random() < 0.5:
            self.without_index_behind(last)
        return f"all behind record {last} deleted, {self.witness_variant(last, self.history.hash_before(last + 1))}"

    def without_index_behind(self, last):
        checkpoints = [
            (line["sequence"], line["checkpoint"]["of"]) for line in self.history.lines if "checkpoint" in line
        ]
        write(self.log, [("checkpoints", big(of), None) for at, of in checkpoints if at > last])

    def tail_altered(self):
        """What no signature covers yet is altered: a documented limit of a ledger that was killed."""
        if self.base.signed >= self.history.last:
            return None
        at = self.choices.randrange(self.base.signed + 1, self.history.last + 1)
        payloads = self.history.payloads[at - 1 :]
        if self.choices.random() < 0.5:
            self.put(payloads[:0], at)
            return f"all from record {at} on deleted, which nothing covers"
        payloads = [self.forged(payload) for payload in payloads]
        self.put(payloads, at)
        return f"records from {at} on altered, which nothing covers"

    def end_added(self):
        """Records are added behind the signed end: a submission of somebody else's, without the key."""
        at = self.submission(1, self.base.signed)
        record = Record(self.forged(self.history.payloads[at - 1]))
        latest = Record(self.history.payloads[-1]).time
        record.sequence, record.time = self.history.last + 1, latest + self.choices.choice([0, 1, 59_000_000])
        # The number of the job is the first of what is behind the kind of event: it stays one that is known.
        values, _ = self.history.values([record.payload()], self.history.last + 1)
        write(self.log, [("records", big(record.sequence), values[0])])
        return f"record {record.sequence} added: record {at} again, with another owner"

    def end_added_late(self):
        """The same, later than a ledger leaves anything unsigned."""
        latest = Record(self.history.payloads[-1])
        payloads = []
        for step in (1, 2):
            record = Record(self.history.payloads[self.submission(1, self.base.signed) - 1])
            record.sequence, record.time = self.history.last + step, latest.time + step * 45_000_000
            payloads.append(record.payload())
        values, _ = self.history.values(payloads, self.history.last + 1)
        # The first alone is within the minute, both are not.
        write(self.log, [("records", big(self.history.last + 1 + at), value) for at, value in enumerate(values)])
        return "two records added, 45 s and 90 s behind the end"

    # -- keys that no record has ---------------------------------------------------------------------------------------

    def key_longer(self):
        """A second record under a key that begins with the sequence of a first."""
        at = self.choices.choice(
            [self.submission(1, self.base.signed), self.submission(1, self.base.signed), self.history.last]
        )
        value = self.history.hash_before(at) + self.forged(self.history.payloads[at - 1])
        write(self.log, [("records", big(at) + self.choices.choice([b"\0", b"x", b"longer"]), value)])
        return f"a second record {at} under a longer key"

    def key_shorter(self):
        """A record under a key that is no sequence."""
        at = self.submission(1, self.base.signed)
        key = self.choices.choice([b"", b"\0", b"\0" * 7, big(at)[:-1], big(0)])
        write(self.log, [("records", key, self.history.hash_before(at) + self.forged(self.history.payloads[at - 1]))])
        return f"a record under the key {key.hex() or 'nothing'}"

    def key_far(self):
        """A record far behind the end."""
        at = self.choices.choice([2**64 - 1, 2**63, self.history.last + 2, self.history.last + 10**6])
        record = Record(self.history.payloads[-1])
        record.sequence = at
        write(self.log, [("records", big(at), bytes(32) + record.payload())])
        return f"a record {at}"

    def value_odd(self):
        """The value of a record is too short for one, or empty."""
        at = self.choices.randrange(1, self.history.last + 1)
        value = self.choices.choice([b"", b"x", bytes(31), bytes(32), self.history.hash_before(at), bytes(40)])
        write(self.log, [("records", big(at), value)])
        return f"record {at} has a value of {len(value)} bytes"

    # -- what is beside the records ------------------------------------------------------------------------------------

    def index_checkpoints(self):
        """The index of checkpoints says something else."""
        checkpoints = [
            (line["sequence"], line["checkpoint"]["of"]) for line in self.history.lines if "checkpoint" in line
        ]
        at, of = self.choices.choice(checkpoints)
        how, change = self.choices.choice(
            [
                ("lacks one", (big(of), None)),
                ("has one of a record that none signed", (big(of + 1), big(at))),
                ("has one far behind the end", (big(2**64 - 1), big(at))),
                ("names another record", (big(of), big(1))),
                ("has an empty value", (big(of), b"")),
                ("has a short key", (b"\0", big(at))),
            ]
        )
        write(self.log, [("checkpoints", *change)])
        return f"the index of checkpoints {how} ({of})"

    def checkpoint_own(self):
        """A checkpoint of our own key, behind the records that it covers, and nothing else changed."""
        line = self.choices.choice([line for line in self.history.lines if "checkpoint" in line])
        payload = bytes.fromhex(line["payload"])
        checkpoint = line["checkpoint"]
        said = (
            f"muster checkpoint 1\ncluster {self.history.cluster}\nsequence {checkpoint['of']}\n"
            f"record {checkpoint['record_hash']}\nstate {checkpoint['state_digest']}\n"
        )
        changed = body(payload).replace(bytes.fromhex(checkpoint["signature"]), OWN.sign(said.encode()))
        at = line["sequence"]
        end, digest = self.put([sealed(changed), *self.history.payloads[at:]], at)
        return f"checkpoint {at} is signed by another key, {self.witness_variant(end, digest)}"

    def index_jobs(self):
        """The index of jobs leads to other records, or nowhere."""
        keys = sorted(self.base.families.get("by_job", {})) if self.base.name == "killed" else self.made_up_job_keys()
        keys = [key for key in keys if int.from_bytes(key[:8], "big") in self.jobs]
        key, other = self.choices.choice(keys), self.choices.choice(keys)
        self.touched = [int.from_bytes(key[:8], "big")]
        how, changes = self.choices.choice(
            [
                ("leads to another job's records", [(key, None), (key[:16] + other[16:], b"\1")]),
                ("lacks a record", [(key, None)]),
                ("lacks all of them", [(key, None) for key in keys]),
                ("has a job that nobody submitted", [(big(10**9) + other[8:], b"\1")]),
                ("has a job with the last of all numbers", [(b"\xff" * 8 + other[8:], b"\1")]),
                ("has another mark", [(key, b"\2")]),
            ]
        )
        write(self.log, [("by_job", key, value) for key, value in changes])
        return f"the index of jobs {how} ({int.from_bytes(key[:8], 'big')})"

    def index_jobs_malformed(self):
        """The index of jobs has a key of another length between those of an array."""
        number = self.choices.choice(self.jobs)
        self.touched = [number]
        key = self.choices.choice([b"\0" * 6 + b"\5", b"\0" * 7, b"", b"\0" * 8 + b"x" * 30])
        write(self.log, [("by_job", big(number) + key, b"\1")])
        return f"the index of jobs has a key of {8 + len(key)} bytes for {number}"

    def made_up_job_keys(self):
        """Keys that this index has for submissions, as far as a forger can tell from a bundle."""
        submitted = [line["record"] for line in self.history.lines if "job_submitted" in line["record"]["event"]]
        return [
            big(int(record["event"]["job_submitted"]["job"])) + big(0) + big(record["sequence"]) for record in submitted
        ]

    def index_commands(self):
        """What a repeated command is answered is another, unreadable or gone."""
        answers = self.base.families.get("commands", {})
        if len(answers) < 2:
            return None
        key, other = self.choices.sample(sorted(answers), 2)
        value = self.choices.choice(
            [None, b"", b"short", answers[other], answers[key][:30], self.choices.randbytes(60)]
        )
        write(self.log, [("commands", key, value)])
        return f"an answer is {'gone' if value is None else f'another, of {len(value)} bytes'}"

    def notices_forged(self):
        """Notifications are added that nothing calls for."""
        key = self.choices.choice([big(5) + bytes(4), b"", b"x", big(2**64 - 1) + b"\xff" * 4])
        value = self.choices.choice([b"", sealed(b""), sealed(self.choices.randbytes(50)), self.choices.randbytes(50)])
        write(self.log, [("notices", key, value)])
        return f"a notification {key.hex()} of {len(value)} bytes"

    def meta_forged(self):
        """What the log says of itself."""
        name, value = self.choices.choice(
            [
                (b"format", b"\0\0\0\2"),
                (b"format", b""),
                (b"format", None),
                (b"published", b"\xff" * 8),
                (b"published", b""),
                (b"published", big(1)),
                (b"published", None),
                (b"identity", None),
                (b"identity", b"short"),
                (b"identity", bytes(48)),
                (b"identity", bytes(16) + self.history.public_key),
                (b"other", b"x" * 1000),
            ]
        )
        write(self.log, [("meta", name, value)])
        return f"{name.decode()} is {'gone' if value is None else value.hex()[:20] or 'empty'}"

    # -- the key -------------------------------------------------------------------------------------------------------

    def key_own(self, *steps):
        """A forger's key takes the cluster's place: in the file only, in what the log says of itself, in all."""
        (self.data / "ledger.key").write_text(OWN.pem())
        steps = self.choices.choice([[], ["meta"], ["meta", "witness"], ["witness"], ["meta", "witness", "record 1"]])
        end, digest = self.history.last, bytes.fromhex(self.history.hashes[-1])
        if "meta" in steps:
            write(self.log, [("meta", b"identity", self.cluster() + OWN.public)])
        if "record 1" in steps:
            first = sealed(body(self.history.payloads[0]).replace(self.history.public_key, OWN.public))
            end, digest = self.put([first, *self.history.payloads[1:]], 1)
        if "witness" in steps:
            (self.data / "ledger/witness").write_text(witness(self.history.cluster, end, digest, OWN))
        return f"another key: in the file, {', '.join(steps)}"

    def cluster(self):
        return bytes.fromhex(self.history.cluster.replace("-", ""))

    def history_own(self):
        """All of the history is written anew with the forger's key in all places, and without the old checkpoints."""
        payloads = [self.forged(payload) for payload in self.without_checkpoints(1)]
        payloads[0] = sealed(body(payloads[0]).replace(self.history.public_key, OWN.public))
        end, digest = self.put(self.renumbered(payloads, 1), 1)
        write(self.log, [("meta", b"identity", self.cluster() + OWN.public)])
        (self.data / "ledger/witness").write_text(witness(self.history.cluster, end, digest, OWN))
        (self.data / "ledger.key").write_text(OWN.pem())
        for snapshot in self.snapshots():
            snapshot.unlink()
        return "all of it with another key and other owners"

    # -- snapshots, the witness, the folder ----------------------------------------------------------------------------

    def snapshot_forged(self):
        """Owners in snapshots are others, with right checksums inside and outside (F5)."""
        how = self.choice_of_signature()
        for path in self.snapshots():
            path.write_bytes(self.snapshot(path.read_bytes(), how))
        return f"owners in {len(self.snapshots())} snapshots, {how}" if self.snapshots() else None

    def choice_of_signature(self):
        return self.choices.choice(["signature as it was", "own signature", "no signature"])

    def snapshot(self, data, how):
        changed, rest = b"", data[156:]
        while rest:
            length = int.from_bytes(rest[2:6], "little")
            part, rest = rest[10 : 10 + length], rest[10 + length :]
            for honest, other in zip(HONEST, FORGED):
                part = part.replace(honest, other)
            changed += sealed(part)
        sequence, record_hash, digest = int.from_bytes(data[12:20], "little"), data[20:52], blake3(changed)
        said = f"muster snapshot 1\ncluster {self.history.cluster}\nsequence {sequence}\nrecord {record_hash.hex()}\nbody {digest.hex()}\n"
        signature = {"own signature": OWN.sign(said.encode()), "no signature": bytes(64)}.get(how, data[84:148])
        return data[:52] + digest + signature + len(changed).to_bytes(8, "little") + changed

    def snapshot_renamed(self):
        """A snapshot stands under another's name, and one of no record that there is."""
        paths = self.snapshots()
        if not paths:
            return None
        path = self.choices.choice(paths)
        name = self.choices.choice([self.history.last, self.history.last + 1, 0, 1, 2**64 - 1, 7])
        path.rename(path.with_name(f"{name:020}.snapshot"))
        return f"snapshot {path.stem} is named {name}"

    def witness_only(self):
        """The witness is another, the log as it was."""
        at = self.choices.randrange(1, self.history.last + 1)
        return self.witness_variant(at, bytes.fromhex(self.history.hashes[at - 1]))

    def witness_older(self):
        """An older witness, which anybody can have copied, is put back, and the log is as it was, or goes on otherwise from there."""
        if not self.base.older:
            return None
        old, sequence = self.base.older
        (self.data / "ledger/witness").write_bytes(old)
        if self.choices.random() < 0.3:
            return f"the witness of record {sequence} put back"
        payloads = [self.forged(payload) for payload in self.without_checkpoints(sequence + 1)]
        latest, made = Record(self.history.payloads[sequence - 1]).time, []
        squeezed = self.choices.random() < 0.5
        for at, payload in enumerate(payloads):
            record = Record(payload)
            record.sequence = sequence + 1 + at
            record.time = latest + at if squeezed else record.time
            made.append(record.payload())
        self.put(made, sequence + 1)
        for path in self.snapshots():
            if int(path.stem) > sequence:
                path.unlink()
        return f"the witness of record {sequence} put back, and another history from there on, {'within a second' if squeezed else 'with its times'}"

    def ledger_gone(self):
        """The folder of the ledger, or part of it, is gone or empty (F11)."""
        name = self.choices.choice(["ledger", "ledger/log", "ledger.key", "ledger/witness", "both", "emptied"])
        targets = {"both": ["ledger", "ledger.key"], "emptied": ["ledger/log"]}.get(name, [name])
        for target in targets:
            path = self.data / target
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if name == "emptied":
            self.log.mkdir()
        return f"{name} gone"

    def special_files(self):
        """A file is a folder, a link to nowhere or to itself, or a pipe that nobody writes to."""
        targets = [
            self.data / "ledger/witness",
            self.log / "CURRENT",
            self.data / "ledger.key",
            *self.snapshots(),
            newest_wal(self.log),
        ]
        path = self.choices.choice([path for path in targets if path and path.exists()])
        path.unlink()
        how = self.choices.choice(["folder", "link to nowhere", "link to itself", "pipe", "device"])
        if how == "folder":
            path.mkdir()
        elif how == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to({"link to nowhere": "/nowhere", "link to itself": path, "device": "/dev/zero"}[how])
        return f"{path.name} is a {how}"

    def archive_forged(self):
        """Decoded records in an archive say something else, or its bytes do, with a right checksum and without a signature."""
        archives = sorted((self.data / "ledger/archive").glob("*.gz"))
        if not archives:
            return None
        path = self.choices.choice(archives)
        plain = path.with_suffix(".plain")
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        forger = Counterfeiter(plain, self.choices)
        plain.unlink()
        name = self.choices.choice(
            [
                "decoded_altered",
                "end_cut",
                "begin_cut",
                "record_out",
                "all_replaced",
                "own_key",
                "header_odd",
                "record_odd",
                "line_odd",
                "nothing",
            ]
        )
        lines, what = getattr(forger, name)()
        path.write_bytes(gzip.compress(lines))
        if self.choices.random() < 0.3:
            path.rename(path.with_name(f"{1:020}-{self.choices.randrange(1, self.history.last):020}.musteraudit.gz"))
            what += ", under another name"
        return f"{path.name}: {what}"

    # -- events that never happened ------------------------------------------------------------------------------------

    def event_noise(self):
        """The bytes of an event are others, with a right checksum: who reads it may not be hurt."""
        at = self.choices.randrange(2, self.base.signed + 1)
        payloads = [self.noisy(self.history.payloads[at - 1]), *self.history.payloads[at:]]
        if self.choices.random() < 0.5:
            self.put(payloads, at)
            return f"noise in record {at} ({self.history.kinds[at - 1]}), chain right"
        write(self.log, [("records", big(at), self.history.hash_before(at) + payloads[0])])
        return f"noise in record {at} ({self.history.kinds[at - 1]}), chain as it was"

    def noisy(self, payload):
        """Some bytes behind sequence and time are others."""
        record = Record(payload)
        rest = bytearray(record.rest)
        for _ in range(self.choices.choice([1, 1, 2, 8])):
            at = self.choices.randrange(len(rest))
            size = self.choices.choice([1, 1, 9])
            rest[at : at + size] = self.choices.choice(
                [
                    self.choices.randbytes(size),
                    b"\xfd" + b"\xff" * 8,
                    b"\0",
                    b"\xfb\xff\xff",
                    bytes([rest[at] ^ 1 << self.choices.randrange(8)]),
                ]
            )
        record.rest = bytes(rest)
        return record.payload()

    def events_shuffled(self):
        """Behind the signed end stand records from elsewhere in the history, in an order in which they never were."""
        return self.added(
            [self.choices.choice(self.history.payloads[1:]) for _ in range(self.choices.choice([1, 5, 40]))]
        )

    def events_noisy(self):
        """Behind the signed end stand records with noise in their events."""
        found = [self.choices.choice(self.history.payloads[1:]) for _ in range(self.choices.choice([1, 3]))]
        return self.added([self.noisy(payload) for payload in found])

    def added(self, payloads):
        latest = Record(self.history.payloads[-1]).time
        made = []
        for at, payload in enumerate(payloads):
            record = Record(payload)
            record.sequence, record.time = self.history.last + 1 + at, latest + at
            made.append(record.payload())
        values, _ = self.history.values(made, self.history.last + 1)
        write(self.log, [("records", big(self.history.last + 1 + at), value) for at, value in enumerate(values)])
        return f"{len(made)} records from elsewhere behind the end"


FORGERIES = [
    "owner_anywhere",
    "owner_behind_checkpoint",
    "owners_all",
    "owner_without_chain",
    "owner_without_witness",
    "record_out",
    "record_gone",
    "record_twice",
    "records_swapped",
    "time_moved",
    "end_cut",
    "tail_altered",
    "end_added",
    "end_added_late",
    "key_longer",
    "key_shorter",
    "key_far",
    "value_odd",
    "index_checkpoints",
    "checkpoint_own",
    "index_jobs",
    "index_jobs_malformed",
    "index_commands",
    "notices_forged",
    "meta_forged",
    "key_own",
    "history_own",
    "snapshot_forged",
    "snapshot_renamed",
    "witness_only",
    "witness_older",
    "ledger_gone",
    "special_files",
    "archive_forged",
]
FIT_FOR_ARCHIVED = {
    "end_cut",
    "end_added",
    "index_checkpoints",
    "meta_forged",
    "snapshot_forged",
    "snapshot_renamed",
    "archive_forged",
    "ledger_gone",
}
EVENTS = ["event_noise", "event_noise", "event_noise", "events_shuffled", "events_noisy"]

# ------------------------------------------------------------------------------------------------- forgeries of bundles


class Counterfeiter:
    """Makes bundles of a genuine one, without the key. Each method gives the lines of one, and says what it did."""

    def __init__(self, bundle, choices):
        self.choices = choices
        lines = bundle.read_bytes().splitlines()
        self.header, self.records, self.trailer = (
            json.loads(lines[0]),
            [json.loads(line) for line in lines[1:-1]],
            json.loads(lines[-1]),
        )
        self.cluster = self.header["cluster_id"]

    def bundle(self, signing="none"):
        """The bundle that follows from header and records, with chain and checksum made right."""
        lines = [dumped(self.header), *map(dumped, self.records)]
        digest = hashlib.sha256(b"".join(lines)).hexdigest()
        trailer = {"records": len(self.records), "sha256": digest}
        said = f"muster bundle 1\ncluster {self.cluster}\nfirst {self.header['first']}\nlast {self.header['last']}\nsha256 {digest}\n"
        if signing == "old" and "signature" in self.trailer:
            trailer["signature"] = self.trailer["signature"]
        elif signing == "own":
            trailer["signature"] = OWN.sign(said.encode()).hex()
        elif signing != "none":
            trailer["signature"] = signing
        return b"".join([*lines, dumped(trailer)])

    def any_signing(self):
        return self.choices.choice(["none", "none", "old", "own", None, "", [], 0, "00" * 64, False, {}])

    def chain(self):
        previous = bytes.fromhex(self.header["previous_hash"])
        for record in self.records:
            previous = blake3(previous + bytes.fromhex(record["payload"]))
            record["hash"] = previous.hex()

    def renumber(self):
        for at, record in enumerate(self.records):
            record["sequence"] = self.header["first"] + at
        self.header["last"] = self.header["first"] + len(self.records) - 1

    def decoded_altered(self):
        """A decoded record says something else; its bytes are as they were (F3, 1)."""
        record = self.choices.choice(self.records)
        record["record"]["actor"] = {"user": {"user": "toor", "uid": 0, "gid": 0}}
        signing = self.any_signing()
        return self.bundle(signing), f"record {record['sequence']} is decoded otherwise, signature {signing!r}"

    def end_cut(self):
        """The last tenth is cut off (F3, 2)."""
        self.records = self.records[: len(self.records) * 9 // 10]
        self.renumber()
        signing = self.any_signing()
        return self.bundle(signing), f"the last tenth cut off, signature {signing!r}"

    def begin_cut(self):
        """The first records are cut off: the bundle begins later."""
        count = self.choices.randrange(1, len(self.records))
        self.header["previous_hash"], self.header["first"] = (
            self.records[count - 1]["hash"],
            self.header["first"] + count,
        )
        self.records = self.records[count:]
        signing = self.any_signing()
        return self.bundle(signing), f"the first {count} cut off, signature {signing!r}"

    def record_out(self):
        """A record and all checkpoints are taken out, the chain is made right (F3, 3)."""
        self.records = [record for record in self.records if "checkpoint" not in record]
        out = self.records.pop(self.choices.randrange(1, len(self.records)))
        self.renumber()
        self.chain()
        signing = self.any_signing()
        return self.bundle(signing), f"record {out['sequence']} and the checkpoints taken out, signature {signing!r}"

    def all_replaced(self):
        """Each record but the first is replaced, nothing is signed (F3, 4)."""
        self.records = [record for record in self.records if "checkpoint" not in record]
        for record in self.records[1:]:
            record["payload"] = sealed(b"forged" * 5).hex()
        self.renumber()
        self.chain()
        signing = self.any_signing()
        return self.bundle(signing), f"all records replaced, signature {signing!r}"

    def behind_checkpoint(self):
        """All behind the last record that a checkpoint covers is replaced, the checkpoints are genuine."""
        covered = max((record["checkpoint"]["of"] for record in self.records if "checkpoint" in record), default=0)
        for record in self.records:
            if record["sequence"] > covered and "checkpoint" not in record:
                record["payload"] = sealed(b"forged" * 5).hex()
        self.chain()
        signing = self.any_signing()
        return self.bundle(signing), f"all behind record {covered} replaced, signature {signing!r}"

    def checkpoint_moved(self):
        """A genuine checkpoint is shown in a record of our own, in a bundle that has only records of our own."""
        checkpoint = next((record["checkpoint"] for record in reversed(self.records) if "checkpoint" in record), None)
        if checkpoint is None:
            return self.all_replaced()
        first = checkpoint["of"] + self.choices.choice([0, 1, 2])
        self.header["first"] = first
        self.header["previous_hash"] = checkpoint["record_hash"] if self.choices.random() < 0.7 else "00" * 32
        self.records = [{"payload": sealed(b"own" * at).hex(), "record": {"event": {"x": 1}}} for at in range(1, 9)]
        self.records[4] |= {"checkpoint": checkpoint, "record": {"event": {"checkpoint": {}}}}
        self.renumber()
        self.chain()
        signing = self.any_signing()
        return self.bundle(
            signing
        ), f"own records from {first} on with a genuine checkpoint of {checkpoint['of']}, signature {signing!r}"

    def own_key(self):
        """All of it is signed by a key of our own, which the header may name or not."""
        if self.choices.random() < 0.5:
            self.header["public_key"] = OWN.public.hex()
        self.records = [record for record in self.records if "checkpoint" not in record]
        self.renumber()
        self.chain()
        return self.bundle("own"), f"signed by another key, the header names {self.header['public_key'][:8]}"

    def header_odd(self):
        """The header has values of other kinds, or ones that mean something else."""
        name, value = self.choice_of_header()
        self.header[name] = value
        signing = self.any_signing()
        return self.bundle(signing), f"{name} in the header is {value!r}, signature {signing!r}"

    def choice_of_header(self):
        return self.choices.choice(
            [
                ("first", "1"),
                ("first", 1.0),
                ("first", True),
                ("first", -1),
                ("first", None),
                ("last", 10**30),
                ("last", 0),
                ("last", -5),
                ("muster_audit", True),
                ("muster_audit", 1.0),
                ("muster_audit", 2),
                ("cluster_id", 7),
                ("cluster_id", None),
                ("cluster_id", ""),
                ("cluster_id", "{" + self.cluster + "}"),
                ("cluster_id", "urn:uuid:" + self.cluster.upper()),
                ("public_key", 5),
                ("public_key", ""),
                ("public_key", "01" + "00" * 31),
                ("public_key", "00" * 32),
                ("public_key", " " + self.header["public_key"].upper()),
                ("previous_hash", 5),
                ("previous_hash", ""),
                ("previous_hash", "zz"),
                ("more", "x" * 10**6),
            ]
        )

    def record_odd(self):
        """A record has values of other kinds."""
        at = self.choices.randrange(len(self.records))
        name, value = self.choices.choice(
            [
                ("sequence", "1"),
                ("sequence", float(at + 1)),
                ("sequence", None),
                ("payload", 5),
                ("payload", None),
                ("payload", ""),
                ("hash", None),
                ("record", []),
                ("record", "text"),
                ("record", 5),
                ("record", {"event": []}),
                ("record", {"event": {"checkpoint": 1}}),
                ("record", None),
                ("checkpoint", None),
                ("checkpoint", {}),
                ("checkpoint", []),
                ("checkpoint", {"of": "1"}),
                ("checkpoint", {"of": -1, "record_hash": "", "state_digest": "", "signature": ""}),
            ]
        )
        self.records[at][name] = value
        if name == "payload":
            self.records[at]["hash"] = ""
        signing = self.any_signing()
        return self.bundle(signing), f"{name} of line {at + 2} is {value!r}, signature {signing!r}"

    def line_odd(self):
        """A line is JSON, but nothing that a bundle has."""
        lines = self.bundle("old").splitlines(keepends=True)
        at = self.choices.randrange(len(lines))
        lines[at] = self.choices.choice(
            [
                b"5\n",
                b"null\n",
                b"[]\n",
                b'"sequence hash payload records sha256"\n',
                b"[" * 200_000 + b"\n",
                b"1" * 5000 + b"\n",
                b"\n",
                b"\xff\xfe\n",
                b'["sequence","hash","payload","records","sha256"]\n',
                b"NaN\n",
                b"{}\n",
                "{}\n".encode("utf-16"),
                b"1e999\n",
                b'{"sequence": Infinity}\n',
            ]
        )
        return b"".join(lines), f"line {at + 1} of {len(lines)} is {lines[at][:30]!r}"

    def trailer_twice(self):
        """The trailer says things twice, or more than it should."""
        lines = self.bundle("old").splitlines(keepends=True)
        extra = self.choices.choice(
            [b'"records":1,', b'"signature":null,', b'"more":1,', b'"sha256":"00",', b" ", b"\t"]
        )
        record = self.choices.choice([True, False])
        if record:
            at = self.choices.randrange(1, len(lines) - 1)
            lines[at] = lines[at].replace(b'"sequence"', b'"sequence":0,"sequence"')
        lines[-1] = lines[-1].replace(b"{", b"{" + extra, 1)
        return (
            b"".join(lines),
            f"the trailer has {extra!r} in front, {'a record says its sequence twice' if record else 'the rest as it was'}",
        )

    def nothing(self):
        """A bundle of no records."""
        self.records, self.header["last"] = [], self.header["first"] - 1
        signing = self.any_signing()
        return self.bundle(signing), f"a bundle of nothing, signature {signing!r}"


BUNDLE_FORGERIES = [
    "decoded_altered",
    "end_cut",
    "begin_cut",
    "record_out",
    "all_replaced",
    "behind_checkpoint",
    "checkpoint_moved",
    "own_key",
    "header_odd",
    "record_odd",
    "line_odd",
    "trailer_twice",
    "nothing",
]


def dumped(value):
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
