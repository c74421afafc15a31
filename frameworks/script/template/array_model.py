# ---- the model: a decoder, in the functions of NumPy that `xp` has -----------

# Parts of a layer: forerun's number of the tensor in the layer, and which way
# its matrix is split: by rows of (out, in), by columns, or not at all.
LAYER_PARTS = {
    "norm1": (0, None), "norm2": (2, None), "q_norm": (None, None),
    "k_norm": (None, None), "q": (4, 0), "k": (4, 0), "v": (4, 0),
    "out": (6, 1), "gate": (8, 0), "up": (8, 0), "down": (10, 1),
}


def layer_shapes():
    """Shape of each part, whether it has a bias, its first stacked row."""
    hidden, size = MODEL["hidden"], MODEL["head_dim"]
    q, kv = MODEL["n_heads"] * size, MODEL["n_kv_heads"] * size
    wide, has_bias = MODEL["ffn_hidden"], MODEL["qkv_bias"]
    is_layer_norm = not MODEL["rms_norm"]
    shapes = {"norm1": ((hidden,), is_layer_norm, 0),
              "norm2": ((hidden,), is_layer_norm, 0),
              "q": ((q, hidden), has_bias, 0),
              "k": ((kv, hidden), has_bias, q),
              "v": ((kv, hidden), has_bias, q + kv),
              "out": ((hidden, q), MODEL["out_bias"], 0),
              "up": ((wide, hidden), MODEL["mlp_bias"],
                     wide if MODEL["gated_mlp"] else 0),
              "down": ((hidden, wide), MODEL["mlp_bias"], 0)}
    if MODEL["gated_mlp"]:
        shapes["gate"] = ((wide, hidden), MODEL["mlp_bias"], 0)
    if MODEL["qk_norm"]:
        shapes["q_norm"] = shapes["k_norm"] = ((size,), False, 0)
    return shapes


def new_parameters(place):
    """
    The weights that `forerun run` begins with, by name; `place` is given each
    with its name, and puts it where it belongs.
    """
    seed, hidden = JOB["seed"], MODEL["hidden"]
    parameters = {}

    def add(name, shape, has_bias, tensor, row, std):
        if len(shape) == 1:
            value = np.ones(shape, np.float32)
        else:
            value = normal_rows(seed, tensor, row, *shape, std)
        parameters[name + ".weight"] = place(name + ".weight", value)
        if has_bias:
            zeros = np.zeros(shape[:1], np.float32)
            parameters[name + ".bias"] = place(name + ".bias", zeros)

    add("embed", (MODEL["vocab"], hidden), False, 0, 0, 0.02)
    if not MODEL["rope"]:
        add("positions", (MODEL["max_seq"], hidden), False, 1, 0, 0.02)
    add("norm", (hidden,), not MODEL["rms_norm"], 2, 0, 0)
    if not MODEL["tied"]:
        add("head", (MODEL["vocab"], hidden), False, 4, 0, 0.02)
    # GPT-2 scales what is added to the residual stream.
    residual = 0.02 if MODEL["rms_norm"] else (
        0.02 / math.sqrt(2 * MODEL["n_layers"]))
    for i in range(MODEL["n_layers"]):
        for part, (shape, has_bias, row) in layer_shapes().items():
            std = residual if part in ("out", "down") else 0.02
            number = 16 + 16 * i + (LAYER_PARTS[part][0] or 0)
            add(f"layers.{i}.{part}", shape, has_bias, number, row, std)
    return parameters


def linear(p, part, x):
    y = x @ p[part + ".weight"].astype(x.dtype).T
    bias = p.get(part + ".bias")
    return y if bias is None else y + bias.astype(x.dtype)


def normed(p, part, x, is_rms):
    wide = x.astype(xp.float32)
    if not is_rms:
        wide = wide - xp.mean(wide, axis=-1, keepdims=True)
    variance = xp.mean(wide * wide, axis=-1, keepdims=True)
    y = wide / xp.sqrt(variance + MODEL["norm_eps"]) * p[part + ".weight"]
    bias = p.get(part + ".bias")
    return (y if bias is None else y + bias).astype(x.dtype)


def rotate(x):
    """Rotary positions of (batch, seq, heads, head_dim)."""
    half = int(MODEL["head_dim"] * MODEL["rope_frac"]) // 2
    frequency = MODEL["rope_theta"]**(-np.arange(half) / half)
    angles = np.arange(x.shape[1])[:, None, None] * frequency
    cos = xp.asarray(np.cos(angles).astype(np.float32)).astype(x.dtype)
    sin = xp.asarray(np.sin(angles).astype(np.float32)).astype(x.dtype)
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return xp.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)


def plain_attention(q, k, v):
    """Causal attention of (batch, seq, heads, head_dim)."""
    seq, size, window = q.shape[1], q.shape[3], MODEL["sliding_window"]
    repeat = q.shape[2] // k.shape[2]
    k, v = xp.repeat(k, repeat, axis=2), xp.repeat(v, repeat, axis=2)
    q, k, v = (xp.transpose(x, (0, 2, 1, 3)) for x in (q, k, v))
    scores = (q @ xp.transpose(k, (0, 1, 3, 2))).astype(xp.float32)
    behind = np.arange(seq)[:, None] - np.arange(seq)
    seen = (behind >= 0) & (behind < (window if window > 0 else seq))
    scores = xp.where(seen, scores / math.sqrt(size), np.float32(-1e30))
    scores = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    shares = scores / xp.sum(scores, axis=-1, keepdims=True)
    return xp.transpose(shares.astype(v.dtype) @ v, (0, 2, 1, 3))


def activated(x):
    kind = MODEL["activation"]
    if kind == "relu":
        return xp.maximum(x, 0)
    if kind == "silu":
        return x / (1 + xp.exp(-x))
    if kind == "gelu":
        return 0.5 * x * (1 + erf(x / math.sqrt(2)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + xp.tanh(inner))


def mlp(p, x):
    if MODEL["gated_mlp"]:
        return linear(p, "down",
                      activated(linear(p, "gate", x)) * linear(p, "up", x))
    return linear(p, "down", activated(linear(p, "up", x)))


def block(p, x):
    """One layer; `attend` and `run_mlp` are the script's."""
    batch, seq, is_rms = x.shape[0], x.shape[1], MODEL["rms_norm"]
    h = normed(p, "norm1", x, is_rms)
    q, k, v = (linear(p, part, h).reshape(batch, seq, -1, MODEL["head_dim"])
               for part in ("q", "k", "v"))
    if MODEL["qk_norm"]:
        q, k = normed(p, "q_norm", q, True), normed(p, "k_norm", k, True)
    if MODEL["rope"]:
        q, k = rotate(q), rotate(k)
    mixed = linear(p, "out", attend(q, k, v).reshape(batch, seq, -1))
    if MODEL["parallel_block"]:
        return x + mixed + run_mlp(p, normed(p, "norm2", x, is_rms))
    x = x + mixed
    return x + run_mlp(p, normed(p, "norm2", x, is_rms))


def mean_loss(p, tokens, targets):
    """Of all tokens; `run_block` is the script's block()."""
    x = xp.take(p["embed.weight"], tokens, axis=0)
    if not MODEL["rope"]:
        x = x + p["positions.weight"][:tokens.shape[1]]
    x = x.astype(COMPUTE)
    for i in range(MODEL["n_layers"]):
        begin = f"layers.{i}."
        layer = {name[len(begin):]: value for name, value in p.items()
                 if name.startswith(begin)}
        x = run_block(layer, x, i)
    x = normed(p, "norm", x, MODEL["rms_norm"])
    head = p["embed.weight"] if MODEL["tied"] else p["head.weight"]
    logits = (x @ head.astype(x.dtype).T).astype(xp.float32)
    logits = logits - xp.max(logits, axis=-1, keepdims=True)
    total = xp.log(xp.sum(xp.exp(logits), axis=-1))
    of_target = xp.take_along_axis(logits, targets[..., None], axis=-1)
    return xp.mean(total - of_target[..., 0])


# ---- optimizer ---------------------------------------------------------------


def updated(w, g, m, v, t, lr):
    """A parameter and its moments after step t, from 1; the gradient is
    clipped.  Matrices decay, norms and biases do not."""
    beta1, beta2, kind = JOB["beta1"], JOB["beta2"], JOB["optimizer"]
    decay = JOB["weight_decay"] if len(w.shape) > 1 else 0.0

    def norm(x):
        return xp.sqrt(xp.sum(x * x))

    def ratio(a, b):
        """a / b of matrices; 1 where either is 0, and of vectors."""
        if len(w.shape) == 1:
            return 1.0
        is_both = (a > 0) & (b > 0)
        return xp.where(is_both, a / xp.where(b > 0, b, 1.0), 1.0)

    if kind == "sgd":
        m = beta1 * m + g + decay * w
        return w - lr * m, m, v
    if kind == "lars":
        trust = ratio(JOB["trust_coefficient"] * norm(w),
                      norm(g) + JOB["weight_decay"] * norm(w))
        m = beta1 * m + lr * trust * (g + decay * w)
        return w - m, m, v
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    root = xp.sqrt(v / (1 - beta2**t)) + JOB["optimizer_eps"]
    update = m / (1 - beta1**t) / root
    if kind == "adamw":
        return w - lr * decay * w - lr * update, m, v
    update = update + decay * w
    return w - lr * ratio(norm(w), norm(update)) * update, m, v


def clipped(gradients):
    if JOB["clip_norm"] == 0:
        return gradients
    squares = [xp.sum(g * g) for g in gradients.values()]
    norm = xp.sqrt(sum(squares))
    factor = xp.minimum(1.0, JOB["clip_norm"] / (norm + 1e-12))
    return {name: g * factor for name, g in gradients.items()}
