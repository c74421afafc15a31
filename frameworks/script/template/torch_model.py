# ---- the model: a decoder in the style of GPT-2 or Llama --------------------


class RMSNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) +
                            MODEL["norm_eps"])
        return (wide * scale).to(x.dtype) * self.weight


def new_norm(n):
    if MODEL["rms_norm"]:
        return RMSNorm(n)
    return nn.LayerNorm(n, eps=MODEL["norm_eps"])


def rotate(x, angles):
    """Rotary positions: element i of a head turns with element i + half."""
    cos, sin = (part.to(x.dtype) for part in angles)
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin, rest), -1)


def rotary_angles(seq, device):
    half = int(MODEL["head_dim"] * MODEL["rope_frac"]) // 2
    i = torch.arange(half, dtype=torch.float64, device=device)
    position = torch.arange(seq, dtype=torch.float64, device=device)
    angles = torch.outer(position, MODEL["rope_theta"]**(-i / half))
    return angles.cos().float(), angles.sin().float()


def attention_core(q, k, v, training):
    """Causal attention of (batch, heads, seq, head_dim)."""
    dropout = JOB["dropout"] if training else 0.0
    seq, window = q.shape[-2], MODEL["sliding_window"]
    repeat = q.shape[1] // k.shape[1]
    if repeat > 1:
        k, v = (x.repeat_interleave(repeat, dim=1) for x in (k, v))
    is_windowed = 0 < window < seq
    fused = getattr(F, "scaled_dot_product_attention", None)
    use_fused = PLAN["flash_attention"] and fused is not None
    mask = None
    if is_windowed or not use_fused:
        behind = torch.arange(seq, device=q.device)
        behind = behind[:, None] - behind[None, :]
        mask = (behind >= 0) & (behind < (window if is_windowed else seq))
    if use_fused:
        return fused(q, k, v, attn_mask=mask, dropout_p=dropout,
                     is_causal=mask is None)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    scores = scores.float().masked_fill(~mask, float("-inf"))
    return F.dropout(F.softmax(scores, -1).to(v.dtype), dropout) @ v


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        hidden, size = MODEL["hidden"], MODEL["head_dim"]
        has_bias = MODEL["qkv_bias"]
        self.q = nn.Linear(hidden, MODEL["n_heads"] * size, has_bias)
        self.k = nn.Linear(hidden, MODEL["n_kv_heads"] * size, has_bias)
        self.v = nn.Linear(hidden, MODEL["n_kv_heads"] * size, has_bias)
        self.out = nn.Linear(MODEL["n_heads"] * size, hidden,
                             MODEL["out_bias"])
        self.q_norm = RMSNorm(size) if MODEL["qk_norm"] else None
        self.k_norm = RMSNorm(size) if MODEL["qk_norm"] else None

    def forward(self, x, angles, is_core_recomputed):
        size = MODEL["head_dim"]
        q, k, v = (part(x).unflatten(-1, (-1, size)).transpose(1, 2)
                   for part in (self.q, self.k, self.v))
        if self.q_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        if angles is not None:
            q, k = rotate(q, angles), rotate(k, angles)
        if is_core_recomputed and self.training:
            mixed = checkpoint(attention_core, q, k, v, True,
                               use_reentrant=False)
        else:
            mixed = attention_core(q, k, v, self.training)
        return self.out(mixed.transpose(1, 2).flatten(2))


ACTIVATIONS = {
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu": F.gelu,
    "silu": F.silu,
    "relu": F.relu,
}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        hidden, wide = MODEL["hidden"], MODEL["ffn_hidden"]
        has_bias = MODEL["mlp_bias"]
        self.gate = None
        if MODEL["gated_mlp"]:
            self.gate = nn.Linear(hidden, wide, has_bias)
        self.up = nn.Linear(hidden, wide, has_bias)
        self.down = nn.Linear(wide, hidden, has_bias)

    def forward(self, x):
        activation = ACTIVATIONS[MODEL["activation"]]
        if self.gate is None:
            return self.down(activation(self.up(x)))
        return self.down(activation(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """A layer; PLAN says what of it is made again in backward, and whether
    what it keeps waits in host memory."""

    def __init__(self, i_layer):
        super().__init__()
        self.norm1, self.attention = new_norm(MODEL["hidden"]), Attention()
        self.norm2, self.mlp = new_norm(MODEL["hidden"]), MLP()
        kind, parts = PLAN["recompute"], PLAN["recompute_parts"]
        n_layers = PLAN["recompute_layers"] or MODEL["n_layers"]
        self.is_recomputed = kind == "full" and i_layer < n_layers
        self.is_core_recomputed = kind == "selective" and parts & 1 != 0
        self.is_mlp_recomputed = kind == "selective" and parts & 8 != 0
        n_offloaded = round(PLAN["offload_activations"] * MODEL["n_layers"])
        self.is_offloaded = i_layer < n_offloaded

    def drop(self, x):
        return F.dropout(x, JOB["dropout"], self.training)

    def run_mlp(self, x):
        if self.is_mlp_recomputed and self.training:
            return checkpoint(self.mlp, x, use_reentrant=False)
        return self.mlp(x)

    def run(self, x, angles):
        mixed = self.attention(self.norm1(x), angles, self.is_core_recomputed)
        if MODEL["parallel_block"]:
            return (x + self.drop(mixed) +
                    self.drop(self.run_mlp(self.norm2(x))))
        x = x + self.drop(mixed)
        return x + self.drop(self.run_mlp(self.norm2(x)))

    def run_recomputed(self, x, angles):
        if self.is_recomputed and self.training:
            return checkpoint(self.run, x, angles, use_reentrant=False)
        return self.run(x, angles)

    def forward(self, x, angles):
        if not (self.is_offloaded and self.training):
            return self.run_recomputed(x, angles)
        with torch.autograd.graph.save_on_cpu(pin_memory=x.is_cuda):
            return self.run_recomputed(x, angles)


class Decoder(nn.Module):
    """
    Layers are made, filled by `weights`, and handed to `wrap` (which moves
    and shards them) one after the other: no device holds the whole model
    where they are sharded.
    """

    def __init__(self, weights, wrap):
        super().__init__()
        vocab, hidden = MODEL["vocab"], MODEL["hidden"]
        self.embed = nn.Embedding(vocab, hidden)
        self.positions = None
        if not MODEL["rope"]:
            self.positions = nn.Embedding(MODEL["max_seq"], hidden)
        self.norm = new_norm(hidden)
        self.head = None if MODEL["tied"] else nn.Linear(hidden, vocab, False)
        weights.fill_ends(self)
        self.layers = nn.ModuleList()
        for i in range(MODEL["n_layers"]):
            block = Block(i)
            weights.fill_layer(block, i)
            self.layers.append(wrap(block))

    def forward(self, tokens, targets):
        """The mean loss of the tokens."""
        seq = tokens.shape[1]
        x = self.embed(tokens)
        angles = None
        if MODEL["scaled_embedding"]:
            x = x * math.sqrt(MODEL["hidden"])
        if self.positions is None:
            angles = rotary_angles(seq, x.device)
        else:
            x = x + self.positions.weight[:seq]
        for block in self.layers:
            x = block(x, angles)
        x = self.norm(x)
        if self.head is None:
            logits = F.linear(x, self.embed.weight)
        else:
            logits = self.head(x)
        return F.cross_entropy(logits.float().flatten(0, 1),
                               targets.flatten())


# ---- where weights begin -----------------------------------------------------

# Parts of a layer: forerun's number of the tensor in the layer, which part of
# a stacked matrix it is, its names in GPT-2's and in Llama's files.
LAYER_PARTS = [
    ("norm1", 0, 0, "ln_1", "input_layernorm"),
    ("norm2", 2, 0, "ln_2", "post_attention_layernorm"),
    ("attention.q", 4, 0, "attn.c_attn", "self_attn.q_proj"),
    ("attention.k", 4, 1, "attn.c_attn", "self_attn.k_proj"),
    ("attention.v", 4, 2, "attn.c_attn", "self_attn.v_proj"),
    ("attention.out", 6, 0, "attn.c_proj", "self_attn.o_proj"),
    ("attention.q_norm", None, 0, "attn.q_norm", "self_attn.q_norm"),
    ("attention.k_norm", None, 0, "attn.k_norm", "self_attn.k_norm"),
    ("mlp.gate", 8, 0, "mlp.gate_proj", "mlp.gate_proj"),
    ("mlp.up", 8, 1, "mlp.c_fc", "mlp.up_proj"),
    ("mlp.down", 10, 0, "mlp.c_proj", "mlp.down_proj"),
]
END_PARTS = [
    ("embed", 0, "wte", "model.embed_tokens"),
    ("positions", 1, "wpe", "model.position_embeddings"),
    ("norm", 2, "ln_f", "model.norm"),
    ("head", 4, "lm_head", "lm_head"),
]
IS_GPT2 = not MODEL["rope"]
DTYPES = {"F64": torch.float64, "F32": torch.float32,
          "F16": torch.float16, "BF16": torch.bfloat16}


def find_part(module, path):
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


class Weights:
    """Forerun's own random numbers, or safetensors with the names of Hugging
    Face's GPT-2 or Llama: a file, or a folder with all files of a model."""

    def __init__(self, path, seed):
        self.seed, self.path, self.entries = seed, path, None
        if path:
            self.entries = {}
            for file in [path] if os.path.isfile(path) else [
                    os.path.join(path, name) for name in os.listdir(path)
                    if name.endswith(".safetensors")]:
                self.add_file(file)

    def add_file(self, path):
        """Notes where each tensor of a file stands."""
        with open(path, "rb") as file:
            (n,) = struct.unpack("<Q", file.read(8))
            entries = json.loads(file.read(n))
        entries.pop("__metadata__", None)
        for name, entry in entries.items():
            self.entries[name] = path, 8 + n, entry

    def read(self, name):
        """A tensor of the files; None: they have none of that name."""
        for candidate in (name, "transformer." + name):
            if candidate in self.entries:
                break
        else:
            return None
        path, start, entry = self.entries[candidate]
        first, last = entry["data_offsets"]
        with open(path, "rb") as file:
            file.seek(start + first)
            data = bytearray(file.read(last - first))
        tensor = torch.frombuffer(data, dtype=DTYPES[entry["dtype"]])
        return tensor.reshape(entry["shape"]).float()

    @torch.no_grad()
    def copy(self, module, name, part):
        """GPT-2's files hold matrices (in, out), and q, k, v as one."""
        for kind in ("weight", "bias"):
            parameter = getattr(module, kind, None)
            if parameter is None:
                continue
            tensor = self.read(f"{name}.{kind}")
            if tensor is None:
                raise SystemExit(f"{self.path} has no {name}.{kind}")
            if IS_GPT2 and parameter.dim() == 2 and name.startswith("h."):
                tensor = tensor.t()
            if name.endswith("c_attn"):
                sizes = [MODEL["n_heads"], *2 * [MODEL["n_kv_heads"]]]
                sizes = [n * MODEL["head_dim"] for n in sizes]
                tensor = tensor.split(sizes)[part]
            if tensor.shape != parameter.shape:
                raise SystemExit(f"{self.path}: {name}.{kind} is "
                                 f"{list(tensor.shape)}, the model has "
                                 f"{list(parameter.shape)}")
            parameter.copy_(tensor)

    @torch.no_grad()
    def draw(self, module, tensor, first_row, std):
        """Matrices normal, biases 0, norms 1."""
        if getattr(module, "bias", None) is not None:
            module.bias.zero_()
        weight = module.weight
        if weight.dim() == 1:
            weight.fill_(1.0)
            return
        n_rows, n_columns = weight.shape
        at_once = max(1, (1 << 22) // n_columns)
        for row in range(0, n_rows, at_once):
            n = min(at_once, n_rows - row)
            values = normal_rows(self.seed, tensor, first_row + row, n,
                                 n_columns, std)
            weight[row:row + n] = torch.from_numpy(values)

    def fill_layer(self, block, i_layer):
        std = 0.02  # GPT-2 scales what is added to the residual stream
        residual = std if MODEL["rms_norm"] else (
            std / math.sqrt(2 * MODEL["n_layers"]))
        size = MODEL["head_dim"]
        q, kv = MODEL["n_heads"] * size, MODEL["n_kv_heads"] * size
        rows = {"attention.k": q, "attention.v": q + kv,
                "mlp.up": MODEL["ffn_hidden"] if MODEL["gated_mlp"] else 0}
        for path, tensor, part, gpt2, llama in LAYER_PARTS:
            module = find_part(block, path)
            if module is None:
                continue
            if self.entries is not None:
                name = (f"h.{i_layer}.{gpt2}" if IS_GPT2 else
                        f"model.layers.{i_layer}.{llama}")
                self.copy(module, name, part)
            else:
                is_last = path in ("attention.out", "mlp.down")
                self.draw(module, 16 + 16 * i_layer + (tensor or 0),
                          rows.get(path, 0), residual if is_last else std)

    def fill_ends(self, model):
        for path, tensor, gpt2, llama in END_PARTS:
            module = find_part(model, path)
            if module is not None and self.entries is not None:
                self.copy(module, gpt2 if IS_GPT2 else llama, 0)
            elif module is not None:
                self.draw(module, tensor, 0, 0.02)


def save_safetensors(tensors, path):
    """Writes {name: tensor} as float32."""
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [at, at + 4 * tensor.numel()]}
        at += 4 * tensor.numel()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().float().cpu().contiguous()
                       .numpy().astype("<f4").tobytes())


def named_tensors(state):
    """The state of a Decoder under the names of Hugging Face's files."""
    tensors = {}
    for path, _, gpt2, llama in END_PARTS:
        for kind in ("weight", "bias"):
            if f"{path}.{kind}" in state:
                name = gpt2 if IS_GPT2 else llama
                tensors[f"{name}.{kind}"] = state[f"{path}.{kind}"]
    for i in range(MODEL["n_layers"]):
        for path, _, _, gpt2, llama in LAYER_PARTS:
            for kind in ("weight", "bias"):
                tensor = state.get(f"layers.{i}.{path}.{kind}")
                if tensor is None:
                    continue
                name = (f"h.{i}.{gpt2}" if IS_GPT2 else
                        f"model.layers.{i}.{llama}") + "." + kind
                if IS_GPT2 and tensor.dim() == 2:
                    tensor = tensor.t()
                if name in tensors:  # q, k and v as one
                    tensor = torch.cat((tensors[name], tensor), -1)
                tensors[name] = tensor
    return tensors
