#!/usr/bin/env python3
"""Writes configs/models/{resnet-50,resnet-101,resnet-152,vgg-16,alexnet}.json
for one 224 x 224 image in fp32.

ResNet: He et al., arXiv 1512.03385, table 1; the stride of a block sits in its
3x3 convolution; one entry per bottleneck block.  VGG-16: Simonyan, Zisserman,
arXiv 1409.1556, table 1, column D.  AlexNet: the one-tower form of Krizhevsky,
arXiv 1404.5997, as torchvision has it.

forward_flop: two per multiply-add of convolutions and matrices.
activation_bytes: what backward needs: the input of each convolution, batch
norm, activation and matrix, the pooling indices."""

import json
import os


class Layer:
    def __init__(self, name):
        self.name = name
        self.flop = self.parameters = self.saved = self.out = 0

    def conv(self, c_in, c_out, kernel, size_in, stride, size=None, norm=True):
        """Convolution, then batch norm, or with a bias; returns the size."""
        size = size or size_in // stride
        self.out = c_out * size * size
        self.flop += 2 * kernel * kernel * c_in * self.out
        self.parameters += kernel * kernel * c_in * c_out
        self.parameters += 2 * c_out if norm else c_out
        self.saved += 4 * (c_in * size_in * size_in + self.out)
        return size

    def pool(self, channels, size_in, size):
        self.saved += 4 * channels * size_in * size_in
        self.out = channels * size * size
        return size

    def linear(self, n_in, n_out):
        self.flop += 2 * n_in * n_out
        self.parameters += n_in * n_out + n_out
        self.saved += 4 * n_in
        self.out = n_out

    def entry(self):
        return {
            "name": self.name,
            "forward_flop": self.flop,
            "parameters": self.parameters,
            "activation_bytes": self.saved,
            "output_bytes": 4 * self.out,
        }


def resnet(n_blocks_of_stage):
    layers = []
    stem = Layer("stem")
    size = stem.conv(3, 64, 7, 224, 2)
    size = stem.pool(64, size, size // 2)
    layers.append(stem)
    channels = 64
    for stage, n_blocks in enumerate(n_blocks_of_stage, 1):
        width = 32 << stage
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
    head.linear(channels, 1000)
    layers.append(head)
    return layers


def classifier(layers, n_in):
    for i, n_out in enumerate((4096, 4096, 1000), 1):
        layer = Layer("fc%d" % i)
        layer.linear(n_in, n_out)
        layers.append(layer)
        n_in = n_out
    return layers


def vgg_16():
    layers, channels, size = [], 3, 224
    for stage, widths in enumerate(
        [(64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3], 1
    ):
        for i, width in enumerate(widths, 1):
            layer = Layer("conv%d.%d" % (stage, i))
            layer.conv(channels, width, 3, size, 1, norm=False)
            channels = width
            layers.append(layer)
        size = layers[-1].pool(channels, size, size // 2)
    return classifier(layers, channels * size * size)


def alexnet():
    layers = []
    # channels in and out, kernel, size in and out, size after pooling
    for i, (c_in, c_out, kernel, size_in, size, pooled) in enumerate(
        [
            (3, 64, 11, 224, 55, 27),
            (64, 192, 5, 27, 27, 13),
            (192, 384, 3, 13, 13, 0),
            (384, 256, 3, 13, 13, 0),
            (256, 256, 3, 13, 13, 6),
        ],
        1,
    ):
        layer = Layer("conv%d" % i)
        layer.conv(c_in, c_out, kernel, size_in, 1, size, norm=False)
        if pooled:
            layer.pool(c_out, size, pooled)
        layers.append(layer)
    return classifier(layers, 256 * 6 * 6)


def write(name, layers):
    model = {
        "schema": "forerun.model/1",
        "name": name,
        "kind": "layers",
        "layers": [layer.entry() for layer in layers],
    }
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "models", name + ".json")
    with open(path, "w", encoding="ascii") as out:
        json.dump(model, out, indent=2)
        out.write("\n")
    print(
        name,
        sum(layer.parameters for layer in layers),
        "parameters",
        sum(layer.flop for layer in layers),
        "flop",
    )


if __name__ == "__main__":
    write("resnet-50", resnet((3, 4, 6, 3)))
    write("resnet-101", resnet((3, 4, 23, 3)))
    write("resnet-152", resnet((3, 8, 36, 3)))
    write("vgg-16", vgg_16())
    write("alexnet", alexnet())
