"""A small interpreter of TensorFlow.js graph models (one weight group, no control flow) in torch.

A graph is read once; for each input size it is turned into a straight list of steps. What depends on the input's shape
alone (shapes, ranges, resampling matrices) is computed while the list is made; groups of nodes that spell out a layer
normalisation, a GELU, a logistic function or a dense layer with its bias become one torch call each. Steps free what
nothing later reads.
"""

import base64
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from fujinsplat.core.errors import UserError
from fujinsplat.restore.graph_ops import DTYPES, OPERATIONS, unknown
from fujinsplat.restore.graph_patterns import PATTERNS


@dataclass(frozen=True)
class Node:
    """One node: `operation` is TensorFlow's name, `inputs` are names of nodes, `attributes` plain values."""

    name: str
    operation: str
    inputs: tuple[str, ...]
    attributes: dict


@dataclass
class Step:
    """`values[out] = run(*values[inputs])`, after which `last` are read no more."""

    run: Callable[..., Tensor]
    inputs: tuple[str, ...]
    out: str
    last: tuple[str, ...] = ()


class Graph:
    """`nodes` by name, `weights` by the name of their Const node; `picture` and `output` are node names.

    Products run in `precision`; what is added to them keeps its own, so that the picture itself stays float32.
    """

    def __init__(
        self,
        nodes: dict[str, Node],
        weights: dict[str, Tensor],
        picture: str,
        output: str,
        precision: torch.dtype = torch.float32,
    ):
        self.precision = precision
        self.nodes, self.weights, self.picture, self.output = nodes, weights, picture, output
        self.readers = Counter(name for node in nodes.values() for name in node.inputs)
        self._programs: dict[tuple[int, ...], Program] = {}

    @staticmethod
    def read(folder: Path, precision: torch.dtype = torch.float32) -> "Graph":
        """The model in `folder`: `model.json` and the shards it names."""
        try:
            model = json.loads((folder / "model.json").read_bytes())
            group = model["weightsManifest"]
            raw = np.frombuffer(
                b"".join((folder / path).read_bytes() for part in group for path in part["paths"]), np.uint8
            )
            weights = _weights([weight for part in group for weight in part["weights"]], raw)
            nodes = {node["name"]: _node(node) for node in model["modelTopology"]["node"]}
            signature = model["signature"]
            (picture,), (output,) = (
                [entry["name"].split(":")[0] for entry in signature[side].values()] for side in ("inputs", "outputs")
            )
        except FileNotFoundError as error:
            raise UserError(f"{error.filename} does not exist; fetch the model again") from None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{folder / 'model.json'} is not a graph model with one input and one output ({error!r}); "
                "fetch the model again"
            ) from None
        strange = {words for node in nodes.values() if (words := unknown(node.operation, node.attributes))}
        if strange:
            raise UserError(
                f"{folder / 'model.json'} uses {', '.join(sorted(strange))}, which this reader does not know; "
                "restore with the model's own program as the restorer's `command` instead"
            )
        return Graph(nodes, weights, picture, output, precision)

    @torch.inference_mode()
    def __call__(self, picture: Tensor) -> Tensor:
        """The graph's output for `picture` `[N, H, W, C]` float32."""
        shape = tuple(picture.shape)
        if shape not in self._programs:
            self._programs[shape] = Program(self, shape)
        return self._programs[shape](picture)


def _weights(manifest: list[dict], raw: np.ndarray) -> dict[str, Tensor]:
    weights, start = {}, 0
    for entry in manifest:
        dtype = np.dtype(entry["dtype"])
        if entry.get("quantization"):
            raise ValueError(f"weight {entry['name']} is quantised")
        size = int(np.prod(entry["shape"])) * dtype.itemsize
        if start + size > len(raw):
            raise ValueError(f"the shards end before weight {entry['name']}")
        value = torch.from_numpy(raw[start : start + size].view(dtype).reshape(entry["shape"]).copy())
        weights[entry["name"]] = value.long() if dtype.kind == "i" else value
        start += size
    if start != len(raw):
        raise ValueError(f"the shards hold {len(raw)} bytes and the weights {start}")
    return weights


def _node(entry: dict) -> Node:
    inputs = tuple(name.split(":")[0] for name in entry.get("input", []) if not name.startswith("^"))
    return Node(entry["name"], entry["op"], inputs, {k: _plain(v) for k, v in entry.get("attr", {}).items()})


def _plain(attribute: dict):
    """An attribute as a plain value; its strings are base64 and its integers text."""
    if "s" in attribute:
        return base64.b64decode(attribute["s"]).decode()
    if "i" in attribute:
        return int(attribute["i"])
    if "b" in attribute:
        return bool(attribute["b"])
    if "type" in attribute:
        return DTYPES.get(attribute["type"])
    if "list" in attribute:
        return [int(i) for i in attribute["list"].get("i", [])]
    return None


class Program:
    """The steps of a graph for one input shape."""

    def __init__(self, graph: Graph, shape: tuple[int, ...]):
        self.graph, self.shape, self.precision = graph, shape, graph.precision
        self.constants: dict[str, Tensor] = dict(graph.weights)
        self.steps: list[Step] = []
        self._fold()
        self._emit()
        self._free()

    def constant(self, name: str) -> Tensor | None:
        """The value of a node that does not depend on the picture's content, or None."""
        return self.constants.get(name)

    def node(self, name: str) -> Node:
        return self.graph.nodes[name]

    def _order(self, wanted: str, inputs: Callable[[str], tuple[str, ...]], done: set[str]) -> list[str]:
        """Names that `wanted` needs, each after what it needs; names in `done` are there already and grow."""
        order, stack = [], [wanted]
        while stack:
            name = stack[-1]
            missing = [other for other in inputs(name) if other not in done] if name not in done else []
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if name not in done:
                done.add(name)
                order.append(name)
        return order

    def _fold(self) -> None:
        """Evaluate whatever needs no more of the picture than its shape."""
        moving = {self.graph.picture}
        for name in self._order(self.graph.output, lambda name: self.node(name).inputs, set(self.constants) | moving):
            node = self.node(name)
            if node.operation == "Shape" and node.inputs[0] == self.graph.picture:
                self.constants[name] = torch.tensor(self.shape)
            elif all(other in self.constants for other in node.inputs) and node.operation != "Placeholder":
                self.constants[name] = OPERATIONS[node.operation](node.attributes, *self._values(node.inputs))

    def _values(self, names: tuple[str, ...]) -> list[Tensor]:
        return [self.constants[name] for name in names]

    def _emit(self) -> None:
        made: dict[str, Step] = {}

        def inputs(name: str) -> tuple[str, ...]:
            if name not in made:
                made[name] = self._step(name)
            return made[name].inputs

        for name in self._order(self.graph.output, inputs, {self.graph.picture}):
            self.steps.append(made[name])

    def _step(self, name: str) -> Step:
        for pattern in PATTERNS:
            found = pattern(self, name)
            if found is not None:
                return Step(found[0], found[1], name)
        node = self.node(name)
        moving = tuple(other for other in node.inputs if other not in self.constants)
        operation, attributes = OPERATIONS[node.operation], node.attributes
        fixed = [self.constants.get(other) for other in node.inputs]
        if len(moving) == len(node.inputs):
            return Step(lambda *values: operation(attributes, *values), moving, name)

        def run(*values: Tensor) -> Tensor:
            given = iter(values)
            return operation(attributes, *(next(given) if value is None else value for value in fixed))

        return Step(run, moving, name)

    def _free(self) -> None:
        seen = {self.graph.output}
        for step in reversed(self.steps):
            step.last = tuple(set(step.inputs) - seen)
            seen |= set(step.inputs)

    def __call__(self, picture: Tensor) -> Tensor:
        values = {self.graph.picture: picture}
        for step in self.steps:
            values[step.out] = step.run(*(values[name] for name in step.inputs))
            for name in step.last:
                del values[name]
        return values[self.graph.output]
