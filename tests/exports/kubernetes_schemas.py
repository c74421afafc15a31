#!/usr/bin/env python3
"""Manifests against the published schemas of Kubernetes' custom resources.

usage: kubernetes_schemas.py REPORT.json MANIFEST.yaml...
JOBSET_CRD and PYTORCHJOB_CRD name the files
config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml of
kubernetes-sigs/jobset and manifests/base/crds/kubeflow.org_pytorchjobs.yaml of
kubeflow/training-operator, release 1.9.  Exit 77 where neither is given.
"""
import functools
import json
import os
import sys

try:
    import jsonschema
    import yaml
except ImportError as why:
    print(f"skipped: {why}")
    sys.exit(77)

SCHEMAS = {"JobSet": "JOBSET_CRD", "PyTorchJob": "PYTORCHJOB_CRD"}


def closed(schema):
    """The same schema, where a key that it does not name is wrong."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: closed(value) for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        out.pop("type", None)
        out.pop("anyOf", None)
        out.pop("pattern", None)
    if isinstance(out.get("properties"), dict) and out.get("type") == "object":
        out.setdefault("additionalProperties", False)
    return out


@functools.lru_cache
def schema_of(kind):
    with open(os.environ[SCHEMAS[kind]], encoding="utf-8") as file:
        crd = yaml.safe_load(file)
    version = crd["spec"]["versions"][0]
    return version["name"], closed(version["schema"]["openAPIV3Schema"])


def main():
    known = {kind for kind, name in SCHEMAS.items() if os.environ.get(name)}
    if not known:
        print("skipped: JOBSET_CRD and PYTORCHJOB_CRD are not set")
        return 77
    n_wrong = n_checked = 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            documents = list(yaml.safe_load_all(file))
        for document in documents:
            kind = document["kind"]
            if kind not in known:
                continue
            version, schema = schema_of(kind)
            n_checked += 1
            if not document["apiVersion"].endswith("/" + version):
                print(f"{path}: {document['apiVersion']} is not {version}")
                n_wrong += 1
            # `metadata` is checked by Kubernetes itself, not by the resource.
            document = dict(document)
            document.pop("metadata")
            for error in jsonschema.Draft7Validator(schema).iter_errors(
                    document):
                where = ".".join(str(step) for step in error.path)
                print(f"{path}: {kind}: {where}: {error.message[:200]}")
                n_wrong += 1
    print(f"{n_checked} manifests, {n_wrong} wrong")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"manifests": n_checked, "wrong": n_wrong}, file)
    return 1 if n_wrong or not n_checked else 0


if __name__ == "__main__":
    sys.exit(main())
