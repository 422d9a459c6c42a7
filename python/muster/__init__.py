"""Checkpoints for training programs that run under muster-agent.

A program calls checkpoint() once its state exists, and step() on what it returns
after each step of its work:

    import muster

    progress = muster.checkpoint(
        lambda: {"step": step, "weights": weights},
        restore,
    )
    while step < steps:
        ...
        step += 1
        progress.step()

The state is restored if there is a checkpoint, and saved when the program is asked
to stop, and at intervals. Only the standard library is needed.
"""

from muster._checkpoint import Checkpoint, checkpoint, checkpoint_objects

__all__ = ["Checkpoint", "checkpoint", "checkpoint_objects"]
