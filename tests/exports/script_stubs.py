"""What exported scripts import and is not installed here, as far as they call
it, over gloo: so that their own code is run.  Sharding itself is not: the
parameters stay whole."""
import contextlib
import os
import sys
import types

import torch
import torch.distributed as dist


def average(gradient):
    gradient = gradient.clone()
    dist.all_reduce(gradient)
    return gradient / dist.get_world_size()


def module(name, **members):
    one = types.ModuleType(name)
    vars(one).update(members)
    sys.modules[name] = one
    return one


# ---- fully_shard -------------------------------------------------------------


class Layer:
    def set_modules_to_forward_prefetch(self, modules):
        assert all(isinstance(m, torch.nn.Module) for m in modules)

    set_modules_to_backward_prefetch = set_modules_to_forward_prefetch


def fully_shard(layer, *, mesh, reshard_after_forward, mp_policy,
                offload_policy):
    """Gradients are averaged after every backward; nothing is sharded."""
    for parameter in layer.parameters():
        if not getattr(parameter, "is_averaged", False):
            parameter.register_hook(average)
            parameter.is_averaged = True
    layer.__class__ = type("FSDP", (Layer, layer.__class__), {})
    return layer


def init_device_mesh(kind, shape, *, mesh_dim_names):
    assert len(shape) == len(mesh_dim_names)
    assert torch.tensor(shape).prod() == dist.get_world_size()
    return shape


# ---- Horovod -----------------------------------------------------------------


def new_optimizer(optimizer, named_parameters, compression, op,
                  backward_passes_per_step):
    """Checks that what Horovod counts is right: so many backwards a step."""
    parameters = [p for _, p in named_parameters]
    counts = dict.fromkeys(parameters, 0)

    def count(parameter):
        def hook(gradient):
            counts[parameter] += 1
            assert counts[parameter] <= backward_passes_per_step
            return gradient
        return hook

    for parameter in parameters:
        parameter.register_hook(count(parameter))

    def synchronize():
        for parameter in parameters:
            assert counts[parameter] == backward_passes_per_step
            counts[parameter] = 0
            parameter.grad.copy_(average(parameter.grad))

    optimizer.synchronize = synchronize
    optimizer.skip_synchronize = contextlib.nullcontext
    return optimizer


# ---- Ray ---------------------------------------------------------------------


class TorchTrainer:
    def __init__(self, loop, *, train_loop_config, scaling_config):
        self.loop, self.config = loop, train_loop_config
        assert scaling_config["num_workers"] == int(os.environ["WORLD_SIZE"])

    def fit(self):
        dist.init_process_group("gloo")
        self.loop(self.config)


def install():
    """Where the real ones are missing."""
    if not hasattr(torch, "compile"):  # before 2
        module("torch.distributed.fsdp", fully_shard=fully_shard,
               CPUOffloadPolicy=dict, OffloadPolicy=dict,
               MixedPrecisionPolicy=dict)
        module("torch.distributed.device_mesh",
               init_device_mesh=init_device_mesh)
    hvd = module(
        "horovod.torch", init=lambda: dist.init_process_group("gloo"),
        rank=dist.get_rank, size=dist.get_world_size,
        local_rank=dist.get_rank, Average="average",
        Compression=types.SimpleNamespace(none=None),
        DistributedOptimizer=new_optimizer,
        allreduce=lambda x, op: average(x))
    module("horovod", torch=hvd)
    module("ray", init=lambda runtime_env: None,
           cluster_resources=lambda: {"CPU": 2.0},
           train=module("ray.train", ScalingConfig=dict,
                        torch=module("ray.train.torch",
                                     TorchTrainer=TorchTrainer)))
