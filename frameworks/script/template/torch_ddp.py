# ---- data parallel -----------------------------------------------------------


def bf16_hook_of_gloo(group, bucket):
    """Gloo adds no bf16: what is sent is rounded to it, sums are float32."""
    gradient = bucket.buffer()
    rounded = gradient.bfloat16().float() / group.size()
    work = dist.all_reduce(rounded, group=group, async_op=True)
    return work.get_future().then(
        lambda future: gradient.copy_(future.value()[0].bfloat16()))


def in_turn(hook):
    """The hook of one bucket after that of another: over gloo the rounds of
    several buckets would meet in another order on each rank."""
    before = []

    def run(state, bucket):
        if before:
            before.pop().wait()
        before.append(hook(state, bucket))
        return before[0]

    return run


def add_hook(model, device):
    """What gradients look like on the wire."""
    if PLAN["compressor"] == "bf16":
        hook = (default_hooks.bf16_compress_hook if device.type == "cuda" else
                bf16_hook_of_gloo)
        model.register_comm_hook(dist.group.WORLD, hook)
    elif PLAN["compressor"] == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            process_group=None,
            matrix_approximation_rank=PLAN["compressor_rank"],
            start_powerSGD_iter=2,  # the first two steps warm it up
            min_compression_rate=1,
            use_error_feedback=PLAN["error_feedback"])
        hook = powerSGD_hook.powerSGD_hook
        model.register_comm_hook(
            state, hook if device.type == "cuda" else in_turn(hook))


def wrap_model(model, device):
    if not PLAN["overlap"]:
        return model
    # 0: one bucket.  Versions before 2.3 begin with one of 1 MiB.
    n_bytes = 4 * sum(p.numel() for p in model.parameters())
    cap = (PLAN["bucket_bytes"] or n_bytes) / 2**20
    wrapped = DistributedDataParallel(
        model, device_ids=[device.index] if device.type == "cuda" else None,
        bucket_cap_mb=cap, gradient_as_bucket_view=True)
    add_hook(wrapped, device)
    return wrapped


def reduce_after_backward(model):
    """Without overlap: bucket after bucket, once backward is done."""
    world, waiting, n_waiting = dist.get_world_size(), [], 0
    parameters = [p for p in reversed(list(model.parameters()))
                  if p.grad is not None]
    for i, parameter in enumerate(parameters):
        waiting.append(parameter.grad)
        n_waiting += 4 * parameter.numel()
        is_full = 0 < PLAN["bucket_bytes"] <= n_waiting
        if not is_full and i + 1 < len(parameters):
            continue
        flat = torch.cat([g.flatten() for g in waiting])
        if PLAN["compressor"] == "bf16":
            flat = flat.bfloat16()
            flat = flat if flat.is_cuda else flat.float()
        dist.all_reduce(flat)
        for g, part in zip(waiting, flat.split([g.numel() for g in waiting])):
            g.copy_(part.view_as(g) / world)
        waiting, n_waiting = [], 0


def new_optimizer(model):
    kind, groups, options = optimizer_of(model)
    if PLAN["zero"] == 0:
        return kind(groups, **options)
    # ZeRO 1: the state is sharded; gradients are all-reduced all the same.
    group, size = None, PLAN["zero_group"]
    if size > 0:
        for first in range(0, dist.get_world_size(), size):
            ranks = list(range(first, first + size))
            one = dist.new_group(ranks)
            group = one if dist.get_rank() in ranks else group
    return ZeroRedundancyOptimizer(groups, optimizer_class=kind,
                                   process_group=group, **options)


def train_step(model, optimizer, scaler, tokens, step, device):
    """One global batch; the mean loss of all ranks."""
    micro, world = PLAN["micro_batch"], dist.get_world_size()
    per_rank = JOB["global_batch"] // world
    n_micro, total = per_rank // micro, 0.0
    optimizer.zero_grad(set_to_none=False)
    for i in range(n_micro):
        first = dist.get_rank() * per_rank + i * micro
        batch = torch.from_numpy(tokens.load(step, first, micro)).to(device)
        is_last = i + 1 == n_micro
        with contextlib.ExitStack() as context:
            if PLAN["overlap"] and not is_last:
                context.enter_context(model.no_sync())
            with autocast(device):
                loss = model(batch[:, :-1], batch[:, 1:]) / n_micro
            scaler.scale(loss).backward()
        total += loss.item()
    if not PLAN["overlap"]:
        reduce_after_backward(model)
    scaler.unscale_(optimizer)
    if JOB["clip_norm"] > 0:
        nn.utils.clip_grad_norm_(model.parameters(), JOB["clip_norm"])
    set_learning_rate(optimizer, step)
    scaler.step(optimizer)
    scaler.update()
    mean = torch.tensor(total, device=device)
    dist.all_reduce(mean)
    return mean.item() / world


def run(arguments):
    device = set_up(PLAN["dp"])
    model = Decoder(Weights(arguments.weights, JOB["seed"]),
                    lambda block: block).to(device)
    if arguments.save_weights and dist.get_rank() == 0:
        save_safetensors(named_tensors(model.state_dict()),
                         arguments.save_weights)
    torch.manual_seed(JOB["seed"] + dist.get_rank())  # of dropout
    model = wrap_model(compiled(model), device)
    optimizer = new_optimizer(model)
    train(lambda tokens, step, scaler: train_step(
        model, optimizer, scaler, tokens, step, device), arguments)
