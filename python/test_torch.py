"""Tests of what is automatic for torch, of which fake/ has as much as they need. Run by make test."""

import os
import signal
import tempfile
import unittest

from test_checkpoint import HERE, Program

PATHS = os.pathsep.join(os.path.join(HERE, folder) for folder in ("", "auto", "fake"))

# A program that knows nothing of muster: it trains one step for each line that it is sent.
TRAINS = """
    import sys
    import torch
    class Line(torch.nn.Module):
        def __init__(self):
            self.slope, self.inner = torch.Tensor(0.0), Inner()
        def forward(self, x):
            return self.slope.value * x + self.inner(x)
    class Inner(torch.nn.Module):
        def __init__(self):
            self.offset = torch.Tensor(0.0)
        def forward(self, x):
            return self.offset.value
    model, loose = Line(), torch.Tensor(5.0)
    optimizer = torch.optim.SGD([*model.parameters(), loose], lr=0.1)
    schedule = torch.optim.lr_scheduler.Halve(optimizer, 3)
    def show():
        print(optimizer.steps, schedule.last_epoch, *(round(p.value, 6) for p in optimizer.param_groups[0]["params"]),
              optimizer.param_groups[0]["lr"], flush=True)
    print("begins", flush=True)
    for line in sys.stdin:
        x = torch.rand()
        error = model(x) - (2 * x + 1)
        if line == "show\\n":
            show()
            continue
        optimizer.zero_grad()
        model.slope.grad, model.inner.offset.grad, loose.grad = error * x, error, 1.0
        optimizer.step()
        schedule.step()
        show()
"""


class TorchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.directory = os.path.join(temporary.name, "checkpoints")

    def program(self, text=TRAINS, **variables):
        settings = {"PYTHONPATH": PATHS, "LATTICE_AUTOPATCH": "torch"}
        settings.update(variables)
        program = Program(text, self.directory, **settings)
        self.addCleanup(self.end, program.process)
        return program

    @staticmethod
    def end(process):
        """Leaves nothing of a program whose test has failed."""
        if not process.stdout.closed:
            process.kill()
            process.communicate()

    def trained(self, program, steps):
        """What the program tells of itself after so many steps."""
        lines = []
        for _ in range(steps):
            program.tell()
            lines.append(program.line())
        return lines

    def saved(self):
        return os.path.isdir(self.directory) and bool(os.listdir(self.directory))

    def test_a_program_that_knows_nothing_of_it_goes_on_where_it_was(self):
        with tempfile.TemporaryDirectory() as elsewhere:
            whole = self.program(MUSTER_CHECKPOINT_DIR=elsewhere)
            self.assertEqual(whole.line(), "begins")
            undisturbed = self.trained(whole, 8)
            self.assertEqual(whole.ends(), 0)
        first = self.program()
        self.assertEqual(first.line(), "begins")
        self.assertEqual(self.trained(first, 4), undisturbed[:4])
        first.process.send_signal(signal.SIGTERM)
        first.tell()  # it ends as the next step begins
        self.assertEqual(first.ends(), 128 + signal.SIGTERM)
        second = self.program()
        self.assertEqual(second.line(), "begins")
        resumed = self.trained(second, 4)
        for was, is_ in zip(undisturbed[4:], resumed):
            # Steps, the scheduler's, the parameter that is in no module, and the learning rate; what is learned
            # depends on data too.
            self.assertEqual([was.split()[i] for i in (0, 1, 4, 5)], [is_.split()[i] for i in (0, 1, 4, 5)])
        self.assertEqual(second.ends(), 0)

    def test_the_state_is_there_at_the_first_forward_pass(self):
        first = self.program()
        first.line()
        after = self.trained(first, 3)[-1]
        first.process.send_signal(signal.SIGTERM)
        first.tell()
        first.ends()
        second = self.program()
        second.line()
        second.tell("show")
        shown = second.line().split()
        self.assertEqual(shown[:4] + shown[5:], after.split()[:4] + after.split()[5:])

    def test_it_is_saved_at_intervals(self):
        program = self.program(MUSTER_CHECKPOINT_INTERVAL="0.000001")
        program.line()
        self.trained(program, 2)
        self.assertTrue(self.saved())
        self.assertEqual(program.ends(), 0)

    def test_only_where_it_is_asked_for(self):
        for variables in ({"LATTICE_AUTOPATCH": ""}, {"LATTICE_AUTOPATCH": "transformers"}):
            program = self.program(MUSTER_CHECKPOINT_INTERVAL="0.000001", **variables)
            program.line()
            self.trained(program, 2)
            self.assertEqual(program.ends(), 0)
            self.assertFalse(self.saved())

    def test_a_program_that_saves_itself_is_left_alone(self):
        text = TRAINS.replace("import torch\n", "import torch, muster\n    muster.checkpoint(lambda: 'mine', print)\n", 1)
        program = self.program(text, MUSTER_CHECKPOINT_INTERVAL="0.000001")
        program.line()
        self.trained(program, 2)
        self.assertFalse(self.saved())  # it says nothing of steps, and is not stopped
        self.assertEqual(program.ends(), 0)

    def test_a_program_without_torch_or_a_directory_runs(self):
        for text, variables in (
            ("print('runs', flush=True)", {}),
            ("import torch\n    print('runs', flush=True)".replace("\n    ", "\n"), {"MUSTER_CHECKPOINT_DIR": ""}),
            ("try:\n    import torch\nexcept ImportError:\n    print('runs', flush=True)", {"PYTHONPATH": os.pathsep.join((HERE, os.path.join(HERE, "auto")))}),
        ):
            program = self.program(text, **variables)
            self.assertEqual(program.line(), "runs")
            self.assertEqual(program.ends(), 0)

    def test_what_python_would_have_run_as_it_starts_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
                file.write("import sys\nsys.hidden = 'here'\n")
            program = self.program("import sys\nprint(sys.hidden, flush=True)", PYTHONPATH=PATHS + os.pathsep + folder)
            self.assertEqual(program.line(), "here")
            self.assertEqual(program.ends(), 0)

    def test_nothing_is_loaded_before_torch(self):
        program = self.program("import sys\nprint('muster' in sys.modules, 'pickle' in sys.modules, flush=True)")
        self.assertEqual(program.line(), "False False")
        self.assertEqual(program.ends(), 0)

    def test_a_checkpoint_of_something_else_is_told_of(self):
        first = self.program()
        first.line()
        self.trained(first, 1)
        first.process.send_signal(signal.SIGTERM)
        first.tell()
        first.ends()
        other = self.program(TRAINS.replace("self.slope, self.inner =", "self.third, self.slope, self.inner = torch.Tensor(1.0),"))
        other.line()
        other.tell()
        self.assertEqual(other.line(), "")
        self.assertEqual(other.ends(), 1)


class ForkTest(unittest.TestCase):
    setUp, program, saved, end = TorchTest.setUp, TorchTest.program, TorchTest.saved, staticmethod(TorchTest.end)

    def test_a_process_that_was_forked_saves_nothing(self):
        text = """
            import os, signal, muster
            progress = muster.checkpoint(lambda: 1, print)
            heard, says = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(says, b"!")
                while True: signal.pause()
            os.read(heard, 1)
            os.kill(child, signal.SIGTERM)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        """
        program = self.program(text)
        self.assertEqual(program.line(), str(-signal.SIGTERM))
        self.assertEqual(program.ends(), 0)
        self.assertFalse(self.saved())


if __name__ == "__main__":
    unittest.main()
