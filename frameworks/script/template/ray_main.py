# ---- Ray ---------------------------------------------------------------------


def main():
    arguments = read_arguments()
    ray.init(runtime_env={"env_vars": ENVIRONMENT})
    use_gpu = ray.cluster_resources().get("GPU", 0) > 0
    # A worker is a rank: one GPU, or a CPU's cores.  PACK fills a node first.
    resources = {"GPU": 1} if use_gpu else {"CPU": PLAN["threads"]}
    # Ray has the workers joined before the loop begins, and hands this name to
    # init_process_group (ray/train/torch/config.py); None: nccl or gloo.
    is_split = use_gpu and PLAN.get("offload_optimizer")
    backend = "cpu:gloo,cuda:nccl" if is_split else None
    trainer = TorchTrainer(
        lambda config: run(argparse.Namespace(**config)),
        train_loop_config=vars(arguments),
        torch_config=TorchConfig(backend=backend),
        scaling_config=ScalingConfig(
            num_workers=PLAN["dp"], use_gpu=use_gpu,
            resources_per_worker=resources, placement_strategy="PACK"))
    trainer.fit()
