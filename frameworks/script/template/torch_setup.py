# ---- what every rank begins with ---------------------------------------------


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=JOB["steps"])
    parser.add_argument("--data", default=JOB["data"],
                        help="token file; none: made-up tokens")
    parser.add_argument("--weights", metavar="PATH",
                        help="safetensors to begin with: a file, or a folder "
                        "as Hugging Face and forerun run --save write it")
    parser.add_argument("--save-weights", metavar="FILE",
                        help="write the weights of step 0 as safetensors")
    return parser.parse_args()


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
