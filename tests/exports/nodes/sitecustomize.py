"""JAX, TensorFlow and Ray as far as they find the other ranks: what a script
tells them is printed, and ends it.  Python imports this file by itself from PYTHONPATH;
STUB_DEVICES is the number of GPUs of a node."""
import json
import os
import sys
import time
from unittest.mock import MagicMock


class Jax(MagicMock):
    """jax.distributed as jax/_src/distributed.py and clusters/cluster.py have
    it: what is not given is asked of the launcher, and then a process has but
    the device with its number on the node."""
    place = (0, 1, "nobody")
    n_here = int(os.environ.get("STUB_DEVICES", "1"))

    def initialize(self, coordinator_address=None, num_processes=None,
                   process_id=None, local_device_ids=None):
        slurm = ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS",
                 "SLURM_PROCID", "SLURM_LOCALID")
        if None in (coordinator_address, num_processes, process_id,
                    local_device_ids):
            if "OMPI_MCA_orte_hnp_uri" in os.environ:
                found = ("mpirun", "OMPI_COMM_WORLD_SIZE",
                         "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
            elif all(name in os.environ for name in slurm):
                found = ("slurm", *slurm[2:])
            else:
                raise ValueError("coordinator_address should be defined.")
            address, *numbers = found
            n, place, local = (int(os.environ[name]) for name in numbers)
            coordinator_address = coordinator_address or address
            num_processes = num_processes or n
            process_id = place if process_id is None else process_id
            local_device_ids = local_device_ids or [local]
        Jax.place = (process_id, num_processes, coordinator_address)
        Jax.n_here = len(local_device_ids)

    def device_count(self):
        return self.n_here * self.place[1]

    def devices(self):
        return list(range(self.device_count()))


def end_mesh(devices, names):
    node, n, first = Jax.place
    print(f"node {node} of {n} at {first}, {devices.size} devices", flush=True)
    sys.exit(0)


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def await_siblings():
    """A coordinator trains for longer than servers and workers need to say
    who they are; the script ends them when it has ended."""
    parent = os.getppid()
    with open(f"/proc/{parent}/task/{parent}/children") as file:
        siblings = set(map(int, file.read().split())) - {os.getpid()}
    while not all(map(has_ended, siblings)):
        time.sleep(0.02)


def end_tensorflow(*unused, **options):
    config = json.loads(os.environ.get("TF_CONFIG", "null"))
    if config is None:
        print("alone", flush=True)
    else:
        task, workers = config["task"], config["cluster"]["worker"]
        print(f"{task['type']} {task['index']} of {len(workers)}: "
              f"{workers[0]}, {workers[-1]}", flush=True)
        if task["type"] == "chief":
            await_siblings()
    sys.exit(0)


def end_ray(loop, *, train_loop_config, torch_config, scaling_config):
    """Ray's workers have joined with this backend when the loop begins."""
    print(f"workers {scaling_config['num_workers']}, backend {torch_config}",
          flush=True)
    sys.exit(0)


def install_ray():
    torch, ray = MagicMock(), MagicMock()
    torch.nn.Module = object
    ray.cluster_resources = lambda: {"GPU": 16.0}
    ray.ScalingConfig = dict
    ray.TorchConfig = lambda backend=None: backend
    ray.TorchTrainer = end_ray
    for name in ("ray", "ray.train", "ray.train.torch"):
        sys.modules[name] = ray
    for name in ("torch", "torch.distributed", "torch.nn",
                 "torch.nn.functional", "torch.distributed.fsdp",
                 "torch.distributed.device_mesh", "torch.utils",
                 "torch.utils.checkpoint"):
        sys.modules[name] = torch
    sys.modules["torch.nn"] = torch.nn


def install():
    install_ray()
    jax = Jax()
    jax.distributed.initialize = jax.initialize
    jax.Mesh = end_mesh  # jax.sharding is this module, too
    for name in ("jax", "jax.numpy", "jax.scipy", "jax.scipy.special",
                 "jax.sharding"):
        sys.modules[name] = jax
    tf = MagicMock()
    tf.function = lambda f: f
    tf.distribute.MirroredStrategy = end_tensorflow
    tf.distribute.MultiWorkerMirroredStrategy = end_tensorflow
    tf.distribute.cluster_resolver.TFConfigClusterResolver = end_tensorflow
    for name in ("tensorflow", "tensorflow.experimental",
                 "tensorflow.experimental.numpy"):
        sys.modules[name] = tf


install()
