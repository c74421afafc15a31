"""
Trains a decoder with JAX (0.4.31 and later) over a mesh of devices: data
parallel, sharded as ZeRO is, and tensor parallel by the shardings of matrices.

    python3 train_jax.py --hosts h0,h1 --node 0     on every node, one process
                                                    for all its devices

Under Slurm both are known, under mpirun the node.  It begins with the weights
that `forerun run` begins with, and trains on its tokens.
"""
import argparse
import math
import os
import subprocess
import sys
import time

import numpy as np

# forerun: plan
for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)
# XLA joins what is reduced, up to so many bytes (0: all of it), and runs it
# beside products where its scheduler hides latencies.
BYTES = PLAN["bucket_bytes"] or 1 << 40
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", "")] + ([
    f"--xla_gpu_all_reduce_combine_threshold_bytes={BYTES}",
    f"--xla_gpu_reduce_scatter_combine_threshold_bytes={BYTES}",
    "--xla_gpu_enable_latency_hiding_scheduler=" +
    str(PLAN["overlap"]).lower(),
] if os.path.exists("/dev/nvidia0") else []))  # only GPUs know these

import jax
import jax.numpy as xp
from jax.scipy.special import erf
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

# forerun: include tokens.py
# forerun: include schedule.py
# forerun: include array_model.py
# forerun: include nodes.py
# ---- the mesh: copies, shards of each, tensor parallel -----------------------

COMPUTE = xp.bfloat16 if PLAN["precision"] == "bf16" else xp.float32
PARTS = PLAN["recompute_parts"] if PLAN["recompute"] == "selective" else 0
N_SHARDS = PLAN["zero_group"] or PLAN["dp"]
DATA = ("copy", "shard")


def join(arguments):
    """JAX is told all there is to know: what it finds out by itself under Slurm
    and Open MPI is one device for a process (jax/_src/clusters/cluster.py)."""
    hosts = find_hosts(arguments)
    if len(hosts) > 1:
        n_here = PLAN["dp"] * PLAN["tp"] // len(hosts)
        jax.distributed.initialize(
            f"{hosts[0]}:{os.environ.get('MASTER_PORT', '29500')}", len(hosts),
            arguments.node, local_device_ids=list(range(n_here)))
    elif "JAX_COORDINATOR_ADDRESS" in os.environ:
        jax.distributed.initialize()


def new_mesh():
    """tp changes fastest along the devices, then what shards, then copies."""
    shape = (PLAN["dp"] // N_SHARDS, N_SHARDS, PLAN["tp"])
    if math.prod(shape) != jax.device_count():
        sys.exit(f"the plan is for {math.prod(shape)} devices, these are "
                 f"{jax.device_count()}")
    devices = np.asarray(jax.devices()).reshape(shape)
    return Mesh(devices, (*DATA, "tp"))


def spec_of(name, shape, is_sharded):
    """Where a parameter lies, of its gradient and its state."""
    part, kind = name.split(".")[-2:]
    split = 0 if part in ("embed", "head") else (
        LAYER_PARTS.get(part, (0, None))[1])
    axes = [None] * len(shape)
    if split is not None and len(shape) > split and PLAN["tp"] > 1:
        if shape[split] % PLAN["tp"] == 0:
            axes[split] = "tp"
    if is_sharded:
        for i, n in enumerate(shape):
            if axes[i] is None and n % N_SHARDS == 0:
                axes[i] = "shard"
                break
    return P(*axes)


# ---- what is made again in backward ------------------------------------------


def attend(q, k, v):
    core = plain_attention
    if PLAN["flash_attention"]:
        window = MODEL["sliding_window"]

        def core(q, k, v):
            return jax.nn.dot_product_attention(
                q, k, v, is_causal=True,
                local_window_size=(window - 1, 0) if window > 0 else None)
    return (jax.checkpoint(core) if PARTS & 1 else core)(q, k, v)


def run_mlp(p, x):
    return (jax.checkpoint(mlp) if PARTS & 8 else mlp)(p, x)


def run_block(p, x, i_layer):
    if PLAN["sequence_parallel"]:
        x = jax.lax.with_sharding_constraint(x, P(DATA, "tp", None))
    n = PLAN["recompute_layers"] or MODEL["n_layers"]
    is_again = PLAN["recompute"] == "full" and i_layer < n
    return (jax.checkpoint(block) if is_again else block)(p, x)


# ---- one step ----------------------------------------------------------------


def new_step(specs):
    """A function of weights, moments and the batch (micro-batches first)."""

    def gradients_of(w, batch):
        loss, g = jax.value_and_grad(mean_loss)(w, batch[:, :-1], batch[:, 1:])
        if PLAN["zero"] >= 2:
            g = {name: jax.lax.with_sharding_constraint(
                value, specs["state"][name]) for name, value in g.items()}
        return loss, g

    def step(w, moments, batch, t, lr):
        n = batch.shape[0]

        def add(total, one):
            loss, g = gradients_of(w, one)
            return jax.tree_util.tree_map(lambda a, b: a + b / n, total,
                                          (loss, g)), None

        nothing = (xp.zeros(()), {k: xp.zeros_like(v) for k, v in w.items()})
        (loss, g), _ = jax.lax.scan(add, nothing, batch)
        g = clipped(g)
        new_w, new_moments = {}, {}
        for name in w:
            m, v = moments[name]
            value, m, v = updated(w[name], g[name], m, v, t, lr)
            new_w[name] = jax.lax.with_sharding_constraint(
                value, specs["weights"][name])
            new_moments[name] = tuple(jax.lax.with_sharding_constraint(
                x, specs["state"][name]) for x in (m, v))
        return new_w, new_moments, loss

    return jax.jit(step, donate_argnums=(0, 1))


def load_batch(tokens, step, mesh):
    """The global batch; every process loads what its devices need."""
    at_once = PLAN["micro_batch"] * PLAN["dp"]
    shape = (JOB["global_batch"] // at_once, at_once, JOB["seq"] + 1)

    def load(index):
        micros = range(shape[0])[index[0]]
        samples = range(at_once)[index[1]]
        return np.stack([tokens.load(step, i * at_once + samples[0],
                                     len(samples)).astype(np.int32)
                         for i in micros])[..., index[2]]

    sharding = NamedSharding(mesh, P(None, DATA, None))
    return jax.make_array_from_callback(shape, sharding, load)


def main():
    parser = argparse.ArgumentParser(description="trains with JAX")
    parser.add_argument("--steps", type=int, default=JOB["steps"])
    parser.add_argument("--data", default=JOB["data"])
    add_node_options(parser)
    arguments = parser.parse_args()
    join(arguments)
    if PLAN["precision"] == "tf32":
        jax.config.update("jax_default_matmul_precision", "tensorfloat32")
    elif PLAN["precision"] == "f32":
        jax.config.update("jax_default_matmul_precision", "float32")
    mesh, specs = new_mesh(), {"weights": {}, "state": {}}

    def place(name, value):
        specs["weights"][name] = spec_of(name, value.shape, PLAN["zero"] == 3)
        specs["state"][name] = spec_of(name, value.shape, PLAN["zero"] >= 1)
        sharding = NamedSharding(mesh, specs["weights"][name])
        return jax.make_array_from_callback(value.shape, sharding,
                                            lambda index: value[index])

    with mesh:
        w = new_parameters(place)
        moments = {name: tuple(
            jax.make_array_from_callback(
                value.shape, NamedSharding(mesh, specs["state"][name]),
                lambda index, shape=value.shape: np.zeros(shape, np.float32)[
                    index]) for _ in range(2)) for name, value in w.items()}
        run_step = new_step(specs)
        tokens = Tokens(arguments.data, JOB["seed"], JOB["seq"],
                        MODEL["vocab"])
        for step in range(arguments.steps):
            begin = time.monotonic()
            batch = load_batch(tokens, step, mesh)
            w, moments, loss = run_step(w, moments, batch, step + 1.0,
                                        learning_rate(step))
            loss = float(loss)
            if jax.process_index() == 0:
                print(f"step {step} loss {loss:.6f} lr "
                      f"{learning_rate(step):.3g} seconds "
                      f"{time.monotonic() - begin:.3f}", flush=True)


if __name__ == "__main__":
    main()
