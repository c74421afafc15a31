"""
Trains a decoder with PyTorch's DistributedDataParallel (1.13 and later).

    torchrun --nproc_per_node 8 train_ddp.py [--weights model.safetensors]

Backend nccl where there are GPUs, else gloo.  Without --weights it begins
with the weights that `forerun run` begins with, and trains on its tokens.
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
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
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
if __name__ == "__main__":
    run(read_arguments())
    dist.destroy_process_group()
