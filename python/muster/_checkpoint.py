"""When a program's state is saved and restored."""

import os
import pickle
import signal
import sys
import threading
import time

from muster._store import Store

# A program that is asked to stop ends with this code once its state is saved: it has
# not come to its end, and nobody is to take it for that.
STOPPED = 128 + signal.SIGTERM


asked = False
"""Whether the program has called checkpoint(): then nobody else saves its state."""


def checkpoint(state_save, state_load, *, directory=None, interval=None, keep=None, save_on="all"):
    """Restores the program's state if there is a checkpoint, and has it saved from now on.

    state_save() returns the state, as anything that pickle can write; state_load(state)
    takes it. The state is saved when the program is asked to stop (SIGTERM), and every
    interval seconds.

    directory: where checkpoints are; by default the root that LATTICE_CHECKPOINT_CONFIG
        names ("root=/data"), or MUSTER_CHECKPOINT_DIR, which wins. On a volume that all pods share, all
        restore the same state, also those that are new.
    interval: seconds, by default MUSTER_CHECKPOINT_INTERVAL or 600; 0 for never. It takes
        calls of step().
    keep: how many checkpoints of each member are kept, by default MUSTER_CHECKPOINT_KEEP or 3.
    save_on: "all" members save, or the "first" in rank alone: enough where the directory
        is shared and all have the same state.

    Returns a Checkpoint. Call it from the main thread.
    """
    global asked
    asked = True
    return Checkpoint(state_save, state_load, directory, interval, keep, save_on)


def checkpoint_objects(*objects, **options):
    """checkpoint() for objects with state_dict() and load_state_dict(), as those of torch.

    Takes models, optimizers, schedulers and the like, and the options of checkpoint().
    """

    def save():
        return [o.state_dict() for o in objects]

    def load(states):
        if len(states) != len(objects):
            raise ValueError(f"the checkpoint is of {len(states)} objects, and not of {len(objects)}")
        for o, state in zip(objects, states):
            o.load_state_dict(state)

    return checkpoint(save, load, **options)


class Checkpoint:
    """Watches over the state of a program; see checkpoint()."""

    def __init__(self, state_save, state_load, directory, interval, keep, save_on):
        if save_on not in ("all", "first"):
            raise ValueError(f'save_on is {save_on!r}, and not "all" or "first"')
        self._state_save = state_save
        rank = int(os.environ.get("RANK") or 0)
        self._saves = save_on == "all" or rank == 0
        size = int(os.environ.get("WORLD_SIZE") or 0) or None
        self._store = Store(directory or _directory(), rank, int(_setting("MUSTER_CHECKPOINT_KEEP", keep, 3)), size)
        self._interval = float(_setting("MUSTER_CHECKPOINT_INTERVAL", interval, 600))
        self._heartbeat = os.environ.get("LATTICE_HEARTBEAT_FILE")
        self._steps = False  # the program calls step()
        self._asked = False  # to stop
        self._saving = self._stopping = False
        self.number = 0
        """How many steps the state is worth, those before it was restored included."""
        self.restored = False
        """Whether a state was restored."""
        found = self._store.newest()
        if found is not None:
            self.number = found[0]
            state_load(pickle.loads(found[1]))
            self.restored = True
        self._saved_at = time.monotonic()
        self._watch()

    def step(self):
        """Says that a step of the work is done and the state whole.

        Saves if it is time to, or if the program was asked to stop: then it ends here. A
        program that never calls it is taken to have a whole state at any time.
        """
        self._steps = True
        self.number += 1
        if self._heartbeat:
            try:
                os.utime(self._heartbeat)
            except OSError:
                pass  # nobody watches any more
        if self._asked:
            self._stop()
        elif 0 < self._interval <= time.monotonic() - self._saved_at:
            self.save()

    def save(self):
        """Saves the state now, if this member is to."""
        self._saved_at = time.monotonic()
        if not self._saves:
            return
        self._saving = True
        try:
            content = pickle.dumps(self._state_save(), protocol=pickle.HIGHEST_PROTOCOL)
            if not self._steps:
                self.number += 1  # without steps, saves are counted
            self._store.save(self.number, content)
        finally:
            self._saving = False
        if self._asked and not self._steps and not self._stopping:
            self._stop()  # asked meanwhile

    def _watch(self):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("muster.checkpoint must be called from the main thread: only it hears signals")
        self._process = os.getpid()
        self._before = signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, number, frame):
        if os.getpid() != self._process:  # one that was forked, such as loads data: the state is not its own
            signal.signal(signal.SIGTERM, self._before if callable(self._before) else signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self._asked = True
        if not self._steps and not self._saving:
            self._stop()

    def _stop(self):
        self._stopping = True
        self.save()
        if callable(self._before):  # what the program itself wants done
            self._before(signal.SIGTERM, None)
        sys.stdout.flush()
        sys.exit(STOPPED)


def _directory():
    if os.environ.get("MUSTER_CHECKPOINT_DIR"):
        return os.environ["MUSTER_CHECKPOINT_DIR"]
    for setting in os.environ.get("LATTICE_CHECKPOINT_CONFIG", "").split(","):
        name, _, value = setting.partition("=")
        if name.strip() == "root" and value:
            return value
    raise ValueError("no directory for checkpoints: give one, or set MUSTER_CHECKPOINT_DIR")


def _setting(variable, given, otherwise):
    if given is not None:
        return given
    return os.environ.get(variable) or otherwise
