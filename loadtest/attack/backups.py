"""What is done to a folder of backups by somebody who can write to it and has no key. Each returns what it was."""

import json
import os
import shutil

import forge

MANIFEST = "manifest.json"


class Tamperer:
    """Changes one copy of a folder of backups: `latest` is the backup that a restore takes, `earlier` the one before it."""

    def __init__(self, folder, choices):
        self.choices = choices
        *_, self.earlier, self.latest = sorted(path for path in folder.iterdir() if path.is_dir())

    # -- parts

    def manifest(self):
        return json.loads((self.latest / MANIFEST).read_text())

    def write(self, manifest):
        path = self.latest / MANIFEST
        path.chmod(0o600)
        path.write_text(json.dumps(manifest))

    def files(self, *ends):
        """The files of the latest backup with such ends, as the manifest has them."""
        full = [file for file in self.manifest()["files"] if file["bytes"]]
        return [file for file in full if not ends or file["path"].endswith(ends)] or full

    def own(self, file):
        """The file as one that is no hard link to that of another backup."""
        path = self.latest / file["path"]
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
        return path

    def made_right(self, *paths):
        """The manifest with sizes and checksums of what is there now."""
        manifest = self.manifest()
        for file in manifest["files"]:
            path = self.latest / file["path"]
            if str(path) in {str(path) for path in paths} or not paths:
                data = path.read_bytes()
                file |= {"bytes": len(data), "blake3": forge.blake3(data).hex()}
        self.write(manifest)

    # -- kinds

    def file_altered(self, tamper):
        """A file is another; the manifest knows nothing of it."""
        file = self.choices.choice(self.files())
        path = self.own(file)
        return f"{file['path']}: {tamper(path, [], self.choices)}"

    def file_altered_and_manifest(self, tamper):
        """A file is another, and the manifest says that this is right."""
        file = self.choices.choice(self.files())
        path = self.own(file)
        what = tamper(path, [], self.choices)
        if path.exists():
            self.made_right(path)
        else:
            manifest = self.manifest()
            manifest["files"] = [other for other in manifest["files"] if other["path"] != file["path"]]
            self.write(manifest)
        return f"{file['path']}: {what}, and the manifest made right"

    def manifest_altered(self, tamper):
        return f"manifest: {tamper(self.latest / MANIFEST, [], self.choices)}"

    def manifest_wrong(self, _):
        """A manifest in good form with wrong contents."""
        manifest = self.manifest()
        key, value = self.choices.choice([
            ("sequence", 1), ("sequence", 2**63), ("hash", "00" * 32), ("hash", ""), ("public_key", "00" * 32), ("public_key", "zz"),
            ("has_key", not manifest["has_key"]), ("feature_level", 10**9), ("feature_level", 0), ("muster_backup", 2), ("muster_backup", -1),
            ("files", []), ("files", manifest["files"] * 2), ("files", [{}]), ("verified_from", 10**9), ("cluster_id", "x"), ("made", 0),
            ("cluster_id", "00000000-0000-4000-8000-000000000000"), ("version", "x" * 100_000), ("time", "9999-12-31T23:59:59Z"),
        ])
        self.write(manifest | {key: value})
        return f"manifest: {key} is {str(value)[:60]}"

    def path_elsewhere(self, _):
        """The manifest names a file outside the backup, or the same file under another name."""
        manifest = self.manifest()
        file = self.choices.choice(manifest["files"])
        other = self.choices.choice([
            "../outside", "../../outside", "/tmp/outside-of-a-backup", "ledger/../../outside", "./" + file["path"], "ledger.key", "ledger.key/x",
            "\0", "", ".", "..", "a" * 5000, "ledger/log/../../../outside", "ledger//log/x", "spool/x", "muster.sock",
        ])
        source = self.latest / file["path"]
        target = os.path.normpath(os.path.join(self.latest, other)) if "\0" not in other and 0 < len(other) < 300 else None
        if target and target.startswith(str(self.latest.parent)) and not os.path.exists(target) and os.path.isdir(os.path.dirname(target)):
            shutil.copy2(source, target)
        if self.choices.random() < 0.5:
            manifest["files"].append(file | {"path": other})
        else:
            file["path"] = other
        self.write(manifest)
        return f"manifest: a file is called {other[:60]!r}"

    def no_file(self, _):
        """Instead of a file there is a link, a pipe, a folder, a device."""
        file = self.choices.choice(self.files())
        path = self.latest / file["path"]
        kept = path.with_name("kept")
        shutil.copy2(path, kept)
        path.unlink()
        what = self.choices.choice(["link to the same", "link to a secret", "pipe", "folder", "link to itself", "device"])
        match what:
            case "link to the same":
                path.symlink_to(kept)
            case "link to a secret":
                path.symlink_to("/etc/shadow")
                self.made_right(path)
            case "pipe":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "link to itself":
                path.symlink_to(path)
            case "device":
                path.symlink_to("/dev/zero")
        return f"{file['path']}: {what}"

    def of_the_earlier(self, _):
        """Files of the backup before, with a manifest that fits."""
        file = self.choices.choice(self.files(".log", ".sst", "witness", "CURRENT"))
        other = self.earlier / file["path"]
        path = self.own(file)
        if not other.exists():
            return None
        shutil.copy2(other, path)
        self.made_right(path)
        return f"{file['path']}: that of the backup before"

    def manifest_of_the_earlier(self, _):
        shutil.copy2(self.earlier / MANIFEST, self.latest / MANIFEST)
        return "the manifest of the backup before"

    def something_more(self, _):
        """Files that the manifest does not name."""
        name = self.choices.choice(["ledger/log/999999.log", "ledger/log/999999.sst", "ledger/snapshots/999999.snapshot", "ledger.key", "ledger/restored", "x"])
        path = self.latest / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(self.choices.randbytes(200))
        return f"{name} besides"

    def write_ahead_log_forged(self, _):
        """Records behind the end, with a right chain, and a manifest that fits."""
        logs = [file for file in self.files(".log") if file["path"].startswith("ledger/log/")]
        path = self.own(self.choices.choice(logs))
        data = bytearray(path.read_bytes())
        cut = self.choices.randrange(len(data))
        path.write_bytes(bytes(data[:cut]))
        self.made_right(path)
        return f"{path.name}: cut to {cut} of {len(data)}, and the manifest made right"


KINDS = [
    "file_altered", "file_altered", "file_altered_and_manifest", "file_altered_and_manifest", "file_altered_and_manifest", "manifest_altered",
    "manifest_wrong", "manifest_wrong", "path_elsewhere", "path_elsewhere", "no_file", "no_file", "of_the_earlier", "manifest_of_the_earlier",
    "something_more", "write_ahead_log_forged",
]
