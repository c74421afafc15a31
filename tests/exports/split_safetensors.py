#!/usr/bin/env python3
"""usage: split_safetensors.py FOLDER: its model.safetensors as two files and an
index, as Hugging Face writes large models."""
import json
import os
import struct
import sys

folder = sys.argv[1]
whole = os.path.join(folder, "model.safetensors")
with open(whole, "rb") as file:
    (n,) = struct.unpack("<Q", file.read(8))
    entries, data = json.loads(file.read(n)), file.read()
os.remove(whole)
entries.pop("__metadata__", None)
names, weight_map = sorted(entries), {}
for part in range(2):
    header, tensors, path = {}, b"", f"model-{part + 1:05d}-of-00002.safetensors"
    for name in names[part::2]:
        first, last = entries[name]["data_offsets"]
        header[name] = dict(entries[name], data_offsets=[
            len(tensors), len(tensors) + last - first])
        tensors += data[first:last]
        weight_map[name] = path
    text = json.dumps(header).encode()
    with open(os.path.join(folder, path), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + tensors)
with open(os.path.join(folder, "model.safetensors.index.json"), "w") as file:
    json.dump({"weight_map": weight_map}, file)
