"""
Trains a decoder with Ray Train (2.x): PyTorch's DistributedDataParallel in
workers that Ray starts.

    python3 train_ray.py [--weights model.safetensors]

Run it where `ray.init()` finds the cluster.  Without --weights it begins with
the weights that `forerun run` begins with, and trains on its tokens.
"""
import argparse
import contextlib
import json
import math
import os
import struct
import sys
import time

import numpy as np
import ray
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from ray.train import ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer
from torch.distributed.algorithms.ddp_comm_hooks import (
    default_hooks, powerSGD_hook)
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

# forerun: plan
# forerun: include tokens.py
# forerun: include schedule.py
# forerun: include torch_model.py
# forerun: include torch_optimizer.py
# forerun: include torch_setup.py
# forerun: include torch_ranks.py
# forerun: include torch_ddp.py
# forerun: include ray_main.py
if __name__ == "__main__":
    main()
