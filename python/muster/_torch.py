"""The state of PyTorch programs, found as they run: see docs/use/agent.md."""

import functools
import io
import sys
import threading

from muster import _checkpoint


def follow(torch):
    """Has the state of the program, which has just loaded torch, be restored and saved.

    It is restored before the first forward pass of a module that is trained, and saved as
    checkpoint() does it. A step is one of the optimizer made last; the state is whole when
    the next forward pass begins, since schedulers may follow the optimizer. A program that
    calls muster.checkpoint() itself is left alone.
    """
    _Follower(torch).follow()


class _Follower:
    def __init__(self, torch):
        self._torch = torch
        # What makes up the state, each in the order in which the program made it or, of
        # modules, first called it.
        self._modules, self._optimizers, self._schedulers = [], [], []
        self._loose = []  # parameters of optimizers that belong to no module
        self._covered = set()  # the ids of parameters of modules
        self._restored = None  # a state of which something may be due yet
        self._checkpoint = None
        self._hook = None
        self._stepped = False  # since the last forward pass
        self._resigned = False

    def follow(self):
        optim = self._torch.optim
        self._after_init(optim.Optimizer, self._add_optimizer)
        for name in ("LRScheduler", "_LRScheduler", "ReduceLROnPlateau"):
            kind = getattr(optim.lr_scheduler, name, None)
            if kind is not None and not hasattr(kind.__init__, "_muster"):
                self._after_init(kind, self._add_scheduler)

    @staticmethod
    def _after_init(kind, add):
        init = kind.__init__

        @functools.wraps(init)
        def wrapped(self, *arguments, **options):
            init(self, *arguments, **options)
            add(self)

        wrapped._muster = True
        kind.__init__ = wrapped

    def _add_optimizer(self, optimizer):
        if self._active():
            self._optimizers.append(optimizer)
            self._wrap_step(type(optimizer))
            self._load("optimizers", len(self._optimizers) - 1, optimizer)
            if self._hook is None:
                self._hook = self._torch.nn.modules.module.register_module_forward_pre_hook(self._before_forward)

    def _add_scheduler(self, scheduler):
        if self._active() and not any(known is scheduler for known in self._schedulers):
            self._schedulers.append(scheduler)
            self._load("schedulers", len(self._schedulers) - 1, scheduler)

    def _wrap_step(self, kind):
        step = kind.step
        if hasattr(step, "_muster"):
            return
        follower = self

        @functools.wraps(step)
        def wrapped(self, *arguments, **options):
            follower._before_step()
            result = step(self, *arguments, **options)
            follower._after_step(self)
            return result

        wrapped._muster = True
        kind.step = wrapped

    def _active(self):
        """Whether the program leaves it to this to save its state."""
        if not self._resigned and _checkpoint.asked:
            self._resigned = True
            self._unhook()
        return not self._resigned

    def _before_forward(self, module, inputs):
        if not self._active() or not self._begins():
            return
        parameters = {id(p) for p in module.parameters()}
        if parameters & self._trained() - self._covered:
            self._covered |= parameters
            self._modules.append(module)
            module.register_forward_pre_hook(self._between_steps)
            self._load("modules", len(self._modules) - 1, module)
        if self._trained() <= self._covered:
            self._unhook()

    def _before_step(self):
        """By now all modules have been called that are trained: what is left belongs to none."""
        self._between_steps()
        if not self._active() or not self._begins():
            return
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if id(parameter) not in self._covered:
                        self._covered.add(id(parameter))
                        self._loose.append(parameter)
                        due = self._due("loose", len(self._loose) - 1)
                        if due is not None:
                            parameter.data.copy_(due)
        self._unhook()

    def _after_step(self, optimizer):
        self._stepped = self._stepped or optimizer is self._optimizers[-1]

    def _between_steps(self, *_):
        if self._stepped and self._active() and self._checkpoint is not None:
            self._stepped = False
            self._checkpoint.step()

    def _unhook(self):
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _trained(self):
        return {id(p) for o in self._optimizers for group in o.param_groups for p in group["params"]}

    def _begins(self):
        """Restores what there is, at the first time; false where nothing can be saved."""
        if self._checkpoint is not None:
            return True
        if threading.current_thread() is not threading.main_thread():
            return False
        try:
            self._checkpoint = _checkpoint.Checkpoint(self._save, self._keep, None, None, None, "all")
        except ValueError as problem:  # no directory
            print(f"muster: the state of this program is not saved: {problem}", file=sys.stderr, flush=True)
            self._resigned = True
            self._unhook()
            return False
        for index, optimizer in enumerate(self._optimizers):
            self._load("optimizers", index, optimizer)
        for index, scheduler in enumerate(self._schedulers):
            self._load("schedulers", index, scheduler)
        if self._restored is not None:
            self._torch.set_rng_state(self._restored["rng"])
        return True

    def _save(self):
        state = {
            "modules": [m.state_dict() for m in self._modules],
            "optimizers": [o.state_dict() for o in self._optimizers],
            "schedulers": [s.state_dict() for s in self._schedulers],
            "loose": [p.detach() for p in self._loose],
            "rng": self._torch.get_rng_state(),
        }
        content = io.BytesIO()
        self._torch.save(state, content)
        return content.getvalue()

    def _keep(self, content):
        """Remembers the state, of which each part is restored as soon as there is what it is of."""
        try:
            self._restored = self._torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)
        except TypeError:  # before torch 1.13
            self._restored = self._torch.load(io.BytesIO(content), map_location="cpu")

    def _due(self, kind, index):
        if self._restored is None or index >= len(self._restored[kind]):
            return None
        return self._restored[kind][index]

    def _load(self, kind, index, into):
        due = self._due(kind, index)
        if due is None:
            return
        try:
            into.load_state_dict(due)
        except Exception:
            print(
                f"muster: the checkpoint does not fit {type(into).__name__}, number {index} of the {kind} of this program."
                " Delete the checkpoint, or set LATTICE_AUTOPATCH to nothing",
                file=sys.stderr, flush=True,
            )
            raise
