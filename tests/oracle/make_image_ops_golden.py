#!/usr/bin/env python3
"""Makes image_ops_golden.h: what PyTorch (float64) makes of single operations
of lists of layers, forward and backward.

    /usr/bin/python3 tests/oracle/make_image_ops_golden.py \\
        > tests/oracle/image_ops_golden.h

Inputs are wave(phase, i) of the element's number in the layout of the runtime
(images [sample][row][column][channel]); of every result stand the sum of its
elements times wave(9, i), the norm and three elements.
"""
import torch
import torch.nn.functional as F

# batch, in, out, size, kernel, stride, padding, groups, bias
CONVS = [(2, 3, 8, 9, 3, 1, 1, 1, 0), (2, 4, 6, 11, 3, 2, 1, 2, 1),
         (1, 16, 8, 7, 1, 1, 0, 1, 0), (1, 3, 8, 23, 7, 2, 3, 1, 1),
         (2, 6, 6, 8, 3, 1, 1, 6, 0), (1, 5, 7, 12, 5, 3, 0, 1, 1)]
# batch, channels, size, kernel, stride, padding, is_max
POOLS = [(2, 5, 9, 3, 2, 1, 1), (2, 6, 8, 2, 2, 0, 1), (1, 4, 13, 3, 2, 0, 1),
         (2, 7, 7, 7, 7, 0, 0), (1, 6, 9, 3, 2, 0, 0), (1, 3, 6, 5, 1, 2, 1)]
# rows, columns, has_relu, has_add
NORMS = [(98, 6, 0, 0), (50, 17, 1, 0), (72, 8, 1, 1), (33, 5, 0, 1)]


def wave(phase, n):
    i = torch.arange(n).double()
    x = torch.sin(phase + 1.7 * i + 0.013 * (i % 97) ** 2)
    return x.float().double()


def image(phase, batch, channels, size):
    x = wave(phase, batch * size * size * channels)
    return x.view(batch, size, size, channels).permute(0, 3, 1, 2)


def flat(x):
    return (x.permute(0, 2, 3, 1) if x.dim() == 4 else x).reshape(-1)


def told(x):
    x = flat(x.detach())
    n = len(x)
    at = [0, n // 3, n - 1]
    elements = ", ".join(f"{{{i}, {x[i]:.12g}}}" for i in at)
    return (f"{{{n}, {(x * wave(9, n)).sum():.12g}, {x.norm():.12g}, "
            f"{{{elements}}}}}")


def emit(kind, sizes, results):
    rows = ",\n        ".join(told(x) if x is not None else "{0}"
                              for x in results)
    print(f"    {{{kind}, {{{', '.join(map(str, sizes))}}},\n       {{{rows}}}}},")


def conv(sizes):
    batch, n, out, size, kernel, stride, padding, groups, bias = sizes
    x = image(1, batch, n, size).requires_grad_()
    cols = n // groups * kernel * kernel
    w = (wave(2, out * cols) / cols**0.5).float().double().requires_grad_()
    b = wave(3, out).requires_grad_() if bias else None
    y = F.conv2d(x, w.view(out, n // groups, kernel, kernel), b, stride,
                 padding, 1, groups)
    y.backward(image(4, batch, out, y.shape[2]))
    emit("GOLDEN_CONV", sizes, [y, x.grad, w.grad, b.grad if bias else None])


def pool(sizes):
    batch, n, size, kernel, stride, padding, is_max = sizes
    x = image(1, batch, n, size).requires_grad_()
    y = (F.max_pool2d if is_max else F.avg_pool2d)(x, kernel, stride, padding)
    y.backward(image(4, batch, n, y.shape[2]))
    emit("GOLDEN_POOL", sizes, [y, x.grad])


def norm(sizes):
    """Results: y, y with running statistics, gradients of x, weight and bias,
    how far the running statistics are from the batch's."""
    rows, cols, has_relu, has_add = sizes
    x = (wave(1, rows * cols).view(rows, cols)
         + 0.5 * torch.arange(cols).double()).float().double()
    x.requires_grad_()
    w = (1 + 0.3 * wave(2, cols)).float().double().requires_grad_()
    b = (0.3 * wave(3, cols)).float().double().requires_grad_()
    running = [(0.3 * wave(5, cols)).float().double(),
               (1.2 + 0.3 * wave(6, cols)).float().double()]
    add = wave(7, rows * cols).view(rows, cols) if has_add else 0

    def behind(x):
        return F.relu(x + add) if has_relu else x + add

    late = behind(F.batch_norm(x, *running, w, b, False, 0.1, 1e-5))
    new = [t.clone() for t in running]
    y = behind(F.batch_norm(x, *new, w, b, True, 0.1, 1e-5))
    y.backward(wave(4, rows * cols).view(rows, cols))
    emit("GOLDEN_NORM", sizes,
         [y, late, x.grad, w.grad, b.grad,
          *((old - at) / 0.1 for old, at in zip(running, new))])


print(f"/* image_ops_golden.h: written by make_image_ops_golden.py with PyTorch "
      f"{torch.__version__};\n * not to be edited.  See there. */\n"
      "#ifndef FR_TESTS_IMAGE_OPS_GOLDEN_H\n"
      "#define FR_TESTS_IMAGE_OPS_GOLDEN_H\n\n"
      "#include <stdint.h>\n\n"
      "enum { GOLDEN_OP_SIZES = 9, GOLDEN_OP_RESULTS = 7 };\n\n"
      "typedef enum golden_op_kind { GOLDEN_CONV, GOLDEN_POOL, GOLDEN_NORM } "
      "golden_op_kind;\n\n"
      "/* n 0: there is none. */\n"
      "typedef struct golden_numbers {\n    int64_t n;\n"
      "    double sum, norm;\n"
      "    struct {\n        int64_t at;\n        double value;\n"
      "    } element[3];\n} golden_numbers;\n\n"
      "typedef struct golden_op {\n    golden_op_kind kind;\n"
      "    int64_t size[GOLDEN_OP_SIZES];\n"
      "    golden_numbers result[GOLDEN_OP_RESULTS];\n} golden_op;\n\n"
      "/* clang-format off */\nstatic const golden_op golden_ops[] = {")
for one in CONVS:
    conv(one)
for one in POOLS:
    pool(one)
for one in NORMS:
    norm(one)
print("};\n/* clang-format on */\n\n#endif")
