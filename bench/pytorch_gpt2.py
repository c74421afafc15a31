#!/usr/bin/python3
"""Tokens per second of one GPT-2 training step in PyTorch on the CPU.

The peer of `make bench-runtime`: same model, batch, precision (fp32), AdamW
and thread count.  Prints one JSON object.  Usage:
    pytorch_gpt2.py N_LAYERS HIDDEN HEADS VOCAB BATCH SEQ THREADS STEPS
"""
import json
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(hidden)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.proj = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden)
        self.fc = nn.Linear(hidden, 4 * hidden)
        self.out = nn.Linear(4 * hidden, hidden)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(c, dim=2)
        shape = (b, t, self.heads, c // self.heads)
        q, k, v = (a.view(shape).transpose(1, 2) for a in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        att = att.masked_fill(mask[:t, :t], float("-inf")).softmax(dim=-1)
        y = (att @ v).transpose(1, 2).reshape(b, t, c)
        x = x + self.proj(y)
        h = self.fc(self.ln_2(x))
        # The tanh form in primitive operations: F.gelu has no such form
        # before PyTorch 1.12 and this costs PyTorch more; use the fused one.
        h = F.gelu(h, approximate="tanh")
        return x + self.out(h)


class Gpt2(nn.Module):
    def __init__(self, layers, hidden, heads, vocab, seq):
        super().__init__()
        self.wte = nn.Embedding(vocab, hidden)
        self.wpe = nn.Embedding(1024, hidden)
        self.blocks = nn.ModuleList(
            Block(hidden, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(hidden)
        mask = torch.triu(torch.ones(seq, seq, dtype=torch.bool), 1)
        self.register_buffer("mask", mask)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, self.mask)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, logits.shape[-1]),
                               targets.view(-1))


def main():
    layers, hidden, heads, vocab, batch, seq, threads, steps = map(
        int, sys.argv[1:9])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = Gpt2(layers, hidden, heads, vocab, seq)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4,
                                  weight_decay=0.1)
    seconds = []
    for _ in range(steps + 2):
        tokens = torch.randint(0, vocab, (batch, seq + 1))
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = model(tokens[:, :-1], tokens[:, 1:].contiguous())
        loss.backward()
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    step_s = statistics.median(seconds[2:])
    print(json.dumps({
        "torch": torch.__version__, "threads": torch.get_num_threads(),
        "step_s": step_s, "tokens_per_s": batch * seq / step_s}))


if __name__ == "__main__":
    main()
