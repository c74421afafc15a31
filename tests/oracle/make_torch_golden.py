#!/usr/bin/python3
"""Makes torch_golden.h: golden losses and gradients of two tiny models.

    apt-get install python3-torch
    /usr/bin/python3 tests/oracle/make_torch_golden.py > tests/oracle/torch_golden.h

The models are written here with torch.nn.functional and autograd alone, in
float64; weights and tokens follow the formulas of golden_model.h.
"""
import math

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
STEPS = 5
SAMPLES = 6

GPT2 = dict(name="gpt2_tiny", batch=3, seq=19, n_layers=2, hidden=48,
            n_heads=3, n_kv_heads=3, head_dim=16, ffn_hidden=192, vocab=97,
            max_seq=32, is_llama=0, norm_eps=1e-5, rope_theta=0.0)
LLAMA = dict(name="llama_tiny", batch=2, seq=23, n_layers=2, hidden=48,
             n_heads=6, n_kv_heads=2, head_dim=8, ffn_hidden=80, vocab=101,
             max_seq=64, is_llama=1, norm_eps=1e-5, rope_theta=10000.0)
ADAMW = dict(lr=0.0031, beta1=0.87, beta2=0.963, optimizer_eps=1.3e-7,
             weight_decay=0.071, clip_norm=1.7)


def shapes(m):
    """(name, rows, cols, base, amplitude) of every tensor, in order."""
    c, f, v = m["hidden"], m["ffn_hidden"], m["vocab"]
    q = m["n_heads"] * m["head_dim"]
    qkv = q + 2 * m["n_kv_heads"] * m["head_dim"]
    out = []
    if m["is_llama"]:
        out.append(("embed_tokens.weight", v, c, 0.0, 0.31))
        for i in range(m["n_layers"]):
            p = f"layers.{i}."
            out += [(p + "input_layernorm.weight", 1, c, 1.0, 0.21),
                    (p + "post_attention_layernorm.weight", 1, c, 1.0, 0.17),
                    (p + "self_attn.qkv_proj.weight", qkv, c, 0.0, 0.23),
                    (p + "self_attn.o_proj.weight", c, q, 0.0, 0.19),
                    (p + "mlp.gate_up_proj.weight", 2 * f, c, 0.0, 0.22),
                    (p + "mlp.down_proj.weight", c, f, 0.0, 0.18)]
        out += [("norm.weight", 1, c, 1.0, 0.27),
                ("lm_head.weight", v, c, 0.0, 0.29)]
    else:
        out += [("wte.weight", v, c, 0.0, 0.26),
                ("wpe.weight", m["max_seq"], c, 0.0, 0.13)]
        for i in range(m["n_layers"]):
            p = f"h.{i}."
            out += [(p + "ln_1.weight", 1, c, 1.0, 0.21),
                    (p + "ln_1.bias", 1, c, 0.0, 0.11),
                    (p + "ln_2.weight", 1, c, 1.0, 0.17),
                    (p + "ln_2.bias", 1, c, 0.0, 0.14),
                    (p + "attn.c_attn.weight", qkv, c, 0.0, 0.23),
                    (p + "attn.c_attn.bias", 1, qkv, 0.0, 0.12),
                    (p + "attn.c_proj.weight", c, q, 0.0, 0.19),
                    (p + "attn.c_proj.bias", 1, c, 0.0, 0.16),
                    (p + "mlp.c_fc.weight", f, c, 0.0, 0.22),
                    (p + "mlp.c_fc.bias", 1, f, 0.0, 0.15),
                    (p + "mlp.c_proj.weight", c, f, 0.0, 0.18),
                    (p + "mlp.c_proj.bias", 1, c, 0.0, 0.13)]
        out += [("ln_f.weight", 1, c, 1.0, 0.27), ("ln_f.bias", 1, c, 0.0, 0.1)]
    return out


def weight(phase, rows, cols, base, amplitude):
    row = torch.arange(rows).double()[:, None]
    col = torch.arange(cols).double()[None, :]
    angle = (phase + 1.61803398875 * row + 2.39996322973 * col
             + 0.0137 * (row * row + 3 * col * col))
    w = base + amplitude * torch.sin(angle)
    return w.float().double().requires_grad_(True)


def rotate(x, theta):
    """Rotary positions of x[B, heads, T, head_dim], pairs (i, i + half)."""
    half = x.shape[-1] // 2
    inverse = theta ** (-torch.arange(half).double() / half)
    angle = torch.arange(x.shape[-2]).double()[:, None] * inverse[None, :]
    c, s = torch.cos(angle), torch.sin(angle)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * c - b * s, b * c + a * s], dim=-1)


def attention(m, qkv):
    b, t, _ = qkv.shape
    hq, hk, d = m["n_heads"], m["n_kv_heads"], m["head_dim"]
    q, k, v = qkv.split([hq * d, hk * d, hk * d], dim=-1)
    q = q.view(b, t, hq, d).transpose(1, 2)
    k = k.view(b, t, hk, d).transpose(1, 2)
    v = v.view(b, t, hk, d).transpose(1, 2)
    if m["is_llama"]:
        q, k = rotate(q, m["rope_theta"]), rotate(k, m["rope_theta"])
    k = k.repeat_interleave(hq // hk, dim=1)
    v = v.repeat_interleave(hq // hk, dim=1)
    score = q @ k.transpose(-1, -2) / math.sqrt(d)
    mask = torch.ones(t, t, dtype=torch.bool).triu(1)
    p = torch.softmax(score.masked_fill(mask, -math.inf), dim=-1)
    return (p @ v).transpose(1, 2).reshape(b, t, hq * d)


def rms_norm(x, w, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def llama_loss(m, w, x, y):
    h = F.embedding(x, w["embed_tokens.weight"])
    eps, f = m["norm_eps"], m["ffn_hidden"]
    for i in range(m["n_layers"]):
        p = f"layers.{i}."
        n = rms_norm(h, w[p + "input_layernorm.weight"], eps)
        o = attention(m, F.linear(n, w[p + "self_attn.qkv_proj.weight"]))
        h = h + F.linear(o, w[p + "self_attn.o_proj.weight"])
        n = rms_norm(h, w[p + "post_attention_layernorm.weight"], eps)
        gate, up = F.linear(n, w[p + "mlp.gate_up_proj.weight"]).split(f, -1)
        h = h + F.linear(F.silu(gate) * up, w[p + "mlp.down_proj.weight"])
    n = rms_norm(h, w["norm.weight"], eps)
    logits = F.linear(n, w["lm_head.weight"])
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def gpt2_loss(m, w, x, y):
    c, eps = [m["hidden"]], m["norm_eps"]
    h = F.embedding(x, w["wte.weight"]) + w["wpe.weight"][:x.shape[1]]

    def norm(h, name):
        return F.layer_norm(h, c, w[name + ".weight"][0], w[name + ".bias"][0],
                            eps)

    def linear(h, name):
        return F.linear(h, w[name + ".weight"], w[name + ".bias"][0])

    for i in range(m["n_layers"]):
        p = f"h.{i}."
        qkv = linear(norm(h, p + "ln_1"), p + "attn.c_attn")
        h = h + linear(attention(m, qkv), p + "attn.c_proj")
        a = F.gelu(linear(norm(h, p + "ln_2"), p + "mlp.c_fc"),
                   approximate="tanh")
        h = h + linear(a, p + "mlp.c_proj")
    logits = F.linear(norm(h, "ln_f"), w["wte.weight"])
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def samples(g):
    """Elements spread over the tensor; where it is largest stands first."""
    rows, cols = g.shape
    i = int(g.abs().argmax())
    at = [(i // cols, i % cols)]
    for k in range(1, SAMPLES):
        at.append(((k * 7919 + 13) % rows, (k * 104729 + 29) % cols))
    return [(r, c, g[r, c].item()) for r, c in at]


def emit(m):
    spec = shapes(m)
    w = {}
    phases = {}
    for k, (name, rows, cols, base, amplitude) in enumerate(spec):
        phases[name] = 0.37 * k + 0.1
        w[name] = weight(phases[name], rows, cols, base, amplitude)
    b, t, v = m["batch"], m["seq"], m["vocab"]
    i = torch.arange(b * (t + 1))
    flat = ((7 * i * i + 3 * i + 11) % v).view(b, t + 1)
    x, y = flat[:, :-1], flat[:, 1:]
    loss_of = llama_loss if m["is_llama"] else gpt2_loss

    groups = [dict(params=[p for p in w.values() if p.shape[0] > 1],
                   weight_decay=ADAMW["weight_decay"]),
              dict(params=[p for p in w.values() if p.shape[0] == 1],
                   weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=ADAMW["lr"],
                                  betas=(ADAMW["beta1"], ADAMW["beta2"]),
                                  eps=ADAMW["optimizer_eps"])
    losses, first = [], None
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(m, w, x, y)
        loss.backward()
        losses.append(loss.item())
        if first is None:
            first = {n: p.grad.clone() for n, p in w.items()}
        norm = math.sqrt(sum(p.grad.pow(2).sum().item() for p in w.values()))
        if norm > ADAMW["clip_norm"]:
            for p in w.values():
                p.grad.mul_(ADAMW["clip_norm"] / norm)
        optimizer.step()

    print(f"static const golden_tensor golden_{m['name']}_tensors[] = {{")
    for name, rows, cols, base, amplitude in spec:
        g = first[name]
        print(f'    {{"{name}", {rows}, {cols}, {base!r}, {amplitude!r}, '
              f"{phases[name]:.17g},\n     {g.norm().item():.17g},")
        cells = [f"{{{r}, {c}, {x:.17g}}}" for r, c, x in samples(g)]
        print("     {" + ",\n      ".join(cells) + "}},")
    print("};\n")
    total = math.sqrt(sum(g.pow(2).sum().item() for g in first.values()))
    fields = {**m, **ADAMW}
    print(f"static const golden_model golden_{m['name']} = {{")
    for key, value in fields.items():
        text = f'"{value}"' if key == "name" else repr(value)
        print(f"    .{key} = {text},")
    print(f"    .gradient_norm = {total:.17g},")
    print("    .losses = {" + ",\n               ".join(
        f"{x:.17g}" for x in losses) + "},")
    print(f"    .n_tensors = {len(spec)},")
    print(f"    .tensors = golden_{m['name']}_tensors,\n}};\n")


def emit_paths():
    """One weight under SGD with momentum and under AdamW."""
    print("static const golden_weight_path golden_paths[] = {")
    for k in range(4):
        w0 = 0.7 * math.sin(1.3 * k + 0.2)
        lr, b1, b2, eps, wd = 0.013 + 0.01 * k, 0.83, 0.947, 1.7e-6, 0.09 * k
        g = [math.cos(0.9 * k + 1.7 * i) * 10.0 ** (-k) for i in range(8)]
        ends = []
        for kind in ("sgd", "adamw"):
            p = torch.tensor([w0], requires_grad=True)
            if kind == "sgd":
                o = torch.optim.SGD([p], lr=lr, momentum=b1, weight_decay=wd)
            else:
                o = torch.optim.AdamW([p], lr=lr, betas=(b1, b2), eps=eps,
                                      weight_decay=wd)
            for i in range(8):
                p.grad = torch.tensor([g[i]])
                o.step()
            ends.append(p.item())
        cells = ", ".join(f"{x:.17g}" for x in (w0, lr, b1, b2, eps, wd))
        print(f"    {{{cells},\n     8,")
        print("     {" + ",\n      ".join(f"{x:.17g}" for x in g) + "},")
        print(f"     {ends[0]:.17g}, {ends[1]:.17g}}},")
    print("};")


print("/* torch_golden.h: written by make_torch_golden.py with PyTorch "
      f"{torch.__version__};\n * not to be edited.  See golden_model.h. */\n"
      "#ifndef FR_TESTS_TORCH_GOLDEN_H\n#define FR_TESTS_TORCH_GOLDEN_H\n\n"
      "/* clang-format off */\n")
emit(GPT2)
emit(LLAMA)
emit_paths()
print("\n/* clang-format on */\n\n#endif")
