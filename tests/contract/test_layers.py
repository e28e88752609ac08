"""The structure of the package: imports go from a layer to the same one or a lower one, and never in a circle.

The layers are those of docs/architecture.md. Every import statement counts, wherever it stands in a file, but those for type
checkers alone. The same holds for the files of the C++ layer: no two include each other.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from msadapter._host import extensions

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "msadapter"
FURTHER_PLACES = ("_standard_names",)  # folders whose modules belong to the package above them


# ---- reading
def modules(package: Path) -> dict[str, Path]:
    """Name of every module of a package -> its file. The stand-in packages of the alias are programs of their own."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = [p for p in path.relative_to(package.parent).with_suffix("").parts if p not in FURTHER_PLACES]
        if "shim" not in parts:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _statements(node: ast.AST):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) or _for_type_checkers(child):  # an expression contains no import
            continue
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        yield from _statements(child)


def _imported(name: str, files: dict[str, Path]):
    """(name in the file, module, line) for each name that a file imports. The module need not be one of ``files``.

    The name is None if it is not a module but an attribute of one.
    """
    path, root = files[name], min(files, key=len)

    def ours(target: str) -> str:
        return re.sub(r"^torch(?=\.|$)", root, target)  # torch is the package's other name

    for statement in _statements(tree(path)):
        if isinstance(statement, ast.Import):
            for one in statement.names:
                yield one.asname, ours(one.name), statement.lineno
            continue
        base = ours(statement.module or "") if not statement.level else statement.module or ""
        if statement.level:
            package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
            above = package[: len(package) - statement.level + 1]
            base = ".".join([*above, base] if base else above)
        for one in statement.names:
            whole = f"{base}.{one.name}"
            yield (
                (one.asname or one.name, whole, statement.lineno)
                if whole in files
                else (None, base, statement.lineno)
            )


def imports(name: str, files: dict[str, Path]) -> dict[str, int]:
    """The modules of ``files`` that a module imports, each with the line of the first import."""
    found: dict[str, int] = {}
    for _, target, line in _imported(name, files):
        if target in files and target != name:
            found.setdefault(target, line)
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that reach one another (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, following = work[-1]
            target = next((n for n in following if n not in index or n in stack), None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    if len(group) > 1:
                        found.append(sorted(group))
            elif target in index:
                low[node] = min(low[node], index[target])
            else:
                index[target] = low[target] = len(index)
                stack.append(target)
                work.append((target, iter(sorted(graph[target]))))
    return found


def layers(page: str) -> dict[str, tuple[int, str]]:
    """Module prefix -> (height, name of its layer), from the list in docs/architecture.md."""
    block = re.search(r"^```layers\n(.*?)^```", page, re.M | re.S)[1]
    rows: list[list[str]] = []
    for line in block.splitlines():
        if line.startswith(" "):
            rows[-1] += line.split()
        else:
            rows.append(line.split())
    found: dict[str, tuple[int, str]] = {}
    for height, (layer, *names) in enumerate(reversed(rows)):
        for name in names:
            whole = name if name == PACKAGE.name else f"{PACKAGE.name}.{name}"
            assert whole not in found, f"{name} stands in two layers"
            found[whole] = height, layer
    return found


def layer_of(module: str, known: dict[str, tuple[int, str]]) -> tuple[int, str] | None:
    """The layer of the longest listed name that is a prefix of the module. The package's own name fits only its own file."""
    name = module
    while name != PACKAGE.name:
        if name in known:
            return known[name]
        name = name.rpartition(".")[0]
    return known.get(module)


def upward(graph: dict[str, dict[str, int]], known: dict[str, tuple[int, str]]) -> list[str]:
    """The imports of a module of a higher layer."""
    return [
        f"{module}:{line} ({layer_of(module, known)[1]}) imports {target} ({layer_of(target, known)[1]})"
        for module, targets in graph.items()
        for target, line in targets.items()
        if layer_of(target, known)[0] > layer_of(module, known)[0]
    ]


# ---- the package
FILES = modules(PACKAGE)
LAYERS = layers((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))


@functools.cache  # not read while pytest collects, which each of its processes does
def graph_of_the_package() -> dict[str, dict[str, int]]:
    """Module -> the modules that it imports, each with the line of the first import."""
    return {name: imports(name, FILES) for name in FILES}


def test_every_module_has_a_layer():
    assert [name for name in FILES if layer_of(name, LAYERS) is None] == []


def test_every_name_of_the_list_is_there():
    assert [name for name in LAYERS if not any(f"{module}.".startswith(f"{name}.") for module in FILES)] == []


def test_no_import_goes_upwards():
    assert upward(graph_of_the_package(), LAYERS) == []


# An import by name is hidden from the two tests above, so each of these modules has a reason.
BY_NAME = {
    "": "its own modules, under the names of torch._C",
    "_host.doctor": "the stand-in package of an installation that cannot be imported",
    "_host.extensions": "what a higher layer has named with provide_from",
    "_host.native": "the native layer, which it makes",
    "_host.runtime": "MindSpore's modules",
    "_process": "the module of a device, which is in the same layer",
    "_serialization.names": "what a file names",
    "alias.absent": "a module that has another name here than in PyTorch",
    "alias.finder": "the module that an alias stands for",
    "alias.waiting": "a module at its first use",
    "autograd": "torch.autograd.torch, which PyTorch has too",
    "distributed.checkpoint._metadata_file": "what a file names",
    "fx.graph_module": "what the source of a graph imports",
    "nn.modules.attention": "a function of the finished namespace, which a program may have replaced",
    "overrides": "the finished namespace, whose functions it lists",
    "package.importer": "what a pickle or the code of an archive needs",
    "package.package_exporter": "what a pickle or the code of an archive needs",
    "package.package_importer": "what an archive names as external",
    "torch_npu.dynamo": "modules of torchair, which it makes",
}


def test_modules_are_taken_by_name_only_for_a_reason():
    found = {name: lines for name in FILES if (lines := by_name(name, FILES))}
    assert {name: lines for name, lines in found.items() if name.partition(".")[2] not in BY_NAME} == {}
    assert set(BY_NAME) - {name.partition(".")[2] for name in found} == set()


def test_an_import_inside_a_function_has_a_reason():
    """A comment on its line or above says why it is not at the top: an optional package, or one that is loaded late."""
    bare = []
    for name, path in FILES.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        inside = {
            statement.lineno
            for node in ast.walk(tree(path))
            if isinstance(node, ast.FunctionDef)
            for statement in _statements(node)
        }
        for line in sorted(inside):
            first = line
            while first - 1 in inside:  # one comment above is for all imports of a group
                first -= 1
            if "#" not in lines[line - 1] and not lines[first - 2].lstrip().startswith("#"):
                bare.append(f"{name}:{line}")
    assert bare == []


# The import of a module begins with that of its package, so the modules of a package share it: each fork goes on from there.
FIRST = """
import importlib, os, sys
import msadapter
names = sys.argv[1:]
def each_within(package):
    for name in names:
        if name.rpartition(".")[0] != package:
            continue
        if name in sys.modules:
            each_within(name)
        elif (child := os.fork()) == 0:
            try:
                importlib.import_module(name)
                each_within(name)
            except BaseException as error:
                print(f"{name}: {error}", flush=True)
            os._exit(0)
        else:
            os.waitpid(child, 0)
each_within("msadapter")
"""


def test_every_module_can_be_the_first_that_a_program_imports():
    """A package and its modules can import each other in a circle that the files do not show."""
    names = [name for name in FILES if "_native_names" not in name and not name.endswith("__main__")]
    done = subprocess.run(
        [sys.executable, "-c", FIRST, *names],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=True,
    )
    assert done.stdout == ""


def test_no_files_import_each_other_in_a_circle():
    assert circles({name: set(targets) for name, targets in graph_of_the_package().items()}) == []


@pytest.mark.parametrize("package", ["benchmarks", "course", "kernels_ascend", "megatron_ms", "patches"])
def test_no_files_of_other_packages_import_each_other_in_a_circle(package):
    files = modules(ROOT / package)
    assert len(files) > 20
    assert circles({name: set(imports(name, files)) for name in files}) == []


def test_no_headers_include_each_other_in_a_circle():
    source = PACKAGE / "csrc"
    files = {path.resolve(): path for path in source.rglob("*") if path.suffix in (".h", ".cpp")}
    graph = {
        str(path.relative_to(source.resolve())): {
            str(included.relative_to(source.resolve()))
            for name in re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.M)
            if (included := (path.parent / name).resolve()) in files
        }
        for path in files
    }
    assert sum(map(len, graph.values())) > 100
    assert circles(graph) == []


def _may_be_taken(
    call: ast.Call | ast.Subscript, argument: ast.AST, name: str, files: dict[str, Path]
) -> bool:
    """Whether an argument of import_module or sys.modules is the file itself, its own submodule, or of another package."""
    text = ast.unparse(argument)
    relative = isinstance(call, ast.Call) and [ast.unparse(a) for a in call.args[1:]] == ["__name__"]
    if not isinstance(argument, ast.Constant):
        return text == "__name__" or text.startswith("f'{__name__}.") or (relative and text.startswith("f'."))
    if files[name].name == "__init__.py" and argument.value.startswith(f"{name}."):
        return True
    head = argument.value.partition(".")[0]
    return head not in ("torch", min(files, key=len)) if head else relative


def by_name(name: str, files: dict[str, Path]) -> list[int]:
    """The lines that take a module of this package by its name, without an import statement.

    They call importlib.import_module or __import__, or read sys.modules. An own submodule does not count.
    """
    found = []
    for node in ast.walk(tree(files[name])):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            taken, argument = ast.unparse(node.value), node.slice
        elif isinstance(node, ast.Call) and node.args:
            taken, argument = ast.unparse(node.func), node.args[0]
        else:
            continue
        way = re.search(r"import_module$|^__import__$|(^|\.)sys\.modules(\.get)?$", taken)
        if way and not _may_be_taken(node, argument, name, files):
            found.append(node.lineno)
    return found


# ---- the reading itself: each kind of import is seen
@pytest.fixture
def toy_files(tmp_path):
    def write(**files: str) -> dict[str, Path]:
        for name, text in files.items():
            path = tmp_path / "msadapter" / (name.replace("__", "/").strip("/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for folder in {p.parent for p in (tmp_path / "msadapter").rglob("*.py")}:
            (folder / "__init__.py").touch()
        return modules(tmp_path / "msadapter")

    return write


@pytest.fixture
def toy(toy_files):
    def read(**files: str) -> dict[str, dict[str, int]]:
        found = toy_files(**files)
        return {name: imports(name, found) for name in found}

    return read


@pytest.mark.parametrize(
    "text",
    [
        "from .high import x",
        "from . import high",
        "import msadapter.high",
        "from msadapter.high import x",
        "import torch.high",
        "from torch import high",
        "def f():\n    from .high import x",
        "class A:\n    def f(self):\n        if self:\n            from . import high as other",
        "try:\n    from .high import x\nexcept ImportError:\n    pass",
    ],
)
def test_an_upward_import_is_seen(toy, text):
    graph = toy(low=text, high="")
    known = layers("```layers\nface msadapter\nupper high\nlower low\n```\n")
    assert [line.split(" imports ")[1] for line in upward(graph, known)] == ["msadapter.high (upper)"]


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module('msadapter.high')",
        "import importlib\nimportlib.import_module('torch')",
        "import importlib as _importlib\n_importlib.import_module(NAME)",
        "from importlib import import_module\ndef f():\n    return import_module('.high', __package__)",
        "import sys\nroot = sys.modules.get('msadapter')",
        "import sys\nroot = sys.modules[__package__]",
        "__import__('msadapter.high')",
    ],
)
def test_an_import_by_name_is_seen(toy_files, text):
    assert by_name("msadapter.low", toy_files(low=text)) == [text.count("\n") + 1]


@pytest.mark.parametrize(
    "text",
    [
        "import importlib\nimportlib.import_module('mindspore.mint')",
        "import importlib\nimportlib.import_module(f'.{name}', __name__)",
        "import importlib\nimportlib.import_module(f'{__name__}.{name}')",
        "import sys\nsys.modules[__name__].__class__ = C",
        "import sys\nsys.modules[name] = made",
    ],
)
def test_an_import_of_an_own_submodule_or_of_another_package_does_not_count(toy_files, text):
    assert by_name("msadapter.low", toy_files(low=text)) == []


def test_imports_for_type_checkers_do_not_count(toy):
    graph = toy(low="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .high import x\n", high="")
    assert graph["msadapter.low"] == {}


def test_circles_are_seen(toy):
    graph = toy(
        one="def f():\n    from . import two", two="from .three import x", three="from . import one", four=""
    )
    names = ["msadapter.one", "msadapter.three", "msadapter.two"]
    assert circles({name: set(targets) for name, targets in graph.items()}) == [names]


# ---- extension points
def _assignments_to_modules(name: str):
    """Lines where a file sets an attribute of a module of the package that it has imported."""
    module = tree(FILES[name])
    bound = {own: target for own, target, _ in _imported(name, FILES) if own and target in FILES}
    for node in ast.walk(module):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id in bound
            ):
                yield f"{name}:{node.lineno} sets {bound[target.value.id]}.{target.attr}"


def test_no_module_sets_the_globals_of_another():
    allowed = {
        # torch_npu's own function: it changes what torch.distributed does, in the program that asks for it.
        "msadapter.torch_npu.contrib.transfer_to_npu sets msadapter.distributed.init_process_group",
    }
    found = {re.sub(r":\d+", "", line) for name in FILES for line in _assignments_to_modules(name)}
    assert found - allowed == set()
    assert allowed - found == set()


def test_extension_points_are_filled_once():
    for name, point in extensions.points().items():
        assert getattr(extensions, name) is point
        assert point.purpose.endswith(".") and " By " in point.purpose
    point = extensions.Point("example", "Nothing.")
    assert point.value is None
    point.provide(len)
    point.provide(len)
    with pytest.raises(RuntimeError, match="example is filled already"):
        point.provide(max)
    with pytest.raises(RuntimeError, match="example is filled already"):
        point.provide_from("builtins", "max")
    point.withdraw()
    point.provide_from("builtins", "max")
    with pytest.raises(RuntimeError, match="example is filled already"):
        point.provide(len)
    assert point.value is max


# ---- the neighbours
def test_kernels_ascend_uses_the_public_face_alone():
    private = []
    for path in sorted((ROOT / "kernels_ascend").rglob("*.py")):
        for statement in _statements(tree(path)):
            if isinstance(statement, ast.Import):
                names = [one.name for one in statement.names]
            else:
                names = (
                    [] if statement.level else [f"{statement.module}.{one.name}" for one in statement.names]
                )
            private += [
                f"{path.name}:{statement.lineno} {name}"
                for name in names
                if name.startswith("msadapter.") and re.search(r"\._|^msadapter\.ops\.\w+\.", name)
            ]
    assert private == []


@pytest.mark.parametrize("folder", ["megatron_ms/upstream", "megatron_ms/examples", "msadapter/_host"])
def test_programs_run_by_their_path_find_the_standard_library(folder):
    """Python searches the folder of such a program first. Only from 3.11 on, an option (-P) would keep it from that."""
    assert {path.stem for path in (ROOT / folder).iterdir()}.isdisjoint(sys.stdlib_module_names)
