"""Checkpoints as files of a directory: whole or not there, the last few of them kept."""

import hashlib
import os
import re
import tempfile
import time

_NAME = re.compile(r"^checkpoint-(\d{12})-(\d{6})$")
_ABANDONED = 24 * 3600  # seconds after which nobody can still be writing a file
_MAGIC = b"muster checkpoint 1\n"


class Store:
    """A directory of checkpoints, which several members of a job may share."""

    def __init__(self, directory, rank=0, keep=3, size=None):
        if keep < 1:
            raise ValueError(f"keep is {keep}: at least one checkpoint must be kept")
        self.directory, self.rank, self.keep, self.size = directory, rank, keep, size

    def save(self, number, content):
        """Writes the checkpoint with the number. Whoever sees its name sees all of it."""
        os.makedirs(self.directory, exist_ok=True)
        path = os.path.join(self.directory, f"checkpoint-{number:012d}-{self.rank:06d}")
        descriptor, part = tempfile.mkstemp(prefix=f"part-{self.rank:06d}-", dir=self.directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_MAGIC)
                file.write(hashlib.sha256(content).digest())
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        except BaseException:
            if os.path.exists(part):
                os.unlink(part)
            raise
        self._sync()
        self._prune()
        return path

    def newest(self):
        """The number and content of the newest checkpoint that is whole; None if there is none.

        All members find the same one: of equal numbers that of the lowest rank.
        """
        for number, rank in sorted(self._all(), key=lambda one: (-one[0], one[1])):
            content = self._read(os.path.join(self.directory, f"checkpoint-{number:012d}-{rank:06d}"))
            if content is not None:
                return number, content
        return None

    def _all(self):
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return []
        return [(int(m.group(1)), int(m.group(2))) for m in map(_NAME.match, names) if m]

    @staticmethod
    def _read(path):
        try:
            with open(path, "rb") as file:
                text = file.read()
        except FileNotFoundError:  # another member has pruned it
            return None
        head = len(_MAGIC) + hashlib.sha256().digest_size
        content = text[head:]
        if text[:head] != _MAGIC + hashlib.sha256(content).digest():
            return None
        return content

    def _prune(self):
        """Removes what nobody goes on from: all but the last few of each member that is in the job, what it
        left unfinished, and what members left that the job has no more and that is older than all this keeps."""
        own = sorted((n for n, rank in self._all() if rank == self.rank), reverse=True)
        oldest = own[: self.keep][-1]
        for number, rank in self._all():
            theirs = rank == self.rank or (self.size is not None and rank >= self.size)
            if theirs and number < oldest:
                self._remove(f"checkpoint-{number:012d}-{rank:06d}")
        for name in os.listdir(self.directory):
            if name.startswith(f"part-{self.rank:06d}-"):
                self._remove(name)  # this member saves one at a time, so nobody writes it any more
            elif name.startswith("part-") and self._age(name) > _ABANDONED:
                self._remove(name)

    def _remove(self, name):
        try:
            os.unlink(os.path.join(self.directory, name))
        except FileNotFoundError:  # another member was faster
            pass

    def _age(self, name):
        try:
            return time.time() - os.stat(os.path.join(self.directory, name)).st_mtime
        except FileNotFoundError:
            return 0

    def _sync(self):
        """Has the name outlive a crash of the machine, where directories can be synced."""
        try:
            descriptor = os.open(self.directory, os.O_RDONLY)
        except OSError:
            return
        try:
            os.fsync(descriptor)
        except OSError:
            pass
        finally:
            os.close(descriptor)
