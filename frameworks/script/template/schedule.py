# ---- learning rate -----------------------------------------------------------


def learning_rate(step):
    """Of step `step`, from 0: warm-up, decay, and what the batch makes of it."""
    lr, warmup = JOB["lr"], JOB["warmup_steps"]
    ratio = JOB["global_batch"] / JOB["lr_base_batch"]
    lr *= {"none": 1, "linear": ratio, "sqrt": ratio**0.5}[JOB["lr_rule"]]
    if step < warmup:
        return lr * (step + 1) / warmup
    least, n_decay = JOB["lr_min_frac"], JOB["steps"] - 1 - warmup
    if n_decay > 0:
        progress = min((step - warmup) / n_decay, 1)
    else:
        progress = 1 if step >= JOB["steps"] - 1 else 0
    if JOB["lr_schedule"] == "cosine":
        return lr * (least + (1 - least) * 0.5 *
                     (1 + math.cos(math.pi * progress)))
    if JOB["lr_schedule"] == "linear":
        return lr * (1 - (1 - least) * progress)
    if JOB["lr_schedule"] == "inverse-sqrt":
        return lr * max((max(warmup, 1) / (step + 1))**0.5, least)
    return lr
