"""
Trains a decoder with TensorFlow (2.10 and later): MirroredStrategy on one
node, MultiWorkerMirroredStrategy on several, ParameterServerStrategy where the
plan has parameter servers.

    python3 train_tensorflow.py --hosts h0,h1 --node 0        on every node

TF_CONFIG is made from the hosts and the place of this one among them (under
Slurm both are known, under mpirun the place).  With parameter servers the
script starts a process for each worker and server of its node, and the
coordinator on the first.  It begins with the weights that `forerun run` begins
with, and trains on its tokens.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

import numpy as np

# forerun: plan
for name, value in ENVIRONMENT.items():
    os.environ.setdefault(name, value)

import tensorflow as tf
import tensorflow.experimental.numpy as xp

# forerun: include tokens.py
# forerun: include schedule.py
# forerun: include array_model.py
# forerun: include nodes.py
# ---- what the model asks of the script ---------------------------------------

xp.experimental_enable_numpy_behavior()
COMPUTE = tf.bfloat16 if PLAN["precision"] == "bf16" else tf.float32
IS_SERVED = PLAN["collective"] == "parameter-server"
PORT = 29600
attend, run_mlp, erf = plain_attention, mlp, tf.math.erf


def run_block(p, x, i_layer):
    n = PLAN["recompute_layers"] or MODEL["n_layers"]
    if PLAN["recompute"] == "full" and i_layer < n:
        return tf.recompute_grad(block)(p, x)
    return block(p, x)


# ---- who takes part ----------------------------------------------------------


def cluster_of(hosts, n_per_node):
    """The cluster of TF_CONFIG: a worker for each node, or for each rank where
    parameters are served, by the first nodes."""
    if not IS_SERVED:
        return {"worker": [f"{host}:{PORT}" for host in hosts]}
    n_servers = PLAN["servers"] or len(hosts)
    return {"chief": [f"{hosts[0]}:{PORT}"],
            "ps": [f"{host}:{PORT + 1}" for host in hosts[:n_servers]],
            "worker": [f"{host}:{PORT + 2 + i}" for host in hosts
                       for i in range(n_per_node)]}


def start_tasks(hosts, node, n_per_node):
    """With parameter servers: the processes of this node."""
    tasks = []
    if node < (PLAN["servers"] or len(hosts)):
        tasks.append(("ps", node, ""))
    for i in range(n_per_node):
        tasks.append(("worker", node * n_per_node + i, str(i)))
    if node == 0:
        tasks.append(("chief", 0, ""))
    cluster, processes = cluster_of(hosts, n_per_node), []
    for kind, index, devices in tasks:
        config = {"cluster": cluster, "task": {"type": kind, "index": index}}
        processes.append(subprocess.Popen(
            [sys.executable, *sys.argv],
            env={**os.environ, "TF_CONFIG": json.dumps(config),
                 "CUDA_VISIBLE_DEVICES": devices}))
    if node == 0:  # servers and workers wait for ever
        status = processes.pop().wait()
        for process in processes:
            process.terminate()
        return status
    return max(process.wait() for process in processes)


def new_strategy(n_nodes, n_bytes):
    packs = PLAN["bucket_bytes"] or n_bytes
    if IS_SERVED:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        if resolver.task_type != "chief":
            server = tf.distribute.Server(
                resolver.cluster_spec(), job_name=resolver.task_type,
                task_index=resolver.task_id, protocol="grpc", start=True)
            server.join()
        return tf.distribute.ParameterServerStrategy(resolver)
    if n_nodes > 1:
        how = tf.distribute.experimental.CommunicationImplementation
        return tf.distribute.MultiWorkerMirroredStrategy(
            communication_options=tf.distribute.experimental
            .CommunicationOptions(
                bytes_per_pack=packs,
                implementation=(how.RING if PLAN["collective"] == "ring"
                                else how.AUTO)))
    return tf.distribute.MirroredStrategy(
        cross_device_ops=tf.distribute.NcclAllReduce(
            num_packs=max(1, math.ceil(n_bytes / packs)))
        if tf.config.list_physical_devices("GPU") else None)


# ---- one step ----------------------------------------------------------------


class Trainer:
    def __init__(self, strategy):
        self.strategy = strategy
        with strategy.scope():
            self.w = new_parameters(
                lambda name, value: tf.Variable(value, name=name))
            self.names = list(self.w)
            self.moments = {
                name: [tf.Variable(tf.zeros_like(w)) for _ in range(2)]
                for name, w in self.w.items()}
            self.sums = {name: tf.Variable(tf.zeros_like(w))
                         for name, w in self.w.items()} if IS_SERVED else {}
            self.loss = tf.Variable(0.0) if IS_SERVED else None

    def gradients(self, batch):
        """Of micro-batches[n, sequences, seq + 1]: the mean loss of a rank and
        its gradients."""
        n, total, sums = batch.shape[0], 0.0, None
        for i in range(n):
            with tf.GradientTape() as tape:
                p = {name: tf.convert_to_tensor(w)
                     for name, w in self.w.items()}
                tape.watch(p)
                loss = mean_loss(p, batch[i][:, :-1], batch[i][:, 1:]) / n
            g = tape.gradient(loss, p)
            g = {name: tf.convert_to_tensor(x) for name, x in g.items()}
            total += loss
            sums = g if sums is None else {
                name: sums[name] + g[name] for name in g}
        return total, sums

    def apply(self, g, t, lr):
        """Every rank does the same to its own copy."""
        g = clipped(g)

        def step_one(w, m, v, gradient):
            new = updated(w.value(), gradient, m.value(), v.value(), t, lr)
            for variable, value in zip((w, m, v), new):
                variable.assign(value)

        def merge(strategy, gradients):
            for name in self.names:
                m, v = self.moments[name]
                strategy.extended.update(
                    self.w[name], lambda w, *rest: step_one(w, *rest),
                    args=(m, v, gradients[name]))

        context = tf.distribute.get_replica_context()
        if context is None or IS_SERVED:
            for name in self.names:
                step_one(self.w[name], *self.moments[name], g[name])
        else:
            context.merge_call(merge, args=(g,))

    @tf.function
    def mirrored_step(self, batches, t, lr):
        def replica(batch):
            loss, g = self.gradients(batch)
            context = tf.distribute.get_replica_context()
            values = context.all_reduce(tf.distribute.ReduceOp.MEAN,
                                        [g[name] for name in self.names])
            self.apply(dict(zip(self.names, values)), t, lr)
            return loss

        losses = self.strategy.run(replica, args=(batches,))
        return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, losses,
                                    axis=None)

    @tf.function
    def push(self, batch):
        """A worker adds its gradients to the sums on the servers."""
        loss, g = self.gradients(batch)
        for name in self.names:
            self.sums[name].assign_add(g[name] / PLAN["dp"])
        self.loss.assign_add(loss / PLAN["dp"])

    @tf.function
    def serve(self, t, lr):
        self.apply({name: x.value() for name, x in self.sums.items()}, t, lr)
        for x in self.sums.values():
            x.assign(tf.zeros_like(x))


def load_batch(tokens, step, rank):
    """All micro-batches of one rank."""
    micro = PLAN["micro_batch"]
    per_rank = JOB["global_batch"] // PLAN["dp"]
    batch = tokens.load(step, rank * per_rank, per_rank).astype(np.int32)
    return tf.constant(batch.reshape(per_rank // micro, micro, -1))


def train(trainer, arguments, node):
    strategy = trainer.strategy
    tokens = Tokens(arguments.data, JOB["seed"], JOB["seq"], MODEL["vocab"])
    coordinator = None
    if IS_SERVED:
        coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    for step in range(arguments.steps):
        begin = time.monotonic()
        t = tf.constant(step + 1.0)
        lr = tf.constant(learning_rate(step), tf.float32)
        if IS_SERVED:  # in step: all push, then the servers' values move on
            trainer.loss.assign(0.0)
            for rank in range(PLAN["dp"]):
                coordinator.schedule(trainer.push, args=(
                    load_batch(tokens, step, rank),))
            coordinator.join()
            coordinator.schedule(trainer.serve, args=(t, lr))
            coordinator.join()
            loss = trainer.loss.numpy()
        else:
            first = node * (PLAN["dp"] // arguments.n_nodes)
            batches = strategy.experimental_distribute_values_from_function(
                lambda context: load_batch(
                    tokens, step,
                    first + context.replica_id_in_sync_group % (
                        PLAN["dp"] // arguments.n_nodes)))
            loss = trainer.mirrored_step(batches, t, lr).numpy()
        if node == 0:
            print(f"step {step} loss {loss:.6f} lr {learning_rate(step):.3g} "
                  f"seconds {time.monotonic() - begin:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="trains with TensorFlow")
    parser.add_argument("--steps", type=int, default=JOB["steps"])
    parser.add_argument("--data", default=JOB["data"])
    add_node_options(parser)
    arguments = parser.parse_args()
    hosts, node = find_hosts(arguments), arguments.node
    arguments.n_nodes = len(hosts)
    n_per_node = PLAN["dp"] // len(hosts)
    if IS_SERVED and "TF_CONFIG" not in os.environ:
        sys.exit(start_tasks(hosts, node, n_per_node))
    if len(hosts) > 1 and not IS_SERVED:
        os.environ["TF_CONFIG"] = json.dumps({
            "cluster": cluster_of(hosts, n_per_node),
            "task": {"type": "worker", "index": node}})
    tf.config.experimental.enable_tensor_float_32_execution(
        PLAN["precision"] == "tf32")
    shapes = []
    new_parameters(lambda name, value: shapes.append(value.size))
    strategy = new_strategy(len(hosts), 4 * sum(shapes))
    if not IS_SERVED and strategy.num_replicas_in_sync != PLAN["dp"]:
        sys.exit(f"the plan is for {PLAN['dp']} ranks, these are "
                 f"{strategy.num_replicas_in_sync}")
    train(Trainer(strategy), arguments, node)


if __name__ == "__main__":
    main()
