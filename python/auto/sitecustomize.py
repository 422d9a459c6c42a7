"""Has PyTorch programs save and restore their state although they know nothing of it.

muster-agent puts this folder into PYTHONPATH where LATTICE_AUTOPATCH names torch, so that
Python runs this file as it starts. It loads nothing until the program imports torch.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Watch:
    """Finds torch as it is found without it, and has muster follow once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        import importlib.util

        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader:
    """Loads torch, and then has it followed."""

    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            from muster import _torch

            _torch.follow(module)
        except Exception as problem:  # a program is not to end because of what it did not ask for
            print(f"muster: the state of this program is not saved: {problem}", file=sys.stderr, flush=True)

    def __getattr__(self, name):
        return getattr(self._loader, name)


def _run_hidden():
    """Runs the sitecustomize that Python would have found without this one."""
    import importlib.machinery

    others = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    import importlib.util

    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if "torch" in os.environ.get("LATTICE_AUTOPATCH", "").split(",") and "torch" not in sys.modules:
    sys.meta_path.insert(0, _Watch())
_run_hidden()
