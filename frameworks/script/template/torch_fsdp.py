# ---- fully sharded data parallel ---------------------------------------------

FLOATS = {"f32": torch.float32, "tf32": torch.float32,
          "bf16": torch.bfloat16, "f16": torch.float16}


def sharding(device):
    """The arguments of fully_shard."""
    n_ranks, n_shards = PLAN["dp"], PLAN["zero_group"] or PLAN["dp"]
    if n_shards == n_ranks:
        mesh = init_device_mesh(device.type, (n_ranks,),
                                mesh_dim_names=("shard",))
    else:  # hybrid: neighbours share one copy
        mesh = init_device_mesh(device.type, (n_ranks // n_shards, n_shards),
                                mesh_dim_names=("replicate", "shard"))
    policy = MixedPrecisionPolicy(param_dtype=FLOATS[PLAN["precision"]],
                                  reduce_dtype=FLOATS[PLAN["grad_dtype"]])
    offload = OffloadPolicy()
    if PLAN["offload_optimizer"]:
        offload = CPUOffloadPolicy(pin_memory=device.type == "cuda")
    return {"mesh": mesh, "mp_policy": policy, "offload_policy": offload,
            "reshard_after_forward": PLAN["zero"] == 3 and PLAN["zero_reshard"]}


def set_sharding(model, is_last):
    """Before a micro-batch: parameters of ZeRO 1 and 2 are gathered once a
    step, and gradients of ZeRO 1 are added up whole until the last."""
    if PLAN["zero"] < 3:
        model.set_reshard_after_backward(is_last)
    if PLAN["zero"] == 1:
        model.set_requires_gradient_sync(is_last)


def set_prefetch(layers):
    """The next layer is gathered in any case; further ones are asked for."""
    n = PLAN["zero_prefetch"]
    for i, layer in enumerate(layers):
        if n > 1:
            layer.set_modules_to_forward_prefetch(list(layers[i + 1:i + 1 + n]))
            layer.set_modules_to_backward_prefetch(
                list(reversed(layers[max(0, i - n):i])))


def train_step(model, optimizer, tokens, step, device):
    """One global batch; the mean loss of all ranks."""
    micro, world = PLAN["micro_batch"], dist.get_world_size()
    per_rank = JOB["global_batch"] // world
    n_micro, total = per_rank // micro, 0.0
    optimizer.zero_grad()
    for i in range(n_micro):
        first = dist.get_rank() * per_rank + i * micro
        batch = torch.from_numpy(tokens.load(step, first, micro)).to(device)
        set_sharding(model, i + 1 == n_micro)
        loss = model(batch[:, :-1], batch[:, 1:]) / n_micro
        loss.backward()
        total += loss.item()
    if JOB["clip_norm"] > 0:
        nn.utils.clip_grad_norm_(model.parameters(), JOB["clip_norm"])
    set_learning_rate(optimizer, step)
    optimizer.step()
    mean = torch.tensor(total, device=device)
    dist.all_reduce(mean)
    return mean.item() / world


def run(arguments):
    device = set_up(PLAN["dp"])
    how = sharding(device)
    weights = Weights(arguments.weights, JOB["seed"])
    if arguments.save_weights and dist.get_rank() == 0:
        whole = Decoder(weights, lambda block: block)
        save_safetensors(named_tensors(whole.state_dict()),
                         arguments.save_weights)
    # Every rank makes a layer, and keeps its shard of it alone.
    model = Decoder(weights, lambda block: fully_shard(block, **how))
    model = fully_shard(model, **how)
    set_prefetch(model.layers)
    torch.manual_seed(JOB["seed"] + dist.get_rank())  # of dropout
    kind, groups, options = optimizer_of(model)
    optimizer = kind(groups, **options)
    model = compiled(model)
    train(lambda tokens, step, scaler: train_step(
        model, optimizer, tokens, step, device), arguments)
