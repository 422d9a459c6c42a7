"""As much of torch as tests of muster need: what it calls has the names and the behaviour of torch's."""

import pickle


class Tensor:
    """A number that can be trained."""

    def __init__(self, value):
        self.value, self.grad = value, 0.0

    @property
    def data(self):
        return self

    def detach(self):
        return Tensor(self.value)

    def copy_(self, other):
        self.value = other.value


_state = [0]


def get_rng_state():
    return list(_state)


def set_rng_state(state):
    _state[:] = state


def rand():
    _state[0] = (_state[0] * 1103515245 + 12345) % 2**31
    return _state[0] / 2**31


def save(state, file):
    pickle.dump(state, file)


def load(file, map_location=None, weights_only=None):
    assert map_location == "cpu" and weights_only is False
    return pickle.load(file)


from torch import nn, optim  # noqa: E402,F401
