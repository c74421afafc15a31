#!/usr/bin/env python3
"""Writes configs/models/resnet-50.json: ResNet-50 (He et al., arXiv
1512.03385, table 1; the stride of a block sits in its 3x3 convolution) for one
224 x 224 image in fp32.  One entry per bottleneck block.

forward_flop: two per multiply-add of convolutions and the last matrix.
activation_bytes: what backward needs: the input of each convolution and of
each batch norm, the pooling indices, the input of the last matrix."""

import json
import os


class Layer:
    def __init__(self, name):
        self.name = name
        self.flop = self.parameters = self.saved = self.out = 0

    def conv(self, c_in, c_out, kernel, size_in, stride):
        """Convolution without bias, then batch norm; returns the new size."""
        size = size_in // stride
        self.out = c_out * size * size
        self.flop += 2 * kernel * kernel * c_in * self.out
        self.parameters += kernel * kernel * c_in * c_out + 2 * c_out
        self.saved += 4 * (c_in * size_in * size_in + self.out)
        return size

    def entry(self):
        return {
            "name": self.name,
            "forward_flop": self.flop,
            "parameters": self.parameters,
            "activation_bytes": self.saved,
            "output_bytes": 4 * self.out,
        }


def main():
    layers = []
    stem = Layer("stem")
    size = stem.conv(3, 64, 7, 224, 2)
    stem.saved += 64 * size * size * 4  # input of the pooling
    size //= 2
    stem.out = 64 * size * size
    layers.append(stem)
    channels = 64
    for stage, (n_blocks, width) in enumerate(
        [(3, 64), (4, 128), (6, 256), (3, 512)], 1
    ):
        for i in range(n_blocks):
            block = Layer("layer%d.%d" % (stage, i))
            stride = 2 if i == 0 and stage > 1 else 1
            block.conv(channels, width, 1, size, 1)
            out_size = block.conv(width, width, 3, size, stride)
            block.conv(width, 4 * width, 1, out_size, 1)
            if i == 0:
                block.conv(channels, 4 * width, 1, size, stride)
            channels, size = 4 * width, out_size
            layers.append(block)
    head = Layer("head")
    head.flop = 2 * channels * 1000
    head.parameters = channels * 1000 + 1000
    head.saved = 4 * channels
    head.out = 1000
    layers.append(head)
    model = {
        "schema": "forerun.model/1",
        "name": "resnet-50",
        "kind": "layers",
        "layers": [layer.entry() for layer in layers],
    }
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "models", "resnet-50.json")
    with open(path, "w", encoding="ascii") as out:
        json.dump(model, out, indent=2)
        out.write("\n")
    total = sum(layer.parameters for layer in layers)
    print(path, total, "parameters", sum(l.flop for l in layers), "flop")


main()
