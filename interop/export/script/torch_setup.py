# ---- what every rank begins with ---------------------------------------------


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=JOB["steps"])
    parser.add_argument("--data", default=JOB["data"],
                        help="token file; none: made-up tokens")
    parser.add_argument("--weights", help="safetensors to begin with")
    parser.add_argument("--save-weights", metavar="FILE",
                        help="write the weights of step 0 as safetensors")
    return parser.parse_args()


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
        dist.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        torch.set_num_threads(PLAN["threads"])
        dist.init_process_group("gloo")
        if PLAN["precision"] == "f16":
            sys.exit("precision f16 needs a GPU")
    return device


def autocast(device):
    """Products in 16 bits, where the plan says so; parameters are float32."""
    dtype = {"bf16": torch.bfloat16, "f16": torch.float16}.get(
        PLAN["precision"])
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(device.type, dtype=dtype)


def compiled(model):
    """Other kernels than compiled ones are PyTorch's own, one an operator."""
    if PLAN["kernels"] != "compiled" or not hasattr(torch, "compile"):
        return model
    return torch.compile(model)


def set_learning_rate(optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(step)


def train(run_step, arguments, device):
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
