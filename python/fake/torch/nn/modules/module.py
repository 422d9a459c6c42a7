import torch

_hooks = {}


class _Handle:
    def __init__(self, key):
        self.key = key

    def remove(self):
        _hooks.pop(self.key, None)


def register_module_forward_pre_hook(hook):
    key = object()
    _hooks[key] = hook
    return _Handle(key)


class Module:
    def register_forward_pre_hook(self, hook):
        vars(self).setdefault("_own_hooks", []).append(hook)

    def __call__(self, *inputs):
        for hook in [*_hooks.values(), *vars(self).get("_own_hooks", ())]:
            hook(self, inputs)
        return self.forward(*inputs)

    def parameters(self):
        for value in vars(self).values():
            if isinstance(value, torch.Tensor):
                yield value
            elif isinstance(value, Module):
                yield from value.parameters()

    def state_dict(self):
        return [p.detach() for p in self.parameters()]

    def load_state_dict(self, state):
        own = list(self.parameters())
        if len(state) != len(own):
            raise RuntimeError("Error(s) in loading state_dict")
        for parameter, value in zip(own, state):
            parameter.copy_(value)
