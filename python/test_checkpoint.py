"""Tests of the add-on, with programs that are processes of their own. Run by make test."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from muster._store import Store  # noqa: E402

PATIENCE = 60

# A program whose state is a count; it adds to it at each line that it is sent.
COUNTS = """
    import sys, muster
    state = {"count": 0}
    progress = muster.checkpoint(lambda: dict(state), state.update)
    print("at", state["count"], progress.restored, flush=True)
    for line in sys.stdin:
        state["count"] += 1
        progress.step()
        print("count", state["count"], flush=True)
"""


class Program:
    """A running Python program."""

    def __init__(self, text, directory, **variables):
        environment = dict(os.environ, PYTHONPATH=HERE, MUSTER_CHECKPOINT_DIR=directory, MUSTER_CHECKPOINT_INTERVAL="0")
        environment.update(variables)
        self.process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(text)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def tell(self, text=""):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ends(self):
        self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE)
        self.process.stdout.close()
        return code


class CheckpointTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = os.path.join(temporary.name, "checkpoints")

    def files(self):
        return sorted(os.listdir(self.directory)) if os.path.isdir(self.directory) else []

    def test_a_program_that_is_stopped_goes_on_where_it_was(self):
        first = Program(COUNTS, self.directory)
        self.assertEqual(first.line(), "at 0 False")
        for count in (1, 2):
            first.tell()
            self.assertEqual(first.line(), f"count {count}")
        self.assertEqual(self.files(), [])
        first.process.send_signal(signal.SIGTERM)
        first.tell()  # the next step is done to its end, and then it stops
        self.assertEqual(first.ends(), 128 + signal.SIGTERM)
        second = Program(COUNTS, self.directory)
        self.assertEqual(second.line(), "at 3 True")
        self.assertEqual(second.ends(), 0)

    def test_a_program_without_steps_is_saved_at_once(self):
        text = """
            import signal, muster
            progress = muster.checkpoint(lambda: {"answer": 42}, print)
            print("runs", flush=True)
            while True: signal.pause()
        """
        first = Program(text, self.directory)
        self.assertEqual(first.line(), "runs")
        first.process.send_signal(signal.SIGTERM)
        self.assertEqual(first.ends(), 128 + signal.SIGTERM)
        second = Program(text, self.directory)
        self.assertEqual(second.line(), "{'answer': 42}")
        second.process.kill()
        second.ends()

    def test_it_is_saved_at_intervals_and_the_last_are_kept(self):
        program = Program(COUNTS, self.directory, MUSTER_CHECKPOINT_INTERVAL="0.000001", MUSTER_CHECKPOINT_KEEP="2")
        program.line()
        for _ in range(5):
            program.tell()
            program.line()
        program.process.kill()  # nothing is saved now
        program.ends()
        self.assertEqual(self.files(), ["checkpoint-000000000004-000000", "checkpoint-000000000005-000000"])
        again = Program(COUNTS, self.directory)
        self.assertEqual(again.line(), "at 5 True")
        again.ends()

    def test_members_that_share_a_directory_restore_the_same(self):
        for rank, steps in ((0, 1), (1, 2)):
            store = Store(self.directory, rank)
            store.save(steps, b"of %d" % rank)
        for rank in range(3):
            self.assertEqual(Store(self.directory, rank).newest(), (2, b"of 1"))
        Store(self.directory, 0).save(2, b"of 0")
        self.assertEqual(Store(self.directory, 7).newest(), (2, b"of 0"))

    def test_what_nobody_goes_on_from_is_removed(self):
        os.makedirs(self.directory)
        Store(self.directory, 3).save(1, b"of a larger job")
        Store(self.directory, 3).save(4, b"newer than all that is kept")
        Store(self.directory, 1).save(1, b"of a member that saves less often")
        for name, age in (("part-000000-killed", 0), ("part-000001-being-written", 0), ("part-of-old", 2 * 24 * 3600)):
            path = os.path.join(self.directory, name)
            with open(path, "wb"):
                pass
            os.utime(path, (os.stat(path).st_mtime - age,) * 2)
        store = Store(self.directory, 0, keep=2, size=2)
        for number in (1, 2, 3):
            store.save(number, b"")
        self.assertEqual(self.files(), [
            "checkpoint-000000000001-000001", "checkpoint-000000000002-000000", "checkpoint-000000000003-000000",
            "checkpoint-000000000004-000003", "part-000001-being-written"])

    def test_only_the_first_saves_where_that_is_enough(self):
        text = """
            import muster
            progress = muster.checkpoint(lambda: 1, print, save_on="first")
            progress.save()
        """
        self.assertEqual(Program(text, self.directory, RANK="1").ends(), 0)
        self.assertEqual(self.files(), [])
        self.assertEqual(Program(text, self.directory, RANK="0").ends(), 0)
        self.assertEqual(len(self.files()), 1)

    def test_what_is_not_whole_is_passed_over(self):
        store = Store(self.directory)
        store.save(1, b"good")
        path = store.save(2, b"torn")
        with open(path, "r+b") as file:
            file.truncate(os.path.getsize(path) - 1)
        with open(os.path.join(self.directory, "part-x"), "wb") as file:
            file.write(b"begun")
        with open(os.path.join(self.directory, "checkpoint-000000000003-000000"), "wb"):
            pass
        self.assertEqual(store.newest(), (1, b"good"))

    def test_a_failed_save_leaves_what_was_there(self):
        text = """
            import muster
            state = 1
            progress = muster.checkpoint(lambda: state, print)
            progress.save()
            state = lambda: None  # nothing that pickle can write
            try:
                progress.save()
            except Exception as e:
                print("failed", flush=True)
        """
        program = Program(text, self.directory)
        self.assertEqual(program.line(), "failed")
        program.ends()
        self.assertEqual(len(self.files()), 1)

    def test_objects_with_state_dicts(self):
        text = """
            import muster
            class Model:
                def __init__(self): self.weights = [0.0]
                def state_dict(self): return {"weights": self.weights}
                def load_state_dict(self, state): self.weights = state["weights"]
            model, optimizer = Model(), Model()
            progress = muster.checkpoint_objects(model, optimizer)
            print(model.weights, optimizer.weights, flush=True)
            model.weights, optimizer.weights = [1.5], [2.5]
            progress.save()
        """
        for want in ("[0.0] [0.0]", "[1.5] [2.5]"):
            program = Program(text, self.directory)
            self.assertEqual(program.line(), want)
            self.assertEqual(program.ends(), 0)

    def test_the_programs_own_handler_is_called_too(self):
        text = """
            import signal, muster
            signal.signal(signal.SIGTERM, lambda *_: print("own", flush=True))
            muster.checkpoint(lambda: 1, print)
            print("runs", flush=True)
            while True: signal.pause()
        """
        program = Program(text, self.directory)
        program.line()
        program.process.send_signal(signal.SIGTERM)
        self.assertEqual(program.line(), "own")
        self.assertEqual(program.ends(), 128 + signal.SIGTERM)

    def test_signs_of_life(self):
        with tempfile.NamedTemporaryFile() as heartbeat:
            os.utime(heartbeat.name, (1, 1))
            program = Program(COUNTS, self.directory, LATTICE_HEARTBEAT_FILE=heartbeat.name)
            program.line()
            program.tell()
            program.line()
            self.assertGreater(os.stat(heartbeat.name).st_mtime, 1)
            program.ends()

    def test_the_directory_that_lattice_names(self):
        program = Program(COUNTS, "", LATTICE_CHECKPOINT_CONFIG=f"root={self.directory}")
        program.line()
        program.process.send_signal(signal.SIGTERM)
        program.tell()
        program.ends()
        self.assertEqual(len(self.files()), 1)


if __name__ == "__main__":
    unittest.main()
