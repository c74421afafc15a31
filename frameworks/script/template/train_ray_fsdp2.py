"""
Trains a decoder with Ray Train (2.x): PyTorch's fully_shard (PyTorch 2.4 and
later) in workers that Ray starts.

    python3 train_ray_fsdp2.py [--weights model.safetensors]

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
from torch.utils.checkpoint import checkpoint

# forerun: include torch_fsdp_imports.py
# forerun: plan
# forerun: include tokens.py
# forerun: include schedule.py
# forerun: include torch_model.py
# forerun: include torch_optimizer.py
# forerun: include torch_setup.py
# forerun: include torch_ranks.py
# forerun: include torch_fsdp.py
# forerun: include ray_main.py
if __name__ == "__main__":
    main()
