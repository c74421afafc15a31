# ---- ranks --------------------------------------------------------------------


def join(backend):
    if not dist.is_initialized():  # whoever started this may have joined
        dist.init_process_group(backend)


def set_up(n_ranks):
    """Joins the other ranks; the device of this one."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"),
                        ("LOCAL_RANK", "0"), ("MASTER_ADDR", "127.0.0.1"),
                        ("MASTER_PORT", "29500")):
        os.environ.setdefault(name, value)
    world = int(os.environ["WORLD_SIZE"])
    if world != n_ranks:
        sys.exit(f"the plan is for {n_ranks} ranks, these are {world}; start "
                 f"them with torchrun")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = PLAN["precision"] == "tf32"
        join("cpu:gloo,cuda:nccl" if PLAN.get("offload_optimizer") else "nccl")
    else:
        device = torch.device("cpu")
        torch.set_num_threads(PLAN["threads"])
        join("gloo")
        if PLAN["precision"] == "f16":
            sys.exit("precision f16 needs a GPU")
    return device


def train(run_step, arguments):
    """All steps; rank 0 prints the loss of each."""
    tokens = Tokens(arguments.data, JOB["seed"], JOB["seq"], MODEL["vocab"])
    scaler = torch.cuda.amp.GradScaler(enabled=PLAN["precision"] == "f16")
    for step in range(arguments.steps):
        begin = time.monotonic()
        loss = run_step(tokens, step, scaler)
        if dist.get_rank() == 0:
            seconds = time.monotonic() - begin
            print(f"step {step} loss {loss:.6f} lr {learning_rate(step):.3g} "
                  f"seconds {seconds:.3f}", flush=True)
