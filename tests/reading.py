"""Reading the package for what a GPU minds: which functions an iteration runs, and what in them waits for the GPU.

Nothing is imported or run. Functions are found by name: a plain name as its module resolves it, a method by its name
alone, whatever the object is, so that too many are looked at rather than too few. What is a tensor follows from
annotations and from where it comes from.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

# what every part of an iteration is called; what calls `.backward()` is found by itself
ENTRIES = {
    "step",
    "loss",
    "render",
    "update",
    "forward",
    "backward",
    "before",
    "after",
    "compare",
    "penalty",
    "__call__",
}
BY_NAME = {"flow/reference.py:apply"}  # called through `getattr`
WAITS = {
    "argwhere", "cpu", "is_nonzero", "item", "masked_select", "nonzero", "numpy", "synchronize", "tolist", "unique",
    "unique_consecutive",
}  # fmt: skip
COPIES = {"tensor", "as_tensor", "from_numpy"}  # from the CPU's memory, after all that the GPU has yet to do
CASTS = {"int", "float", "bool", "round", "max", "min", "range"}
# of a tensor, and none
PLAIN = {
    "device", "dim", "dtype", "element_size", "is_cuda", "is_floating_point", "itemsize", "nbytes", "ndim", "numel",
    "requires_grad", "shape", "size",
}  # fmt: skip
# these make one number of many, which is then looked at
REDUCES = {"all", "any", "argmax", "argmin", "max", "mean", "median", "min", "norm", "prod", "sum"}
SETTINGS = {"settings", "own", "s"}
NO_TENSORS = {
    "Generator", "Size", "autograd", "backends", "compile", "cuda", "device", "finfo", "get_num_threads",
    "inference_mode", "is_grad_enabled", "is_tensor", "manual_seed", "nn", "no_grad", "random", "set_num_threads",
}  # fmt: skip


@dataclass(frozen=True)
class Function:
    file: str
    name: str  # with its class
    node: ast.FunctionDef

    @property
    def place(self) -> str:
        return f"{self.file}:{self.name}"

    @property
    def own_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def once(self) -> bool:
        """Whether what it gives is kept."""
        return any("cache" in ast.unparse(decorator) for decorator in self.node.decorator_list)

    @property
    def is_property(self) -> bool:
        return any("property" in ast.unparse(decorator) for decorator in self.node.decorator_list)

    @property
    def repeated(self) -> list[ast.stmt]:
        """What of it an iteration runs: the loops that go backward, or all of it where there is none."""
        loops = [node for node in ast.walk(self.node) if isinstance(node, ast.For | ast.While) and _goes_back(node)]
        return list(loops) or self.node.body


@dataclass(frozen=True)
class Wait:
    place: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.place} (line {self.line}): {self.text}"


class Module:
    """One file: its functions, its classes' and what its names mean elsewhere in the package."""

    def __init__(self, file: str, text: str):
        self.file, self.tree = file, ast.parse(text)
        self.functions = [*self._found()]
        self.imports: dict[str, tuple[str, str]] = {}  # name: (module of ours, name in it)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fujinsplat":
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = str(node.module), alias.name
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exports":
                home = "fujinsplat." + file.removesuffix("/__init__.py").replace("/", ".")  # core/lazy.py
                self.imports |= {n: (f"{home}.{m}", n) for n, m in ast.literal_eval(node.args[1]).items()}

    def _found(self) -> Iterator[Function]:
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                yield Function(self.file, node.name, node)
            if isinstance(node, ast.ClassDef):
                for inner in node.body:
                    if isinstance(inner, ast.FunctionDef):
                        yield Function(self.file, f"{node.name}.{inner.name}", inner)


class Package:
    """Modules by file (`splat/train.py`), as texts."""

    def __init__(self, texts: dict[str, str]):
        self.modules = {file: Module(file, text) for file, text in texts.items()}
        self.functions = {f.place: f for module in self.modules.values() for f in module.functions}
        self.methods: dict[str, list[Function]] = {}
        for function in self.functions.values():
            if "." in function.name:
                self.methods.setdefault(function.own_name, []).append(function)

    @cached_property
    def fields(self) -> set[str]:
        """Names of attributes that are tensors, by the annotation of a class or by what `self` is given."""
        found = set()
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _says_tensor(node):
                    found.add(node.target.id)
        for _ in range(2):  # one attribute may be made of another
            for function in self.functions.values():
                found |= Tensors(self, function, found).given_to_self
        return found

    @cached_property
    def plain_fields(self) -> dict[str, set[str]]:
        """By class, the attributes whose annotation says that they are no tensors."""
        return {
            f"{module.file}:{node.name}": {
                line.target.id
                for line in node.body
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and not _says_tensor(line)
            }
            for module in self.modules.values()
            for node in module.tree.body
            if isinstance(node, ast.ClassDef)
        }

    # which functions run

    def loops(self) -> list[Function]:
        """Where an iteration begins: entries by name, and whatever goes backward."""
        return [
            f
            for f in self.functions.values()
            if f.place in BY_NAME or ("." in f.name and f.own_name in ENTRIES) or _goes_back(f.node)
        ]

    def reached(self, excused: dict[str, str]) -> dict[str, Function]:
        """Everything that iterations run, but for what is excused and what that alone calls."""
        found, ahead = {}, self.loops()
        while ahead:
            function = ahead.pop()
            if function.place in found or function.place in excused or function.file in excused or function.once:
                continue
            found[function.place] = function
            ahead += self.called_by(function)
        return found

    def called_by(self, function: Function) -> Iterator[Function]:
        module, nodes = self.modules[function.file], [*_nodes(function.node.body)]
        # an attribute that is read further is no method
        read = (ast.Attribute, ast.Subscript, ast.BinOp, ast.Compare)
        values = {id(child) for node in nodes if isinstance(node, read) for child in ast.iter_child_nodes(node)}
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield from self._named(module, node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                if owner in module.imports or any(f.name == f"{owner}.{node.attr}" for f in module.functions):
                    yield from self._inside(module, owner, node.attr)
                elif not hasattr(torch.Tensor, node.attr) and owner not in SETTINGS | {"torch", "np"}:
                    yield from (f for f in self.methods.get(node.attr, []) if f.is_property or id(node) not in values)

    def _named(self, module: Module, name: str) -> Iterator[Function]:
        file, name = self._home(module, name)
        for kind in (name, f"{name}.__init__", f"{name}.__call__"):
            if found := self.functions.get(f"{file}:{kind}"):
                yield found

    def _inside(self, module: Module, owner: str, name: str) -> Iterator[Function]:
        """`owner.name`: a function of a module of ours, or a method of a class."""
        file, name_there = self._home(module, owner)
        if found := self.functions.get(f"{file}:{name_there}.{name}"):
            yield found
        inside = self._file(*module.imports[owner]) if owner in module.imports else None
        if inside:
            yield from self._named(self.modules[inside], name)

    def _home(self, module: Module, name: str, hops: int = 3) -> tuple[str, str]:
        """(file, name) of a function or class, through the package's `__init__` files."""
        while name in module.imports and hops:
            source, name = module.imports[name]
            file = self._file(source)
            if file is None:
                break
            module, hops = self.modules[file], hops - 1
        return module.file, name

    def _file(self, *names: str) -> str | None:
        path = ".".join(names).removeprefix("fujinsplat").lstrip(".").replace(".", "/")
        return next((f for f in (f"{path}.py", f"{path}/__init__.py".lstrip("/")) if f in self.modules), None)

    # what waits in them

    def waits(self, excused: dict[str, str]) -> list[Wait]:
        found = []
        for function in self.reached(excused).values():
            tensors = Tensors(self, function, self.fields)
            found += [Wait(function.place, node.lineno, ast.unparse(node)) for node in tensors.waits()]
        return found

    def gives(self, name: str, method: bool) -> ast.expr | None:
        """The annotation of what functions of this name give back, where it is a tensor or a tuple with one."""
        functions = self.methods.get(name, []) if method else [f for f in self.functions.values() if f.name == name]
        return next((f.node.returns for f in functions if f.node.returns and _is_tensor(f.node.returns)), None)


class Tensors:
    """Which expressions of a function are tensors."""

    def __init__(self, package: Package, function: Function, fields: set[str]):
        self.package, self.function, self.fields = package, function, fields
        self.names: set[str] = set()
        self.masks: set[str] = set()
        self.plain = package.plain_fields.get(f"{function.file}:{function.name.rpartition('.')[0]}", set())
        self.given_to_self: set[str] = set()
        arguments = function.node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is not None and _is_tensor(argument.annotation):
                self.names.add(argument.arg)
        for _ in range(2):  # what a loop assigns is read at its beginning
            for node in _nodes(function.node.body):
                self._assign(node)

    def _assign(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._give(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._give(node.target, node.value)
        elif isinstance(node, ast.AugAssign) and self.tensor(node.value):
            self._mark(node.target)
        elif isinstance(node, ast.comprehension) and self.tensor(node.iter):
            self._mark(node.target)

    def _give(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            given = self._returned(value)
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                for one, its in zip(target.elts, value.elts, strict=True):
                    self._give(one, its)
            elif given is not None and len(parts := _parts(given)) == len(target.elts):
                for one, annotation in zip(target.elts, parts, strict=True):
                    if _is_tensor(annotation):
                        self._mark(one)
            elif self.tensor(value) or (isinstance(value, ast.GeneratorExp) and self.tensor(value.elt)):
                for one in target.elts:
                    self._mark(one)
        elif self.tensor(value):
            self._mark(target)
            if isinstance(target, ast.Name) and self.mask(value):
                self.masks.add(target.id)

    def _mark(self, target: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.names.add(target.id)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            self.given_to_self.add(target.attr)
        elif isinstance(target, ast.Tuple | ast.Starred):
            for one in target.elts if isinstance(target, ast.Tuple) else [target.value]:
                self._mark(one)

    def _returned(self, value: ast.expr) -> ast.expr | None:
        if not isinstance(value, ast.Call):
            return None
        if isinstance(value.func, ast.Name):
            return self.package.gives(value.func.id, method=False)
        if isinstance(value.func, ast.Attribute):
            name = value.func.attr
            return self.package.gives(name, method=True) or self.package.gives(name, method=False)
        return None

    def tensor(self, node: ast.expr) -> bool:
        match node:
            case ast.Name():
                return node.id in self.names
            case ast.Attribute():
                if node.attr in PLAIN or _rooted_in(node, SETTINGS):
                    return False
                if isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in self.plain:
                    return False
                return node.attr in self.fields or (self.tensor(node.value) and hasattr(torch.Tensor, node.attr))
            case ast.Call():
                return self._call(node)
            case ast.BinOp():
                return self.tensor(node.left) or self.tensor(node.right)
            case ast.UnaryOp():
                return not isinstance(node.op, ast.Not) and self.tensor(node.operand)
            case ast.Compare():
                sides = (node.left, *node.comparators)
                plain = any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
                words = any(isinstance(s, ast.Constant) and isinstance(s.value, str | None) for s in sides)
                return not plain and not words and any(map(self.tensor, sides))
            case ast.Subscript() | ast.Starred():
                return self.tensor(node.value)
            case ast.IfExp():
                return self.tensor(node.body) or self.tensor(node.orelse)
        return False

    def _call(self, node: ast.Call) -> bool:
        f = node.func
        if isinstance(f, ast.Name):
            given = self.package.gives(f.id, method=False)
            return given is not None and not _parts(given)
        if not isinstance(f, ast.Attribute) or f.attr in PLAIN | WAITS:
            return False
        if isinstance(f.value, ast.Name) and f.value.id == "torch":
            return f.attr not in NO_TENSORS
        if hasattr(torch.Tensor, f.attr) and (self.tensor(f.value) or not hasattr(np.ndarray, f.attr)):
            return not any(hasattr(kind, f.attr) for kind in (dict, list, str, set))
        given = self._returned(node)
        return given is not None and not _parts(given)

    def mask(self, node: ast.expr) -> bool:
        """A tensor of booleans: as an index it has to be counted first."""
        match node:
            case ast.Name():
                return node.id in self.masks
            case ast.Compare():
                return self.tensor(node)
            case ast.UnaryOp(op=ast.Invert()):
                return self.mask(node.operand)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                return self.mask(node.left) or self.mask(node.right)
            case ast.Call(func=ast.Attribute(attr="isfinite" | "isnan" | "bool" | "all" | "any")):
                return self.tensor(node)
        return False

    def waits(self) -> Iterator[ast.expr]:
        for node in _nodes(self.function.repeated):
            if isinstance(node, ast.Call) and self._call_waits(node):
                yield node
            for test in _tests(node):
                if self.looked_at(test):
                    yield test
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                index = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                if any(map(self.mask, index)):
                    yield node

    def looked_at(self, node: ast.expr) -> bool:
        """Whether it may be a tensor's number that is asked for."""
        reduced = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in REDUCES
        return self.tensor(node) or reduced

    def _call_waits(self, node: ast.Call) -> bool:
        f = node.func
        if isinstance(f, ast.Name):
            return f.id in CASTS and any(map(self.looked_at, node.args))
        if not isinstance(f, ast.Attribute):
            return False
        if isinstance(f.value, ast.Name) and f.value.id == "torch":
            one_sided = f.attr == "where" and len(node.args) + len(node.keywords) == 1
            return f.attr in WAITS | COPIES or one_sided
        if isinstance(f.value, ast.Name) and f.value.id in ("math", "np"):
            return any(map(self.tensor, node.args))
        return f.attr in WAITS or (f.attr == "where" and not node.args)


def _nodes(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in statements:
        yield from ast.walk(statement)


def _goes_back(node: ast.AST) -> bool:
    return any(isinstance(call, ast.Call) and _called(call) in ("backward", "autograd.grad") for call in ast.walk(node))


def _tests(node: ast.AST) -> list[ast.expr]:
    """What a node asks the truth of."""
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    return node.ifs if isinstance(node, ast.comprehension) else []


def _called(node: ast.Call) -> str:
    f = node.func
    if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Attribute):
        return f"{f.value.attr}.{f.attr}" if f.attr == "grad" else f.attr
    return f.attr if isinstance(f, ast.Attribute) else ""


def _rooted_in(node: ast.Attribute, names: set[str]) -> bool:
    value = node.value
    while isinstance(value, ast.Attribute):
        if value.attr in names:
            return True
        value = value.value
    return isinstance(value, ast.Name) and value.id in names


def _annotation(node: ast.expr) -> ast.expr:
    """An annotation that is written as a string, read."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return ast.parse(node.value, mode="eval").body
    return node


def _is_tensor(node: ast.expr) -> bool:
    node = _annotation(node)
    if isinstance(node, ast.BinOp):
        return _is_tensor(node.left) or _is_tensor(node.right)
    if isinstance(node, ast.Subscript):
        return any(map(_is_tensor, _parts(node)))
    return ast.unparse(node) in ("Tensor", "torch.Tensor")


def _says_tensor(node: ast.AnnAssign) -> bool:
    return _is_tensor(node.annotation) and not _parts(_annotation(node.annotation))


def _parts(node: ast.expr) -> list[ast.expr]:
    """Of `tuple[A, B]`: A and B."""
    node = _annotation(node)
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "tuple":
        return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return []
