# ---- Ray ---------------------------------------------------------------------


def main():
    arguments = read_arguments()
    ray.init(runtime_env={"env_vars": ENVIRONMENT})
    use_gpu = ray.cluster_resources().get("GPU", 0) > 0
    # A worker is a rank: one GPU, or a CPU's cores.  PACK fills a node first.
    resources = {"GPU": 1} if use_gpu else {"CPU": PLAN["threads"]}
    trainer = TorchTrainer(
        lambda config: run(argparse.Namespace(**config)),
        train_loop_config=vars(arguments),
        scaling_config=ScalingConfig(
            num_workers=PLAN["dp"], use_gpu=use_gpu,
            resources_per_worker=resources, placement_strategy="PACK"))
    trainer.fit()
