"""The commands of the patch manager: plan, revert, diff, new, bisect, report; drift, hostile trees and kills."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import patches
from patches import MANIFEST, Patch, PatchError, Upstream, apply, discover, plan, revert, upstreams, verify
from patches.__main__ import main, table
from patches.bisect import search
from patches.edits import chain, replace
from patches.history import changed_lines, diff, report
from patches.new import new_rule
from patches.rules import check_example, fingerprint, source_of
from patches.tree import LARGEST

ROOT = Path(__file__).resolve().parents[2]
FILES = {"toy/version.txt": b"1.4.0\n", "toy/windows.py": b"x = 1\r\ny = 2\r\n"} | {
    f"toy/part{n}.py": f"value = {n}\nother = 'a'\n".encode() for n in range(12)
}
UPSTREAM = Upstream("toy", "toy/version.txt", lambda text: text.strip(), since="1.2", before="2.0")
ENGINE = """import math


class Engine:
    @property
    def speed(self):
        return math.sqrt(self.x)  # fast

    def stop(self):
        return 0
"""
SPEED = source_of("Engine.speed", ENGINE, "toy/engine.py")


def rule(name="speed", **changes) -> Patch:
    fields = {
        "id": name,
        "target": "toy/engine.py",
        "symbol": "Engine.speed",
        "reason": "no fast path here",
        "reason_class": "device",
        "since": "1.0",
        "before": "2.0",
        "fingerprints": (fingerprint(SPEED),),
        "expected": SPEED,
        "edit": replace("# fast", "# exact"),
    }
    return Patch(**(fields | changes))


def part(n: int, old: str, new: str) -> Patch:
    text = f"value = {n}\nother = 'a'\n"
    return rule(
        f"part{n}-{old}", target=f"toy/part{n}.py", symbol="", expected=text, edit=replace(old, new),
        fingerprints=(hashlib.sha256(text.encode()).hexdigest(),),
    )  # fmt: skip


PARTS = [part(n, old, new) for n in range(12) for old, new in (("value", "number"), ("'a'", "'b'"))]


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def without_manifest(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(folder).items() if name != MANIFEST}


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(PARTS), st.integers(0, len(PARTS)))
def test_order_repetition_and_taking_back(tree: Path, tmp_path: Path, order: list[Patch], count: int) -> None:
    """Independent rules give the same tree in any order and when they are repeated.

    Reverting gives upstream's files.
    """
    chosen = order[:count]
    before = contents(tree)
    one, two = tmp_path / "one", tmp_path / "two"
    apply(UPSTREAM, chosen, tree, one)
    apply(UPSTREAM, [p for p in PARTS if p in chosen], tree, two)
    assert without_manifest(one) == without_manifest(two)
    first = without_manifest(one)
    apply(UPSTREAM, chosen, tree, one)
    assert without_manifest(one) == first
    revert(one)
    assert contents(one) == before == contents(tree)
    shutil.rmtree(one)  # upstream's own files again, which the next example's apply() would not replace


def test_processes_side_by_side_give_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    apply(UPSTREAM, PARTS, tree, tmp_path / "one", jobs=1)
    # in a new process, because this one has threads, and a process with threads must not fork
    code = (
        "import sys; from pathlib import Path; from tests.patches import test_product as t; "
        "from patches import manager; assert manager._may_fork(); "
        "manager.apply(t.UPSTREAM, t.PARTS, Path(sys.argv[1]), Path(sys.argv[2]), jobs=3)"
    )
    words = [sys.executable, "-c", code, tree, tmp_path / "two"]
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True, timeout=120)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    wrong = [*PARTS, rule(fingerprints=("0" * 64,))]
    with pytest.raises(PatchError, match="Engine.speed is not the file"):
        apply(UPSTREAM, wrong, tree, tmp_path / "two", jobs=3)


def test_two_rules_change_one_file(tree: Path, tmp_path: Path) -> None:
    stop = source_of("Engine.stop", ENGINE, "")
    second = rule(
        "stop", symbol="Engine.stop", fingerprints=(fingerprint(stop),), edit=replace("return 0", "return 1")
    )
    manifest = apply(UPSTREAM, [rule(), second], tree, tmp_path / "out")
    text = (tmp_path / "out/toy/engine.py").read_text()
    assert "# exact" in text and "return 1" in text
    assert [p["symbol"] for p in manifest["patches"]] == ["Engine.speed", "Engine.stop"]
    assert {p["sha256_after"] for p in manifest["patches"]} == {hashlib.sha256(text.encode()).hexdigest()}


def test_a_change_elsewhere_in_the_file_is_no_drift(tree: Path, tmp_path: Path) -> None:
    (tree / "toy/engine.py").write_text(ENGINE.replace("return 0", "return 7"))
    apply(UPSTREAM, [rule()], tree, tmp_path / "out")


def test_drift_shows_the_source_beside_the_expected_one(tree: Path, tmp_path: Path) -> None:
    (tree / "toy/engine.py").write_text(ENGINE.replace("sqrt(self.x)", "sqrt(self.x, eps)"))
    with pytest.raises(PatchError) as caught:
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert "-    return math.sqrt(self.x)  # fast" in str(caught.value)
    assert "+    return math.sqrt(self.x, eps)  # fast" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_drift_shows_the_fragment_where_a_rule_has_no_more(tree: Path) -> None:
    """This rule does not contain upstream's source. The report shows the expected fragment beside the most similar one."""
    (tree / "toy/engine.py").write_text(ENGINE.replace("sqrt(self.x)  # fast", "sqrt(self.x, eps)  # quick"))
    short = rule(expected="", edit=chain(replace("    return math.sqrt(self.x)  # fast\n", "    return 1\n")))
    (tree / "toy/part3.py").write_text("value = 3\nother = 'a'\nmore = 'a'\n")
    around = dataclasses.replace(PARTS[6], expected="")
    notes = [one.note for one in plan(UPSTREAM, [short, around], tree)[1]]
    assert "-return math.sqrt(self.x)  # fast" in notes[0]
    assert "+return math.sqrt(self.x, eps)  # quick" in notes[0]
    assert "@property" not in notes[0]
    assert "the lines that the rule edits are as they were" in notes[1]


def test_the_rules_on_a_later_megatron(tmp_path: Path, capsys) -> None:
    """Each rule is reported in one line. Those that the release needs are applied, and the others are not."""
    checkout = os.environ.get("MSADAPTER_MEGATRON_NEXT")
    if not checkout:
        pytest.skip("needs a Megatron-LM checkout of core_v0.16.1: set MSADAPTER_MEGATRON_NEXT")
    upstream, rules = discover("megatron_core")
    version, planned = plan(upstream, rules, Path(checkout))
    assert version == "0.16.1" and [one.patch for one in planned] == rules
    needed = ["norm-under-sequence-parallel", "parameters-are-loaded-in-place"]
    needed += ["steps-of-a-loaded-optimizer", "steps-of-a-new-optimizer"]
    assert [one.patch.id for one in planned if one.status == "applies"] == needed
    assert {one.status for one in planned} == {"applies", "other version"}
    manifest = apply(upstream, rules, Path(checkout), tmp_path / "out")
    assert [one["id"] for one in manifest["patches"]] == needed and "drifted" not in manifest
    assert main(["plan", "megatron_core", checkout]) == 0
    told = capsys.readouterr().out
    assert all(f"  {rule.id}: " in told for rule in rules)


def test_a_plan_tells_of_every_rule_of_a_later_upstream(tree: Path) -> None:
    """The plan reports every rule for the new release and does not stop at the first problem."""
    (tree / "toy/version.txt").write_text("3.1\n")
    (tree / "toy/part1.py").unlink()
    (tree / "toy/part2.py").write_text("value = 3\n")
    (tree / "toy/engine.py").write_text("class Engine:\n    pass\n")
    before = contents(tree)
    version, planned = plan(UPSTREAM, [*PARTS[:6], rule()], tree)
    assert version == "3.1"
    found = {one.patch.id: (one.status, one.note) for one in planned}
    assert found["part0-value"][0] == "other version"
    assert "missing" in found["part1-value"][1]
    assert "+value = 3" in found["part2-value"][1]
    assert "has no function or class Engine.speed" in found["speed"][1]
    assert contents(tree) == before


def test_revert_refuses_a_tree_that_was_touched(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    (out / "toy/engine.py").write_text("mine")
    with pytest.raises(PatchError, match="changed toy/engine.py"):
        revert(out)
    assert (out / "toy/engine.py").read_text() == "mine"


def test_diff(tree: Path, tmp_path: Path) -> None:
    apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    text = diff(tmp_path / "out")
    assert "--- a/toy/engine.py" in text
    assert "-        return math.sqrt(self.x)  # fast" in text
    assert "+        return math.sqrt(self.x)  # exact" in text
    assert changed_lines(tmp_path / "out") == {"toy/engine.py": [7]}


def hostile_link(tree: Path) -> None:
    (tree / "toy" / "out").symlink_to("/etc")


def hostile_pipe(tree: Path) -> None:
    os.mkfifo(tree / "toy" / "pipe")


def hostile_huge(tree: Path) -> None:
    with open(tree / "toy" / "huge.bin", "wb") as file:
        file.truncate(LARGEST + 1)


def hostile_encoding(tree: Path) -> None:
    (tree / "toy" / "engine.py").write_bytes("# Bücher\n".encode("latin-1"))


def hostile_syntax(tree: Path) -> None:
    (tree / "toy" / "engine.py").write_text("class Engine(:\n")


def hostile_zeros(tree: Path) -> None:
    (tree / "toy" / "engine.py").write_bytes(b"x = 1\0\n")


HOSTILE = {
    "link to a folder outside": (hostile_link, "link out of the tree"),
    "pipe": (hostile_pipe, "neither a file nor a folder nor a link"),
    "huge file": (hostile_huge, "bytes, more than"),
    "other encoding": (hostile_encoding, "toy/engine.py is not UTF-8"),
    "syntax error": (hostile_syntax, "toy/engine.py does not parse"),
    "zero bytes": (hostile_zeros, "toy/engine.py does not parse"),
}


@pytest.mark.parametrize("act, message", HOSTILE.values(), ids=HOSTILE)
def test_hostile_trees_are_refused_by_name(tree: Path, tmp_path: Path, act, message: str) -> None:
    act(tree)
    with pytest.raises(PatchError, match=message):
        apply(UPSTREAM, [rule()], tree, tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["upstream"]


def test_a_link_inside_the_tree_stays_a_link(tree: Path, tmp_path: Path) -> None:
    (tree / "toy" / "alias.py").symlink_to("windows.py")
    apply(UPSTREAM, [], tree, tmp_path / "out")
    assert os.readlink(tmp_path / "out/toy/alias.py") == "windows.py"
    assert verify(tmp_path / "out")["files"]["toy/alias.py"]


def test_a_kill_in_the_middle_leaves_the_old_tree_whole(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [], tree, out)
    before = contents(out)
    program = f"""
        import time
        from pathlib import Path
        from patches import manager
        from tests.patches import test_product
        write = manager._manifest
        def slow(*args):
            manifest = write(*args)
            print("half", flush=True)
            time.sleep(60)
            return manifest
        manager._manifest = slow
        manager.apply(test_product.UPSTREAM, test_product.PARTS, Path({str(tree)!r}), Path({str(out)!r}))
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "half\n"
        child.send_signal(signal.SIGKILL)
    assert contents(out) == before
    verify(out)
    apply(UPSTREAM, PARTS, tree, out)
    assert "number" in (out / "toy/part3.py").read_text()


def test_examples_are_held_against_the_edit() -> None:
    good = {"example": ("x = 1  # fast\n", "x = 1  # exact\n"), "untouched": "x = 1\n"}
    check_example(rule(**good))
    for changes, text in [
        ({"example": None}, "needs an example"),
        ({"untouched": ""}, "needs an example"),
        (
            {"example": ("x = 1  # fast\n", "x = 2\n")},
            "does not turn the example's first text into its second",
        ),
        ({"untouched": "x = 3  # fast\n"}, "changes the untouched source"),
        (
            {"example": ("x # fast", "x # fast fast"), "edit": replace("# fast", "# fast fast")},
            "its own result",
        ),
    ]:
        with pytest.raises(PatchError, match=text):
            check_example(rule(**(good | changes)))


@pytest.mark.parametrize("name", upstreams())
def test_every_shipped_rule_has_its_example(name: str) -> None:
    for patch in discover(name)[1]:
        check_example(patch)


@pytest.mark.parametrize(("changes", "text"), [
    ({"reason_class": "upstream bug"}, "needs its link"),
    ({"reason_class": "not yet"}, "what would make the rule unnecessary"),
])  # fmt: skip
def test_a_rule_tells_how_it_goes_away(changes: dict, text: str) -> None:
    with pytest.raises(PatchError, match=text):
        rule(**changes)


def test_the_page_lists_all_rules_and_they_are_few() -> None:
    assert table() in (ROOT / "docs/patches.md").read_text(encoding="utf-8")
    number = sum(len(discover(name)[1]) + len(patches.runtime_rules(name)) for name in upstreams())
    assert 0 < number <= 12


def test_new_begins_a_rule_that_knows_its_source(tree: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    package = tmp_path / "patches"
    (package / "toy").mkdir(parents=True)
    (package / "toy/__init__.py").touch()
    module = importlib.import_module("patches.new")
    monkeypatch.setattr(module, "__file__", str(package / "new.py"))
    monkeypatch.setattr(module, "upstreams", lambda: ["toy"])
    path = new_rule(UPSTREAM, tree, "toy/engine.py", "Engine.speed", "slow_speed")
    namespace: dict = {"__name__": "patches.toy.slow_speed", "__package__": "patches.toy"}
    exec(compile(path.read_text(), path, "exec"), namespace)
    made = namespace["PATCH"]
    assert (made.id, made.symbol, made.fingerprints) == ("slow-speed", "Engine.speed", (fingerprint(SPEED),))
    assert made.expected == SPEED
    monkeypatch.setattr(importlib.import_module("patches.__main__"), "discover", lambda name: (UPSTREAM, []))
    words = ["new", "toy", str(tree), "toy/engine.py", "by_command", "--symbol", "Engine.speed"]
    assert main(words) == 0
    by_command = package / "toy/by_command.py"
    assert capsys.readouterr().out == f"{by_command}\n"
    assert by_command.read_text() == path.read_text().replace("slow-speed", "by-command")
    for arguments, text in [
        (("toy/engine.py", "Engine.speed", "slow_speed"), "exists already"),
        (("toy/engine.py", "Engine.gone", "other"), "has no function or class Engine.gone"),
        (("toy/gone.py", "", "other"), "missing"),
        (("toy/engine.py", "", "Not-a-name"), "module name"),
    ]:
        with pytest.raises(PatchError, match=text):
            new_rule(UPSTREAM, tree, *arguments)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 24), st.data())
def test_search_finds_the_rules_that_fail_together(count: int, data) -> None:
    rules = PARTS[:count]
    guilty = set(data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3)))
    asked = []

    def good(chosen) -> bool:
        asked.append(1)
        return not guilty <= {rules.index(p) for p in chosen}

    assert [rules.index(p) for p in search(rules, good)] == sorted(guilty)
    if len(guilty) == 1:
        assert len(asked) <= 2 + 2 * count.bit_length()


def test_search_needs_a_difference() -> None:
    with pytest.raises(PatchError, match="without any rule"):
        search(PARTS, lambda chosen: False)
    with pytest.raises(PatchError, match="nothing to find"):
        search(PARTS, lambda chosen: True)


@pytest.fixture
def shipped(monkeypatch):
    """The command line's upstreams: toy, with some rules."""
    module = importlib.import_module("patches.__main__")
    chosen = [rule(), PARTS[1], PARTS[4]]
    monkeypatch.setattr(module, "discover", lambda name: (UPSTREAM, chosen))
    return chosen


def test_commands(tree: Path, tmp_path: Path, shipped, capsys) -> None:
    out = str(tmp_path / "out")
    assert main(["plan", "toy", str(tree)]) == 0
    assert "speed: applies" in capsys.readouterr().out
    assert main(["apply", "toy", str(tree), out, "--jobs", "1"]) == 0
    assert main(["verify", out]) == 0
    assert main(["diff", out]) == 0
    assert "+number = 2" in capsys.readouterr().out
    script = tmp_path / "run.py"
    script.write_text(f"import sys\nsys.path.insert(0, {out!r})\nimport toy.part2, toy.engine\n")
    assert main(["report", out, "--", str(script)]) == 0
    told = capsys.readouterr().out
    assert "part2-value: 1 of 1 changed lines ran" in told
    assert "speed: 0 of 1 changed lines ran" in told
    assert "part0-'a': 0 of 1 changed lines ran" in told
    assert [row["entered"] for row in report(Path(out), tmp_path / "none")] == [0, 0, 0]
    assert main(["revert", out]) == 0
    assert contents(Path(out)) == contents(tree)
    check = "import sys, pathlib; sys.exit('number' in pathlib.Path(sys.argv[1], 'toy/part2.py').read_text())"
    assert main(["bisect", "toy", str(tree), "--", sys.executable, "-c", check, "{tree}"]) == 0
    assert "fails because of part2-value" in capsys.readouterr().out
    assert main(["bisect", "toy", str(tree)]) == 1
    (tree / "toy/engine.py").write_text("x = 1\n")
    assert main(["plan", "toy", str(tree)]) == 1


def test_a_large_tree_is_fast(tmp_path: Path) -> None:
    """A tree of 70,000 lines in 500 files is copied, hashed and verified within seconds."""
    source = tmp_path / "upstream"
    (source / "toy").mkdir(parents=True)
    (source / "toy/version.txt").write_text("1.4")
    text = "".join(f"    value_{n} = compute({n}, other={n} + 1)\n" for n in range(140))
    for n in range(500):
        folder = source / "toy" / f"package{n % 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"m{n}.py").write_text(f"def f{n}():\n{text}")
    began = time.process_time()  # of this process, because the machine may be busy
    apply(UPSTREAM, [], source, tmp_path / "out")
    verify(tmp_path / "out")
    assert time.process_time() - began < 5


def test_versions_of_mindspeed() -> None:
    read = discover("mindspeed")[0].read_version
    assert read("__version__ = '0.12.1'\n__package_name__ = 'mindspeed'\n") == "0.12.1"
    for text in ("__version__ = '0.12.1'\n", "__package_name__ = 'mindspeed'\n"):
        with pytest.raises(PatchError, match="not that of mindspeed"):
            read(text)
    assert [one.module for one in patches.runtime_rules("mindspeed")] == [
        "mindspeed.op_builder.atb_builder",
        "mindspeed.op_builder.builder",
    ]


def _opened(path: Path):
    """(line, call) of every call that opens a file as text."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if name not in ("open", "fdopen", "read_text", "write_text"):
            continue
        modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        modes += [k.value.value for k in node.keywords if k.arg == "mode"]
        if not any(re.fullmatch("[rwax+]*b[rwax+]*", mode) for mode in modes):
            yield node.lineno, node


def test_texts_are_utf_8_on_every_machine() -> None:
    """Sources and manifests are UTF-8, whatever the locale says: no file is opened as text without its encoding."""
    calls = [
        (path.name, *call) for path in sorted((ROOT / "patches").rglob("*.py")) for call in _opened(path)
    ]
    assert len(calls) > 5
    without = [
        f"{file}:{line}" for file, line, call in calls if not any(k.arg == "encoding" for k in call.keywords)
    ]
    assert without == []
