#!/usr/bin/env python3
"""Writes configs/models/{resnet-18,resnet-18-cifar,resnet-50,resnet-101,resnet-152,vgg-16,alexnet,
inception-v3}.json for one image in fp32: 224 x 224, Inception 299 x 299, and
of CIFAR-100 32 x 32.

ResNet: He et al., arXiv 1512.03385, table 1; the stride of a block sits in its
3x3 convolution; one entry per block.  VGG-16: Simonyan, Zisserman,
arXiv 1409.1556, table 1, column D.  AlexNet: the one-tower form of Krizhevsky,
arXiv 1404.5997, as torchvision has it.
Inception-v3: Szegedy et al., arXiv 1512.00567, table 1 and figures 5 to 7, with
the widths of TensorFlow's slim; one entry per block, no auxiliary head.

ops: what a layer computes, which is what forerun trains; the operations of a
shortcut stand first.  Inception-v3's are left out: its branches are joined side
by side.  The amounts are written too: whoever reads a file compares them with
what its operations come to.

forward_flop: two per multiply-add of convolutions and matrices.
activation_bytes: what backward needs: the input of each convolution, batch
norm, activation and matrix, the pooling indices."""

import json
import os


class Layer:
    def __init__(self, name):
        self.name = name
        self.flop = self.parameters = self.saved = self.out = 0
        self.tensors = 0
        self.ops = []

    def op(self, kind, shortcut=False, **more):
        more = {key: value for key, value in more.items() if value}
        if shortcut:
            self.ops.append(dict(op=kind, shortcut=True, **more))
        else:
            self.ops.append(dict(op=kind, **more))

    def conv(self, c_in, c_out, kernel, size_in, stride, size=None, norm=True,
             padding=None, shortcut=False):
        """Convolution, then batch norm, or with a bias; returns the size."""
        size = size or size_in // stride
        padding = kernel // 2 if padding is None else padding
        self.op("conv", shortcut, channels=c_out, kernel=kernel,
                stride=stride if stride > 1 else 0, padding=padding,
                bias=not norm)
        if norm:
            self.op("batch_norm", shortcut)
        self.out = c_out * size * size
        self.flop += 2 * kernel * kernel * c_in * self.out
        self.parameters += kernel * kernel * c_in * c_out
        self.parameters += 2 * c_out if norm else c_out
        self.tensors += 3 if norm else 2
        self.saved += 4 * (c_in * size_in * size_in + self.out)
        return size

    def pool(self, channels, size_in, size, kernel, stride, padding=0):
        self.op("max_pool", kernel=kernel, stride=stride, padding=padding)
        self.saved += 4 * channels * size_in * size_in
        self.out = channels * size * size
        return size

    def linear(self, n_in, n_out):
        self.op("linear", channels=n_out, bias=True)
        self.flop += 2 * n_in * n_out
        self.parameters += n_in * n_out + n_out
        self.tensors += 2
        self.saved += 4 * n_in
        self.out = n_out

    def entry(self, has_ops):
        entry = {
            "name": self.name,
            "forward_flop": self.flop,
            "parameters": self.parameters,
            "activation_bytes": self.saved,
            "output_bytes": 4 * self.out,
            "tensors": self.tensors,
        }
        if has_ops:
            entry["ops"] = self.ops
        return entry


def resnet(n_blocks_of_stage):
    layers = []
    stem = Layer("stem")
    size = stem.conv(3, 64, 7, 224, 2)
    stem.op("relu")
    size = stem.pool(64, size, size // 2, 3, 2, 1)
    layers.append(stem)
    channels = 64
    for stage, n_blocks in enumerate(n_blocks_of_stage, 1):
        width = 32 << stage
        for i in range(n_blocks):
            block = Layer("layer%d.%d" % (stage, i))
            stride = 2 if i == 0 and stage > 1 else 1
            if i == 0:
                block.conv(channels, 4 * width, 1, size, stride, shortcut=True)
            block.conv(channels, width, 1, size, 1)
            block.op("relu")
            out_size = block.conv(width, width, 3, size, stride)
            block.op("relu")
            block.conv(width, 4 * width, 1, out_size, 1)
            block.op("add")
            block.op("relu")
            channels, size = 4 * width, out_size
            layers.append(block)
    return layers + [head(channels, size, 1000)]


def head(channels, size, n_classes):
    layer = Layer("head")
    layer.op("avg_pool", kernel=size)
    layer.linear(channels, n_classes)
    return layer


def resnet_18(image, n_classes):
    """Two 3x3 convolutions a block; the image may be any size."""
    stem = Layer("stem")
    size = stem.conv(3, 64, 7, image, 2)
    stem.op("relu")
    size = stem.pool(64, size, size // 2, 3, 2, 1)
    layers, channels = [stem], 64
    for stage in range(1, 5):
        width = 32 << stage
        for i in range(2):
            block = Layer("layer%d.%d" % (stage, i))
            stride = 2 if i == 0 and stage > 1 else 1
            if stride == 2:
                block.conv(channels, width, 1, size, stride, shortcut=True)
            out_size = block.conv(channels, width, 3, size, stride)
            block.op("relu")
            block.conv(width, width, 3, out_size, 1)
            block.op("add")
            block.op("relu")
            channels, size = width, out_size
            layers.append(block)
    return layers + [head(channels, size, n_classes)]


def classifier(layers, n_in):
    """VGG drops out behind the activation, AlexNet before the matrix: the same
    but for the first."""
    for i, n_out in enumerate((4096, 4096, 1000), 1):
        layer = Layer("fc%d" % i)
        layer.linear(n_in, n_out)
        if i < 3:
            layer.op("relu")
            layer.op("dropout")
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
            layer.op("relu")
            channels = width
            layers.append(layer)
        size = layers[-1].pool(channels, size, size // 2, 2, 2)
    return classifier(layers, channels * size * size)


def alexnet():
    layers = []
    # channels in and out, kernel, size in and out, size after pooling
    strides, paddings = (4, 1, 1, 1, 1), (2, 2, 1, 1, 1)
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
        layer.conv(c_in, c_out, kernel, size_in, strides[i - 1], size,
                   norm=False, padding=paddings[i - 1])
        layer.op("relu")
        if pooled:
            layer.pool(c_out, size, pooled, 3, 2)
        layers.append(layer)
    return classifier(layers, 256 * 6 * 6)


def branch(layer, c_in, size_in, *convs):
    """Convolutions one after the other, (channels, height, width, size)."""
    size = size_in
    for c_out, height, width, out_size in convs:
        out = c_out * out_size * out_size
        layer.flop += 2 * height * width * c_in * out
        layer.parameters += height * width * c_in * c_out + 2 * c_out
        layer.tensors += 3
        layer.saved += 4 * (c_in * size * size + out)
        c_in, size = c_out, out_size


def inception_block(name, c_in, size, out_size, branches, has_projection):
    """Branches beside each other; pooling is one more."""
    layer = Layer(name)
    for convs in branches:
        branch(layer, c_in, size, *convs)
    c_out = sum(b[-1][0] for b in branches)
    if not has_projection:
        c_out += c_in
    layer.saved += 4 * c_in * size * size
    layer.out = c_out * out_size * out_size
    return layer, c_out


def inception_v3():
    stem = Layer("stem")
    branch(stem, 3, 299, (32, 3, 3, 149), (32, 3, 3, 147), (64, 3, 3, 147))
    stem.pool(64, 147, 73, 3, 2)
    branch(stem, 64, 73, (80, 1, 1, 73), (192, 3, 3, 71))
    stem.pool(192, 71, 35, 3, 2)
    layers, channels = [stem], 192

    def add(name, size, out_size, branches, has_projection=True):
        nonlocal channels
        layer, channels = inception_block(
            name, channels, size, out_size, branches, has_projection
        )
        layers.append(layer)

    for i, pooled in enumerate((32, 64, 64)):
        s = 35
        add(
            "mixed_35.%d" % i,
            s,
            s,
            [
                [(64, 1, 1, s)],
                [(48, 1, 1, s), (64, 5, 5, s)],
                [(64, 1, 1, s), (96, 3, 3, s), (96, 3, 3, s)],
                [(pooled, 1, 1, s)],
            ],
        )
    add(
        "reduce_17",
        35,
        17,
        [
            [(384, 3, 3, 17)],
            [(64, 1, 1, 35), (96, 3, 3, 35), (96, 3, 3, 17)],
        ],
        False,
    )
    for i, c in enumerate((128, 160, 160, 192)):
        s = 17
        add(
            "mixed_17.%d" % i,
            s,
            s,
            [
                [(192, 1, 1, s)],
                [(c, 1, 1, s), (c, 1, 7, s), (192, 7, 1, s)],
                [
                    (c, 1, 1, s),
                    (c, 7, 1, s),
                    (c, 1, 7, s),
                    (c, 7, 1, s),
                    (192, 1, 7, s),
                ],
                [(192, 1, 1, s)],
            ],
        )
    add(
        "reduce_8",
        17,
        8,
        [
            [(192, 1, 1, 17), (320, 3, 3, 8)],
            [(192, 1, 1, 17), (192, 1, 7, 17), (192, 7, 1, 17), (192, 3, 3, 8)],
        ],
        False,
    )
    for i in range(2):
        s, c_in = 8, channels
        # The last convolution of two branches is split in two of its input.
        add(
            "mixed_8.%d" % i,
            s,
            s,
            [
                [(320, 1, 1, s)],
                [(384, 1, 1, s), (384, 1, 3, s)],
                [(448, 1, 1, s), (384, 3, 3, s), (384, 1, 3, s)],
                [(192, 1, 1, s)],
            ],
        )
        for _ in range(2):
            branch(layers[-1], 384, s, (384, 3, 1, s))
        channels += 2 * 384
        layers[-1].out = channels * s * s
        assert channels == 2048 and c_in in (1280, 2048)
    head = Layer("head")
    head.linear(channels, 1000)
    layers.append(head)
    return layers


def text_of(value, indent=0):
    """JSON, an operation on one line."""
    pad = "  " * (indent + 1)
    if isinstance(value, dict) and "op" not in value:
        items = ['%s"%s": %s' % (pad, key, text_of(item, indent + 1))
                 for key, item in value.items()]
        return "{\n%s\n%s}" % (",\n".join(items), "  " * indent)
    if isinstance(value, list):
        items = [pad + text_of(item, indent + 1) for item in value]
        return "[\n%s\n%s]" % (",\n".join(items), "  " * indent)
    return json.dumps(value)


def write(name, layers, image=0):
    model = {"schema": "forerun.model/1", "name": name, "kind": "layers"}
    if image > 0:
        model.update(image_size=image, n_channels=3)
    model["layers"] = [layer.entry(image > 0) for layer in layers]
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(here, "models", name + ".json")
    with open(path, "w", encoding="ascii") as out:
        out.write(text_of(model) + "\n")
    print(
        name,
        sum(layer.parameters for layer in layers),
        "parameters",
        sum(layer.flop for layer in layers),
        "flop",
    )


if __name__ == "__main__":
    write("resnet-18", resnet_18(224, 1000), 224)
    write("resnet-18-cifar", resnet_18(32, 100), 32)
    write("resnet-50", resnet((3, 4, 6, 3)), 224)
    write("resnet-101", resnet((3, 4, 23, 3)), 224)
    write("resnet-152", resnet((3, 8, 36, 3)), 224)
    write("vgg-16", vgg_16(), 224)
    write("alexnet", alexnet(), 224)
    write("inception-v3", inception_v3())
