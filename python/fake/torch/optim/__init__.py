from torch.optim import lr_scheduler


class Optimizer:
    def __init__(self, params, defaults):
        self.param_groups = [dict(defaults, params=list(params))]
        self.steps = 0

    def zero_grad(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad = 0.0

    def step(self):
        raise NotImplementedError

    def state_dict(self):
        return {"steps": self.steps, "lr": self.param_groups[0]["lr"]}

    def load_state_dict(self, state):
        self.steps, self.param_groups[0]["lr"] = state["steps"], state["lr"]


class SGD(Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self):
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                p.value -= group["lr"] * p.grad


__all__ = ["Optimizer", "SGD", "lr_scheduler"]
