class LRScheduler:
    def __init__(self, optimizer):
        self.optimizer, self.last_epoch = optimizer, 0

    def state_dict(self):
        return {"last_epoch": self.last_epoch}

    def load_state_dict(self, state):
        self.last_epoch = state["last_epoch"]


class Halve(LRScheduler):
    def __init__(self, optimizer, every):
        super().__init__(optimizer)
        self.every = every

    def step(self):
        self.last_epoch += 1
        if self.last_epoch % self.every == 0:
            self.optimizer.param_groups[0]["lr"] /= 2


_LRScheduler = LRScheduler
