#!/usr/bin/python3
"""Images per second of one ResNet-50 training step in PyTorch on the CPU.

The peer of `make bench-images`: same model, batch, precision (fp32), SGD with
momentum and thread count, in both orders of memory that PyTorch has.  Prints
one JSON object.  Usage:
    pytorch_resnet.py BATCH IMAGE THREADS STEPS
"""
import json
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def norm_of(conv):
    return nn.Sequential(conv, nn.BatchNorm2d(conv.out_channels))


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        wide = 4 * width
        self.a = norm_of(nn.Conv2d(channels, width, 1, bias=False))
        self.b = norm_of(nn.Conv2d(width, width, 3, stride, 1, bias=False))
        self.c = norm_of(nn.Conv2d(width, wide, 1, bias=False))
        self.short = nn.Identity()
        if stride != 1 or channels != wide:
            self.short = norm_of(
                nn.Conv2d(channels, wide, 1, stride, bias=False))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.b(self.relu(self.a(x))))
        return self.relu(self.c(y) + self.short(x))


def resnet_50():
    layers = [norm_of(nn.Conv2d(3, 64, 7, 2, 3, bias=False)),
              nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for stage, n_blocks in enumerate((3, 4, 6, 3)):
        for i in range(n_blocks):
            stride = 2 if i == 0 and stage > 0 else 1
            layers.append(Bottleneck(channels, 64 << stage, stride))
            channels = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, 1000))


def rate(batch, size, steps, order):
    torch.manual_seed(1)
    model = resnet_50().to(memory_format=order)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9,
                                weight_decay=1e-4)
    seconds = []
    for _ in range(steps + 1):
        images = torch.randn(batch, 3, size, size).contiguous(
            memory_format=order)
        labels = torch.randint(0, 1000, (batch,))
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return batch / statistics.median(seconds[1:])


def main():
    batch, size, threads, steps = map(int, sys.argv[1:5])
    torch.set_num_threads(threads)
    print(json.dumps({
        "torch": torch.__version__,
        "channels_first": rate(batch, size, steps, torch.contiguous_format),
        "channels_last": rate(batch, size, steps, torch.channels_last)}))


if __name__ == "__main__":
    main()
