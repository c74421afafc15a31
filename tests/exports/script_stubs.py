"""What exported scripts import and is not installed here, as far as they call
it, over gloo: so that their own code is run."""
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
# PyTorch 1.13 has no fully_shard, and its FullyShardedDataParallel neither runs
# on CPUs (fully_sharded_data_parallel.py:1979 asserts CUDA) nor is imported by
# Python 3.11 (distributed/_shard/sharded_tensor/metadata.py:70).  This one keeps
# the rows of each parameter that fully_shard would keep, gathers the others
# before forward and backward, and scatters the sums of gradients.


class Rows:
    """A parameter of which this rank keeps its chunk of rows."""

    def __init__(self, parameter):
        n, world = len(parameter), dist.get_world_size()
        self.parameter, self.shape = parameter, parameter.shape
        self.chunk = (n + world - 1) // world
        first = min(n, dist.get_rank() * self.chunk)
        self.mine = slice(first, min(n, first + self.chunk))
        self.is_whole, self.summed = True, None
        self.is_resharded = self.is_reduced = True
        with torch.enable_grad():
            self.node = parameter.expand_as(parameter).grad_fn \
                .next_functions[0][0]
        self.node.register_hook(lambda *unused: self.reduce())
        self.shard()

    def shard(self):
        if self.is_whole:
            self.parameter.data = self.parameter.data[self.mine].clone()
            self.is_whole = False

    def gather(self):
        if self.is_whole:
            return
        parameter = self.parameter
        self.summed, parameter.grad = parameter.grad, None
        rows = parameter.data.new_zeros((self.chunk, *self.shape[1:]))
        rows[:len(parameter)] = parameter.data
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows)
        parameter.data = torch.cat(parts)[:self.shape[0]]
        self.is_whole = True

    def reduce(self):
        """The gradient of all rows is there: the sum of mine stays."""
        if not self.is_reduced:
            return
        mine = average(self.parameter.grad)[self.mine]
        mine = mine if self.summed is None else mine + self.summed
        self.parameter.grad = self.summed = None
        if self.is_resharded:
            self.shard()
            self.parameter.grad = mine
        else:
            self.summed = mine


class Layer:
    def set_modules_to_forward_prefetch(self, modules):
        assert all(isinstance(m, torch.nn.Module) for m in modules)

    set_modules_to_backward_prefetch = set_modules_to_forward_prefetch

    def set_reshard_after_backward(self, is_resharded):
        for parameter in self.parameters():
            parameter.rows.is_resharded = is_resharded

    def set_requires_gradient_sync(self, is_reduced):
        for parameter in self.parameters():
            parameter.rows.is_reduced = is_reduced


def fully_shard(layer, *, mesh, reshard_after_forward, mp_policy,
                offload_policy):
    assert mesh[-1] == dist.get_world_size()
    torch.nn.utils.clip_grad_norm_ = clip_grad_norm
    kept = [p for p in layer.parameters() if not hasattr(p, "rows")]
    for parameter in kept:
        parameter.rows = Rows(parameter)
    is_root = any(isinstance(m, Layer) for m in layer.modules())

    def gather(*unused):
        for parameter in kept:
            parameter.rows.gather()

    def after(layer, inputs, output):
        if output.requires_grad:
            output.register_hook(lambda gradient: gather())
        if reshard_after_forward and not is_root:
            for parameter in kept:
                parameter.rows.shard()
                parameter.grad = parameter.rows.summed

    layer.register_forward_pre_hook(gather)
    layer.register_forward_hook(after)
    layer.__class__ = type("FSDP", (Layer, layer.__class__), {})
    return layer


def clip_grad_norm(parameters, most):
    """Of the gradients of all ranks, as it is with sharded tensors."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    square = sum((g.double() ** 2).sum() for g in gradients)
    dist.all_reduce(square)
    scale = min(1.0, most / (square.sqrt().item() + 1e-6))
    for gradient in gradients:
        gradient.mul_(scale)


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
    """Joins the ranks before the loop begins, as Ray does, and by the backend
    that it is given; without GPUs none is."""

    def __init__(self, loop, *, train_loop_config, torch_config,
                 scaling_config):
        self.loop, self.config = loop, train_loop_config
        assert torch_config["backend"] is None
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
                        torch=module("ray.train.torch", TorchConfig=dict,
                                     TorchTrainer=TorchTrainer)))
