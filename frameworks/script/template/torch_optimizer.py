# ---- optimizer ---------------------------------------------------------------


class LayerwiseOptimizer(torch.optim.Optimizer):
    """LARS (arXiv 1708.03888) and LAMB (arXiv 1904.00962): each matrix moves
    in proportion to its own norm."""

    def __init__(self, groups, lr, weight_decay=0.0):
        super().__init__(groups, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self.step_one(parameter, group)

    def step_one(self, w, group):
        state, decay = self.state[w], group["weight_decay"]
        beta1, beta2 = JOB["beta1"], JOB["beta2"]
        if not state:
            state["t"], state["m"] = 0, torch.zeros_like(w)
            if JOB["optimizer"] == "lamb":
                state["v"] = torch.zeros_like(w)
        state["t"] += 1
        m, t = state["m"], state["t"]
        if JOB["optimizer"] == "lars":
            trust = 1.0
            w_norm, g_norm = w.norm().item(), w.grad.norm().item()
            if w.dim() > 1 and w_norm > 0 and g_norm > 0:
                trust = (JOB["trust_coefficient"] * w_norm /
                         (g_norm + JOB["weight_decay"] * w_norm))
            m.mul_(beta1).add_(w.grad + decay * w, alpha=group["lr"] * trust)
            w.sub_(m)
            return
        v = state["v"]
        m.mul_(beta1).add_(w.grad, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(w.grad, w.grad, value=1 - beta2)
        root = (v / (1 - beta2**t)).sqrt() + JOB["optimizer_eps"]
        update = m / (1 - beta1**t) / root + decay * w
        trust = 1.0
        w_norm, u_norm = w.norm().item(), update.norm().item()
        if w.dim() > 1 and w_norm > 0 and u_norm > 0:
            trust = w_norm / u_norm
        w.sub_(update, alpha=group["lr"] * trust)


def optimizer_of(model):
    """A class, parameter groups and arguments: matrices decay, norms and
    biases do not."""
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() > 1],
         "weight_decay": JOB["weight_decay"]},
        {"params": [p for p in parameters if p.dim() <= 1],
         "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if JOB["optimizer"] == "adamw":
        return torch.optim.AdamW, groups, {
            "lr": JOB["lr"], "betas": (JOB["beta1"], JOB["beta2"]),
            "eps": JOB["optimizer_eps"]}
    if JOB["optimizer"] == "sgd":
        return torch.optim.SGD, groups, {"lr": JOB["lr"],
                                         "momentum": JOB["beta1"]}
    return LayerwiseOptimizer, groups, {"lr": JOB["lr"]}
