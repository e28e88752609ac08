"""Small promises of the patch manager: exit codes, missing folders, tracing that ends, hooks that are taken out again."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import sys
import threading
import types
from pathlib import Path
from types import SimpleNamespace

import pytest

from patches import MANIFEST, Patch, PatchError, Upstream, apply, drift, history, manager, runtime
from patches import __main__ as program
from patches import tree as trees
from patches.bisect import search
from patches.drift import difference, fragments_beside
from patches.edits import chain, replace
from patches.rules import check_target, edited, fingerprint, number, source_of

ENGINE = "def speed(x):\n    y = x\n    return y  # fast\n\n\ndef other():\n    return 1\n"
UPSTREAM = Upstream("toy", "toy/version.txt", lambda text: text.strip(), since="1.2", before="2.0")


def rule(**changes) -> Patch:
    fields = {
        "id": "speed",
        "target": "toy/engine.py",
        "reason": "for the test",
        "reason_class": "device",
        "since": "1.0",
        "before": "2.0",
        "fingerprints": (hashlib.sha256(ENGINE.encode()).hexdigest(),),
        "edit": replace("    y = x\n    return y  # fast", "    return x  # exact\n    # never\n    pass"),
    }
    return Patch(**(fields | changes))


@pytest.fixture
def known(monkeypatch):
    """The toy upstream under the name that the command line takes."""
    monkeypatch.setattr(program, "discover", lambda name: (UPSTREAM, [rule()]))


def test_folders_above_the_destination_are_made(tree: Path, tmp_path: Path) -> None:
    apply(UPSTREAM, [rule()], tree, tmp_path / "a/b/c/out")
    assert (tmp_path / "a/b/c/out" / MANIFEST).is_file()
    assert [p.name for p in (tmp_path / "a/b/c").iterdir()] == ["out"]


def test_modes_and_times_of_files_are_kept(tree: Path, tmp_path: Path) -> None:
    script = tree / "toy/run.sh"
    script.write_text("echo\n")
    script.chmod(0o750)
    os.utime(script, (1e9, 1.1e9))
    for written in (
        lambda: apply(UPSTREAM, [rule()], tree, tmp_path / "out"),
        lambda: manager.revert(tmp_path / "out"),
    ):
        written()
        status = (tmp_path / "out/toy/run.sh").stat()
        assert status.st_mode & 0o777 == 0o750 and status.st_mtime == 1.1e9


def test_the_files_to_copy_are_selected_by_name(tree: Path, tmp_path: Path) -> None:
    out, names = tmp_path / "out", []
    apply(UPSTREAM, [], tree, out, keep=lambda name: names.append(name) or name.endswith(".py"))
    assert sorted(names) == ["toy/engine.py", "toy/version.txt"]
    assert [p.name for p in (out / "toy").iterdir()] == ["engine.py"]
    assert apply(UPSTREAM, [], tree, out, keep=lambda name: False)["files"] == {}
    assert manager.revert(out) == [] and list(out.iterdir()) == []


def test_exit_codes(tree: Path, tmp_path: Path, known, capsys) -> None:
    out = str(tmp_path / "out")
    assert program.main(["plan", "toy", str(tree)]) == 0
    assert program.main(["apply", "toy", str(tree), out]) == 0
    assert "toy 1.4: 2 files, 1 rules applied" in capsys.readouterr().out
    assert program.main(["verify", out]) == 0
    assert program.main(["diff", out]) == 0
    shown = capsys.readouterr().out
    assert "-    y = x" in shown and "+    return x  # exact" in shown and "a/toy/engine.py" in shown
    assert program.main(["apply", "toy", str(tree), str(tree / "inside")]) == 1
    assert capsys.readouterr().err.startswith("patches: the source")
    (tree / "toy/engine.py").write_text("other = 1\n")
    assert program.main(["plan", "toy", str(tree)]) == 1
    assert "speed: wrong" in capsys.readouterr().out
    assert program.main(["revert", out]) == 0
    assert capsys.readouterr().out.endswith("1 files are upstream's own again\n")
    assert (tmp_path / "out/toy/engine.py").read_text() == ENGINE
    assert program.main(["list"]) == 0 and "rules" in capsys.readouterr().out
    assert program.main(["list", "--table"]) == 0 and capsys.readouterr().out.startswith("| upstream |")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import torch\n", 0),
        ("import torch\nif hasattr(torch, 'no_such'):\n    torch.no_such()\n", 0),
        ("import torch\ntorch.no_such()\n", 1),
    ],
    ids=["nothing", "optional", "needed"],
)
def test_drift_fails_for_what_is_needed(
    tree: Path, known, monkeypatch, capsys, source: str, code: int
) -> None:
    monkeypatch.setattr(
        program, "missing", lambda names: dict.fromkeys(set(names) & {"torch.no_such"}, "gone")
    )
    (tree / "toy/user.py").write_text(source)
    assert program.main(["drift", "toy", str(tree)]) == code
    assert ("  torch.no_such  toy/user.py:" in capsys.readouterr().out) == ("no_such" in source)
    assert program.main(["drift", "toy", str(tree), "--since", str(tree)]) == 0
    assert "0 names of torch that" in capsys.readouterr().out
    (tree / "toy/engine.py").write_text("other = 1\n")
    assert program.main(["drift", "toy", str(tree), "--since", str(tree)]) == 1


@pytest.mark.parametrize(
    ("jobs", "files", "threads", "parallel"),
    [(2, 8, 1, True), (1, 8, 1, False), (2, 7, 1, False), (2, 8, 2, False)],
)
def test_processes_are_started_only_where_it_is_safe_and_pays_off(
    tree: Path, monkeypatch, jobs: int, files: int, threads: int, parallel: bool
) -> None:
    """A process with several threads must not fork: a lock that another thread holds would stay locked in the child."""
    started = []

    class Pool:
        def __init__(self, count: int) -> None:
            started.append(count)

        __enter__, __exit__, map = (
            (lambda self: self),
            (lambda self, *_: None),
            (lambda self, *of: [*map(*of)]),
        )

    monkeypatch.setattr(manager.multiprocessing, "get_context", lambda how: SimpleNamespace(Pool=Pool))
    monkeypatch.setattr(manager.os, "listdir", lambda folder: ["thread"] * threads)
    group = manager._File("toy/engine.py", (rule(),))
    done = manager._edit_all(tree, [group] * files, jobs)
    assert [b"# exact" in one.steps[-1] for one in done] == [True] * files
    assert started == [jobs] * parallel and manager._shared is None


def test_an_error_of_the_system_is_one_line(tree: Path, monkeypatch, capsys) -> None:
    def full(*_):
        raise OSError(28, "No space left on device", "a/file")

    monkeypatch.setattr(program, "verify", full)
    assert program.main(["verify", str(tree)]) == 1
    assert capsys.readouterr().err == "patches: No space left on device: a/file\n"


def test_the_words_of_the_process_are_the_default(tree: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["patches", "verify", str(tree)])
    assert program.main() == 1
    assert MANIFEST in capsys.readouterr().err


def test_bisect_needs_a_command(tree: Path, tmp_path: Path, known, capsys) -> None:
    assert program.main(["bisect", "toy", str(tree)]) == 1
    assert "needs a command" in capsys.readouterr().err
    words = [sys.executable, "-c", "import sys; sys.exit('exact' in open(sys.argv[1]).read())"]
    assert program.main(["bisect", "toy", str(tree), "--", *words, "{tree}/toy/engine.py"]) == 0
    told = capsys.readouterr().out
    assert "good with no rule" in told and "bad  with speed" in told and told.endswith("because of speed\n")


def test_search_finds_every_set_of_culprits() -> None:
    rules = [rule(id=f"r{k}") for k in range(6)]
    for wanted in ({0}, {5}, {0, 5}, {1, 2}, {0, 3, 4}, {0, 1, 2, 3, 4, 5}):
        found = search(rules, lambda chosen, wanted=wanted: not wanted <= {rules.index(p) for p in chosen})
        assert {rules.index(p) for p in found} == wanted and found == [p for p in rules if p in found]
    with pytest.raises(PatchError, match="without any rule"):
        search(rules, lambda chosen: False)
    with pytest.raises(PatchError, match="nothing to find"):
        search(rules, lambda chosen: True)


def test_tracing_sees_changed_lines_and_ends(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    apply(UPSTREAM, [rule()], tree, out)
    assert history.changed_lines(out) == {"toy/engine.py": [2, 3, 4]}
    before = sys.gettrace(), threading.gettrace()
    tracer = history.Tracer(out)
    tracer.start()
    try:
        spec = importlib.util.spec_from_file_location("traced_engine", out / "toy/engine.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.other()
        assert tracer.seen == {"toy/engine.py": set()}
        thread = threading.Thread(target=module.speed, args=(3,))
        thread.start()
        thread.join()
        assert threading.gettrace() is not None and sys.gettrace() is not None
    finally:
        tracer.stop()
    assert sys.gettrace() is None and threading.gettrace() is None
    sys.settrace(before[0]), threading.settrace(before[1])
    assert tracer.seen == {"toy/engine.py": {2}}


def test_the_report_adds_the_runs_up(tree: Path, tmp_path: Path) -> None:
    out, record = tmp_path / "out", tmp_path / "lines"
    apply(UPSTREAM, [rule()], tree, out)
    assert [(r["lines"], r["entered"]) for r in history.report(out, record)] == [(1, 0)]
    record.write_text('{"toy/engine.py": [2]}\n{"toy/engine.py": [2, 4, 90]}\n{"other.py": [3]}\n')
    assert [(r["id"], r["lines"], r["entered"]) for r in history.report(out, record)] == [("speed", 1, 1)]


def test_names_of_what_is_kept(tmp_path: Path, capsys) -> None:
    names = []
    for k in range(3):
        path = tmp_path / "work"
        path.write_text(str(k))
        kept = trees.keep_aside(path)
        assert kept.read_text() == str(k) and not path.exists() and str(kept) in capsys.readouterr().err
        names.append(kept.name)
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"work\.changed-\d{8}-\d{6}-\d+(-\d+)?", name) for name in names)


def test_the_finder_is_there_while_a_rule_waits(monkeypatch) -> None:
    monkeypatch.setattr(runtime, "_known", {})
    monkeypatch.setattr(runtime, "_waiting", {})
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if f is not runtime._finder])
    rules = [
        runtime.RuntimePatch(f"r{k}", f"absent_{k}", "f", "for the test", "device", lambda f: f, ("a",))
        for k in "ab"
    ]
    runtime.install_patches(rules)
    assert sys.meta_path[0] is runtime._finder
    runtime.install_patches(rules)
    assert sys.meta_path.count(runtime._finder) == 1
    runtime.remove_patches(["ra"])
    assert sys.meta_path.count(runtime._finder) == 1 and runtime._waiting["absent_a"] == []
    runtime.remove_patches(["ra", "unknown"])
    runtime.remove_patches()
    assert runtime._finder not in sys.meta_path and not runtime._known


def test_a_wrapped_loader_answers_for_its_loader() -> None:
    loader = importlib.util.find_spec("json").loader
    wrapped = runtime._Loader(loader)
    assert wrapped.path == loader.path and wrapped.get_source("json") == loader.get_source("json")
    assert wrapped.create_module(importlib.util.find_spec("json")) is None


def test_a_symbol_is_read_with_its_decorators() -> None:
    source = "class A:\n    def f(self):\n        return 1\n\n"
    source += "    @property\n    @staticmethod\n    def f(self):\n        return 2\n\nx = 1\n"
    assert (
        source_of("A.f", source, "a.py")
        == "    @property\n    @staticmethod\n    def f(self):\n        return 2\n"
    )
    assert source_of("A", source, "a.py").startswith("class A:") and "x = 1" not in source_of(
        "A", source, "a.py"
    )
    with pytest.raises(PatchError, match=r"a\.py has no function or class A\.g"):
        source_of("A.g", source, "a.py")
    with pytest.raises(PatchError, match="does not parse"):
        source_of("A", "class", "a.py")
    indented = "def f():\n    return 1\n"
    assert fingerprint(indented) == fingerprint("    def f():\r\n        return 1\r\n")


def test_what_a_rule_of_a_symbol_was_written_for() -> None:
    sha = fingerprint(source_of("speed", ENGINE, ""))
    one = rule(symbol="speed", fingerprints=("0" * 64, sha))
    moved = "x = 1\n" + ENGINE.replace("return 1", "return 2")
    check_target(one, moved, moved.encode())
    with pytest.raises(PatchError, match=r"toy/engine\.py: speed is not the file"):
        check_target(one, ENGINE.replace("y = x", "y = 2 * x"), b"")
    with pytest.raises(PatchError, match="what is around them changed"):
        check_target(rule(), ENGINE + "\n", (ENGINE + "\n").encode())
    told = rule(expected="def speed(x):\n    return 0\n")
    with pytest.raises(PatchError, match=r"(?s)--- expected.*-    return 0.*\+    y = x"):
        check_target(told, ENGINE + "\n", (ENGINE + "\n").encode())


def test_the_result_of_an_edit_is_checked() -> None:
    with pytest.raises(PatchError, match="changes nothing"):
        edited(rule(edit=lambda text: text), ENGINE)
    with pytest.raises(PatchError, match="does not compile"):
        edited(rule(edit=lambda text: "def"), ENGINE)
    assert edited(rule(target="toy/data.txt", edit=lambda text: "def"), ENGINE) == "def"
    with pytest.raises(
        PatchError,
        match="speed: toy/engine.py: the fragment to replace must occur 1 times, but occurs 2 times: 'x'",
    ):
        edited(rule(edit=replace("x", "y")), "x x")
    assert replace("x", "yy", 2)("x x") == "yy yy"
    both = chain(replace("a", "b"), replace("b", "c"))
    assert both("a") == "c" and both.fragments == ("a", "b")


def test_fragments_are_shown_beside_what_is_like_them() -> None:
    source = "a = 1\nb = 2\nspeed = x * 3\nlast = 4\n"
    shown = fragments_beside(["b = 2", "speed = x * 2\nlast = 4"], source)
    assert (
        "-speed = x * 2" in shown
        and "+speed = x * 3" in shown
        and "-b = 2" not in shown
        and "a = 1" not in shown
    )
    assert " last = 4" in shown
    assert difference("  a\n  b\r\n", "a\nc\n").splitlines() == [
        "--- expected", "+++ found", "@@ -1,2 +1,2 @@", " a", "-b", "+c",
    ]  # fmt: skip


def test_fragments_of_common_characters_are_compared_in_full() -> None:
    """In texts of 200 characters and more, difflib can ignore characters that are frequent. Here all of them are."""
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    lines = [letters[7 * n :] + letters[: 7 * n] for n in range(5)]
    shown = fragments_beside(
        ["\n".join(lines)], "\n".join([*lines[::-1], "", "_" + lines[0][1:], *lines[1:]])
    )
    assert [line[:3] for line in shown.splitlines()[2:] if line[0] in "+-"] == ["-ab", "+_b"]


def test_the_passage_that_is_most_like_a_fragment() -> None:
    lines = [f"{'abcdefgh'[n % 8] * 9} = {'ijklmnop'[n // 8] * 9}" for n in range(40)]
    for place in (0, 5, 21, 39):
        source = [*lines[:place], "speed = total / 7", *lines[place:]]
        assert drift._most_like("speed = total / 3", "\n".join(source)) == "speed = total / 7"
        shown = fragments_beside(["speed = total / 3"], "\n".join(source)).splitlines()
        assert shown[3:] == ["-speed = total / 3", "+speed = total / 7"]
    assert drift._most_like("speed = x\na\nb", "other\nspeed = x") == "other\nspeed = x"
    two = "x = 1\n  y = 2\nz = 3\nx = 1\n y = 4"
    assert drift._most_like("  x = 1\ny = 4", two) == "x = 1\n y = 4"


def test_a_reported_script_sees_its_own_words(tree: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    out, record = tmp_path / "out", tmp_path / "lines"
    apply(UPSTREAM, [rule()], tree, out)
    script = tmp_path / "scripts/run.py"
    script.parent.mkdir()
    (script.parent / "beside_the_script.py").write_text("WORD = 'found'\n")
    script.write_text(
        "import sys, beside_the_script\nprint(__name__, sys.argv[1:], beside_the_script.WORD)\n"
    )
    monkeypatch.setattr(sys, "argv", ["patches"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert program.main(["report", str(out), "--record", str(record), "--", str(script), "--x", "2"]) == 0
    told = capsys.readouterr().out
    assert "__main__ ['--x', '2'] found" in told and "speed: 0 of 1 changed lines ran" in told
    assert record.read_text() == '{"toy/engine.py": []}\n' and not out.with_name("out.lines").exists()
    sys.modules.pop("beside_the_script")


def test_one_changed_line_of_a_repetitive_file(tree: Path, tmp_path: Path) -> None:
    source = "value = 1\n" * 125 + "speed = 1\n" + "value = 1\n" * 125
    (tree / "toy/engine.py").write_text(source)
    one = rule(
        fingerprints=(hashlib.sha256(source.encode()).hexdigest(),), edit=replace("speed = 1", "speed = 2")
    )
    apply(UPSTREAM, [one], tree, tmp_path / "out")
    assert history.changed_lines(tmp_path / "out") == {"toy/engine.py": [126]}


def test_sizes_up_to_the_limit(tmp_path: Path) -> None:
    """The files are sparse: they have a size and no blocks."""
    path = tmp_path / "large"
    for size, right in ((256 << 20, True), ((256 << 20) + 1, False)):
        with open(path, "wb") as file:
            file.truncate(size)
        if right:
            trees._check_kind(path)
        else:
            with pytest.raises(PatchError, match=r"has 268435457 bytes, more than 268435456"):
                trees._check_kind(path)


def test_version_files_up_to_the_limit(tree: Path) -> None:
    for size, right in ((16 << 20, True), ((16 << 20) + 1, False)):
        (tree / "toy/version.txt").write_bytes(b"1.4" + b" " * (size - 3))
        if right:
            assert UPSTREAM.version_of(tree) == "1.4"
        else:
            with pytest.raises(PatchError, match=r"version.txt has more than 16777216 bytes"):
                UPSTREAM.version_of(tree)


def test_links_as_long_as_those_of_linux(tree: Path) -> None:
    for n in range(41):
        (tree / f"toy/l{n}").symlink_to(f"l{n - 1}" if n else "engine.py")
    trees.check_link(tree, tree / "toy/l39")
    assert (tree / "toy/l39").read_text() == ENGINE
    with pytest.raises(PatchError, match="l40 is a link that leads in a circle"):
        trees.check_link(tree, tree / "toy/l40")


def test_code_is_compiled_as_it_would_be_imported(tree: Path, tmp_path: Path) -> None:
    """The manager's own `from __future__ import annotations` does not count: with it, this source would be an error."""
    source = "def outer():\n    def inner(x: (yield)):\n        return 1\n"
    assert edited(rule(edit=lambda text: source), ENGINE) == source
    apply(UPSTREAM, [rule(edit=lambda text: source)], tree, tmp_path / "out")
    assert [(r["lines"], r["entered"]) for r in history.report(tmp_path / "out", tmp_path / "none")] == [
        (3, 0)
    ]


def test_a_source_is_checked_before_anything_is_copied(tree: Path) -> None:
    (tree / "toy/inside").symlink_to("engine.py")
    found = trees.check_source(tree)
    assert [p.name for p in found] == ["engine.py", "inside", "version.txt"]
    (tree / "toy/outside").symlink_to("../../engine.py")
    with pytest.raises(PatchError, match="outside is a link out of the tree"):
        trees.check_source(tree)


def test_a_trace_is_written_when_the_process_ends(tree: Path, tmp_path: Path, monkeypatch) -> None:
    out, record, at_exit = tmp_path / "out", tmp_path / "lines", []
    apply(UPSTREAM, [rule()], tree, out)
    monkeypatch.setattr(history.atexit, "register", at_exit.append)
    before = sys.gettrace()
    tracer = history.trace(out, record)
    assert sys.gettrace() is not None
    tracer.seen["toy/engine.py"] |= {4, 2}
    for write in at_exit * 2:
        write()
    assert sys.gettrace() is None
    sys.settrace(before)
    assert record.read_text() == '{"toy/engine.py": [2, 4]}\n' * 2


def test_a_rule_is_shown_without_its_sources() -> None:
    shown = repr(rule(expected="EXPECTED", example=("BEFORE", "AFTER"), untouched="UNTOUCHED"))
    assert "speed" in shown and "for the test" in shown
    assert not any(word in shown for word in ("EXPECTED", "BEFORE", "AFTER", "UNTOUCHED", "edit="))
    assert rule() == rule(edit=lambda text: text)


def test_numbers_of_versions() -> None:
    assert number("1.4") == number("1.4.0rc1") == number("1.4.0.0") == (1, 4, 0, 0)
    assert number("10") == (10, 0, 0, 0) and number("1.2.3.4") == (1, 2, 3, 4)
    assert number("1.4") < number("1.4.0.1") < number("1.10")
    for text in ("", "v1.2", "."):
        with pytest.raises(PatchError, match="is not a version number"):
            number(text)


def test_a_template_holds_any_source(tree: Path, tmp_path: Path, monkeypatch) -> None:
    """Line ends of Windows, backslashes and three quotes are in the source, and the template is Python again."""
    source = 'def speed(x):\r\n    """Text \\n."""\r\n    return "\\\\" + x\r\n'
    (tree / "toy/engine.py").write_bytes(source.encode())
    module = importlib.import_module("patches.new")
    (tmp_path / "patches/toy").mkdir(parents=True)
    monkeypatch.setattr(module, "__file__", str(tmp_path / "patches/new.py"))
    monkeypatch.setattr(module, "upstreams", lambda: ["toy"])
    text = module.new_rule(UPSTREAM, tree, "toy/engine.py", "speed", "new_speed").read_text()
    found: dict = {}
    exec(text[text.index("EXPECTED") : text.index("PATCH = ")], found)
    assert found["EXPECTED"] == source.replace("\r\n", "\n") and fingerprint(source) in text


def test_a_rule_at_run_time_is_shown_without_its_sources() -> None:
    made = [
        runtime.RuntimePatch("r", "module", "f", "why", "device", function, ("a",), expected="EXPECTED")
        for function in (len, max)
    ]
    assert "EXPECTED" not in repr(made[0]) and "replacement" not in repr(made[0]) and made[0] == made[1]


def test_what_belongs_to_no_tree(tree: Path, tmp_path: Path) -> None:
    """Repositories and caches are not copied, and are not reported as missing."""
    for folder in (".git", "toy/.git", "toy/__pycache__"):
        (tree / folder).mkdir()
        (tree / folder / "inside.pyc").write_text("x")
    assert [p.relative_to(tree).as_posix() for p in trees.files_of(tree)] == [
        "toy/engine.py",
        "toy/version.txt",
    ]
    out = tmp_path / "out"
    manifest = apply(UPSTREAM, [rule()], tree, out)
    assert set(manifest["files"]) == {"toy/engine.py", "toy/version.txt"} and not (out / ".git").exists()
    (out / "toy/__pycache__").mkdir()
    (out / "toy/__pycache__/engine.pyc").write_text("x")
    assert manager.verify(out) == manifest
    (out / "toy/other.py").write_text("x")
    assert manager.verify(out) == manifest and manager.added(out) == ["toy/other.py"]


RULE = "from tests.patches.test_edges import rule\nPATCH = rule(id={id!r})\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": RULE.format(id="one"), "b": RULE.format(id="one")}, "two rules of shelf have the id one"),
        (
            {"a": RULE.format(id="one"), "b": "PATCHES = 1\n"},
            r"the module patches\.shelf\.b defines no PATCH",
        ),
        ({"a": RULE.format(id="one"), "b": RULE.format(id="two")}, None),
    ],
)
def test_the_rules_of_an_upstream(tmp_path: Path, monkeypatch, files: dict, message: str | None) -> None:
    for name, source in files.items():
        (tmp_path / f"{name}.py").write_text(source)
    package = types.ModuleType("patches.shelf")
    package.__path__, package.UPSTREAM = [str(tmp_path)], UPSTREAM
    monkeypatch.setitem(sys.modules, "patches.shelf", package)
    for name in files:
        monkeypatch.delitem(sys.modules, f"patches.shelf.{name}", raising=False)
    monkeypatch.setattr(manager, "upstreams", lambda: ["shelf"])
    importlib.invalidate_caches()
    if message is None:
        assert [found.id for found in manager.discover("shelf")[1]] == ["one", "two"]
        assert manager.runtime_rules("shelf") == []
        return
    with pytest.raises(PatchError, match=message):
        manager.discover("shelf")


@pytest.mark.parametrize(
    "name", [None, 3, b"toy", ["toy"], "", "/toy", "toy/", "toy//x", "./toy", "toy/..", "a\0b"]
)
def test_what_is_no_name_of_a_file(name) -> None:
    with pytest.raises(ValueError, match="is not the name of a file inside the tree"):
        trees.check_name(name)
    assert trees.check_name("toy/.x/..y") == "toy/.x/..y"


@pytest.mark.parametrize("old", ["not there", "\n\n  not there\nat all\n", "   "])
def test_a_fragment_that_is_not_there_is_named_by_its_first_line(old: str) -> None:
    shown = "not there" if "not" in old else old
    with pytest.raises(PatchError, match=re.escape(repr(shown)) + r"(?!.*at all)"):
        replace(old, "new")("some\nsource\n")


def test_a_builder_of_mindspeed_loads_the_extension_of_its_name(monkeypatch) -> None:
    from kernels_ascend import mindspeed
    from patches._extensions import load_ours

    def original(self, verbose=True):
        raise AssertionError("the compiler must not run")

    monkeypatch.setattr(mindspeed, "load", lambda name: ["functions of", name])
    load = load_ours(original)
    assert (
        load(SimpleNamespace(name="toy_op"))
        == ["functions of", "toy_op"]
        == load(SimpleNamespace(name="toy_op"), False)
    )
    assert load.__wrapped__ is original
