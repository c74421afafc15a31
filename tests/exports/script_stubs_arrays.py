"""JAX and TensorFlow, as far as exported scripts call them, with PyTorch's
tensors and gradients behind: what is run is the scripts' own arithmetic.  One
process does the work of all ranks."""
import contextlib
import os
import sys
import types

import numpy as np
import torch


def module(name, **members):
    one = types.ModuleType(name)
    vars(one).update(members)
    sys.modules[name] = one
    return one


def tensor(x):
    return x if torch.is_tensor(x) else torch.as_tensor(x)


def wide(x):
    return tensor(x).float()


def over(function):
    """A reduction with NumPy's arguments."""
    def reduce(x, axis=None, keepdims=False):
        return function(x) if axis is None else function(x, axis, keepdims)
    return reduce


torch.Tensor.astype = lambda self, dtype: self.to(dtype)
NUMPY = {
    "float32": torch.float32, "bfloat16": torch.bfloat16,
    "asarray": tensor, "zeros": torch.zeros, "zeros_like": torch.zeros_like,
    "mean": over(torch.mean), "sum": over(torch.sum),
    "max": over(torch.amax),
    "exp": torch.exp, "log": torch.log, "tanh": torch.tanh,
    "sqrt": lambda x: tensor(x).sqrt(),
    "take": lambda x, index, axis: x[tensor(index).long()],
    "where": lambda c, a, b: torch.where(tensor(c), wide(a), wide(b)),
    "maximum": lambda a, b: torch.maximum(wide(a), wide(b)),
    "minimum": lambda a, b: torch.minimum(wide(a), wide(b)),
    "concatenate": torch.cat,
    "transpose": lambda x, axes: x.permute(axes),
    "repeat": lambda x, n, axis: x.repeat_interleave(n, axis),
    "take_along_axis":
        lambda x, index, axis: x.gather(axis, tensor(index).long()),
}


# ---- JAX ---------------------------------------------------------------------


def value_and_grad(function):
    def run(w, *arguments):
        w = {name: x.detach().clone().requires_grad_()
             for name, x in w.items()}
        loss = function(w, *arguments)
        gradients = torch.autograd.grad(loss, list(w.values()))
        return loss.detach(), dict(zip(w, gradients))
    return run


def scan(function, carry, xs):
    for x in xs:
        carry, _ = function(carry, x)
    return carry, None


def tree_map(function, a, b):
    if isinstance(a, tuple):
        return tuple(tree_map(function, x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return {name: tree_map(function, a[name], b[name]) for name in a}
    return function(a, b)


def whole_array(shape, sharding, callback):
    return tensor(np.array(callback(tuple(slice(0, n) for n in shape))))


def install_jax():
    world = int(os.environ["STUB_WORLD"])
    xp = module("jax.numpy", **NUMPY)
    spec = type("PartitionSpec", (tuple,),
                {"__new__": lambda cls, *axes: tuple.__new__(cls, axes)})
    module("jax.scipy")
    module("jax.scipy.special", erf=torch.erf)
    module("jax.sharding", PartitionSpec=spec,
           NamedSharding=lambda mesh, spec: None,
           Mesh=lambda devices, names: contextlib.nullcontext())
    module("jax", numpy=xp, checkpoint=lambda f: f,
           jit=lambda f, donate_argnums: f, value_and_grad=value_and_grad,
           devices=lambda: list(range(world)), device_count=lambda: world,
           process_index=lambda: int(os.environ["RANK"]),
           make_array_from_callback=whole_array,
           lax=types.SimpleNamespace(
               scan=scan, with_sharding_constraint=lambda x, spec: x),
           tree_util=types.SimpleNamespace(tree_map=tree_map),
           config=types.SimpleNamespace(update=lambda name, value: None))


# ---- TensorFlow --------------------------------------------------------------


class Variable:
    def __init__(self, value, name=None):
        self.tensor = tensor(np.array(value))
        self.shape = self.tensor.shape

    def value(self):
        return self.tensor

    def assign(self, value):
        self.tensor = tensor(value).detach()

    def assign_add(self, value):
        self.assign(self.tensor + tensor(value))

    def numpy(self):
        return self.tensor.numpy()


class GradientTape(contextlib.nullcontext):
    def __enter__(self):
        return self

    def watch(self, p):
        for x in p.values():
            x.requires_grad_()

    def gradient(self, loss, p):
        return dict(zip(p, torch.autograd.grad(loss, list(p.values()))))


class Coordinator:
    def __init__(self, strategy):
        pass

    def schedule(self, function, args):
        function(*args)

    def join(self):
        pass


class Strategy:
    """Replicas one after the other; the gradients of all are known once the
    last has come, so that each replica is run twice."""

    def __init__(self, cross_device_ops=None):
        self.num_replicas_in_sync = int(os.environ["STUB_WORLD"])
        self.extended = types.SimpleNamespace(
            update=lambda v, function, args: function(v, *args))
        self.scope = contextlib.nullcontext

    def experimental_distribute_values_from_function(self, function):
        return [function(types.SimpleNamespace(replica_id_in_sync_group=i))
                for i in range(self.num_replicas_in_sync)]

    def run(self, replica, args):
        (batches,) = args
        self.given, self.is_known, losses = [], False, []
        for batch in batches:
            with contextlib.suppress(StopIteration):
                replica(batch)
        self.is_known = True
        for batch in batches:
            losses.append(replica(batch))
        function, args = self.due  # the copies of all replicas are one here
        function(self, *args)
        return losses

    def all_reduce(self, op, values):
        if not self.is_known:
            self.given.append([x.detach() for x in values])
            raise StopIteration
        return [sum(each) / len(each) for each in zip(*self.given)]

    def merge_call(self, function, args):
        self.due = (function, args)

    def reduce(self, op, losses, axis):
        return sum(losses).detach() / len(losses)


def convert(x):
    return x.tensor.detach().clone() if isinstance(x, Variable) else x


def install_tensorflow():
    strategies = []

    def new_strategy(**options):
        strategies.append(Strategy(**options))
        return strategies[-1]

    xp = module("tensorflow.experimental.numpy", **NUMPY,
                experimental_enable_numpy_behavior=lambda: None)
    module("tensorflow.experimental", numpy=xp)
    quiet = types.SimpleNamespace(
        enable_tensor_float_32_execution=lambda is_on: None)
    module("tensorflow", Variable=Variable, GradientTape=GradientTape,
           experimental=sys.modules["tensorflow.experimental"],
           function=lambda f: f, constant=lambda x, dtype=None: tensor(x),
           convert_to_tensor=convert, recompute_grad=lambda f: f,
           zeros_like=lambda v: np.zeros(tuple(v.shape), np.float32),
           float32=torch.float32, bfloat16=torch.bfloat16,
           math=types.SimpleNamespace(erf=torch.erf),
           config=types.SimpleNamespace(experimental=quiet,
                                        list_physical_devices=lambda kind: []),
           distribute=types.SimpleNamespace(
               MirroredStrategy=new_strategy,
               ParameterServerStrategy=lambda resolver: new_strategy(),
               cluster_resolver=types.SimpleNamespace(
                   TFConfigClusterResolver=lambda: types.SimpleNamespace(
                       task_type="chief")),
               coordinator=types.SimpleNamespace(
                   ClusterCoordinator=Coordinator),
               ReduceOp=types.SimpleNamespace(MEAN="mean"),
               get_replica_context=lambda: strategies[-1]))


def install():
    os.environ["TF_CONFIG"] = "{}"  # so that no processes are started
    install_jax()
    install_tensorflow()
