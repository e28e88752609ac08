"""The command line of the patch manager."""

from __future__ import annotations

import argparse
import json
import runpy
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from . import (
    Patch,
    PatchError,
    Upstream,
    added,
    apply,
    discover,
    plan,
    revert,
    runtime_rules,
    upstreams,
    verify,
)
from .bisect import bisect
from .history import diff, report, trace
from .names import missing, new_names
from .new import new_rule
from .runtime import RuntimePatch
from .tree import short_list


def main(arguments: list[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else list(arguments)
    command: list[str] = []
    if "--" in words:
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    args = _parser().parse_args(words)
    args.words = command
    try:
        return args.run(args)
    except PatchError as error:
        print(f"patches: {error}", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk, a folder that cannot be read
        print(f"patches: {error.strerror or error}: {error.filename or ''}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m patches", description="Apply our changes to a copy of an upstream."
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def command(
        name: str, run: Callable[[argparse.Namespace], int], words: str, *places: str
    ) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=words)
        for place in places:
            one.add_argument(place, type=str if place == "upstream" else Path)
        one.set_defaults(run=run)
        return one

    one = command("list", _list, "list every rule with its reason")
    one.add_argument("--table", action="store_true", help="write the table of docs/patches.md")
    command(
        "plan", _plan, "show what each rule would do with SOURCE, and write nothing", "upstream", "source"
    )
    one = command(
        "drift",
        _drift,
        "report what is new in SOURCE, a next release: rules that no longer fit, and names of torch that msadapter lacks",
        "upstream",
        "source",
    )
    one.add_argument("--since", type=Path, help="an earlier release: names that it uses, too, are left out")
    one = command(
        "apply",
        _apply,
        "copy SOURCE to DESTINATION and apply the rules to the copy",
        "upstream",
        "source",
        "destination",
    )
    one.add_argument(
        "--origin",
        type=json.loads,
        help="JSON object that says where SOURCE comes from; it is stored in the manifest",
    )
    one.add_argument("--jobs", type=int, help="number of processes that edit files")
    command("verify", _verify, "check that TREE has not changed since apply wrote it", "tree")
    command("revert", _revert, "undo the rules: restore the files of TREE as upstream ships them", "tree")
    command("diff", _diff, "show what the rules changed in TREE", "tree")
    one = command("new", _new, "write the file of a new rule, to be completed by hand", "upstream", "source")
    one.add_argument("target", help="the file to change, relative to SOURCE")
    one.add_argument("name", help="the rule's file name without .py")
    one.add_argument("--symbol", default="", help="the function or class to change: Class.method")
    command(
        "bisect",
        _bisect,
        "find the rules that make a command fail; the command follows --, and {tree} in it stands for the converted copy",
        "upstream",
        "source",
    )
    one = command(
        "report", _report, "show which changed lines of TREE have run; a script after -- is run first", "tree"
    )
    one.add_argument(
        "--record",
        type=Path,
        help="the file in which runs record the lines that they enter (default: TREE.lines)",
    )
    return parser


def _list(args: argparse.Namespace) -> int:
    if args.table:
        print(table())
        return 0
    for name in upstreams():
        upstream, patches = discover(name)
        waiting = runtime_rules(name)
        print(
            f"{name} ({upstream.since} <= version < {upstream.before}): {len(patches)} rules, {len(waiting)} at run time"
        )
        for patch in patches:
            place = f"{patch.target}{': ' if patch.symbol else ''}{patch.symbol}"
            print(f"  {patch.id}  [{patch.reason_class}]  {_range(patch)}  {place}\n      {patch.reason}")
        for rule in waiting:
            print(f"  {rule.id}  [{rule.reason_class}]  {rule.module}.{rule.attribute}\n      {rule.reason}")
    return 0


def table() -> str:
    """The table of docs/patches.md: the number of rules of each upstream, and the releases, class and reason of each rule."""
    rows = ["| upstream | rule | releases | class | why |", "|---|---|---|---|---|"]
    for name in upstreams():
        (upstream, in_tree), at_import = discover(name), runtime_rules(name)
        rules: list[Patch | RuntimePatch] = [*in_tree, *at_import]
        number = f"{len(in_tree)} in the tree, {len(at_import)} at import" if rules else "none"
        rows.append(f"| **{name}** | {number} | {_range(upstream)} | | |")
        for rule in rules:
            needed = _range(rule if isinstance(rule, Patch) else upstream)
            rows.append(f"| | `{rule.id}` | {needed} | {rule.reason_class} | {rule.reason} |")
    return "\n".join(rows)


def _range(of: Patch | Upstream) -> str:
    return f"{of.since} to below {of.before}"


def _plan(args: argparse.Namespace) -> int:
    upstream, patches = discover(args.upstream)
    version, planned = plan(upstream, patches, args.source)
    print(f"{upstream.name} {version}: {len(planned)} rules")
    for one in planned:
        print(f"  {one.patch.id}: {one.status}")
        if one.note:
            print(textwrap.indent(one.note.removeprefix(f"{one.patch.id}: "), "      "))
    return 1 if any(one.status == "wrong" for one in planned) else 0


def _drift(args: argparse.Namespace) -> int:
    """Exit code 1 if a rule drifted or the upstream needs a name that is missing."""
    drifted = _plan(args)
    found = new_names(args.source, args.since)
    lacking = missing(found)
    new = f"names of torch that {args.since} does not use" if args.since else "names of torch"
    print(f"{len(found)} {new}; {len(lacking)} of them are missing or refused in msadapter")
    for name in sorted(lacking, key=lambda name: (found[name].guarded, name)):
        optional = "  (optional: in a try or behind hasattr)" if found[name].guarded else ""
        print(f"  {name}  {found[name].place}{optional}\n      {lacking[name]}")
    return 1 if drifted or any(not found[name].guarded for name in lacking) else 0


def _apply(args: argparse.Namespace) -> int:
    _summary(apply(*discover(args.upstream), args.source, args.destination, args.origin, args.jobs))
    return 0


def _verify(args: argparse.Namespace) -> int:
    _summary(verify(args.tree))
    if names := added(args.tree):
        print(f"  beside them, and not upstream's: {short_list(names, 20)}")
    return 0


def _revert(args: argparse.Namespace) -> int:
    changed = revert(args.tree)
    print(f"{args.tree}: {len(changed)} files are upstream's own again")
    return 0


def _diff(args: argparse.Namespace) -> int:
    print(diff(args.tree))
    return 0


def _new(args: argparse.Namespace) -> int:
    print(new_rule(discover(args.upstream)[0], args.source, args.target, args.symbol, args.name))
    return 0


def _bisect(args: argparse.Namespace) -> int:
    if not args.words:
        raise PatchError("bisect needs a command: python -m patches bisect UPSTREAM SOURCE -- command {tree}")
    upstream, patches = discover(args.upstream)
    found = bisect(upstream, patches, args.source, args.words)
    print("the command fails because of " + " together with ".join(patch.id for patch in found))
    return 0


def _report(args: argparse.Namespace) -> int:
    record = args.record or args.tree.with_name(args.tree.name + ".lines")
    if args.words:
        tracer = trace(args.tree, record)
        sys.path.insert(0, str(Path(args.words[0]).resolve().parent))
        sys.argv = args.words
        try:
            runpy.run_path(args.words[0], run_name="__main__")
        finally:
            tracer.stop()
            with open(record, "a", encoding="utf-8") as file:
                file.write(json.dumps({name: sorted(seen) for name, seen in tracer.seen.items()}) + "\n")
    for row in report(args.tree, record):
        print(f"{row['id']}: {row['entered']} of {row['lines']} changed lines ran  ({row['target']})")
    return 0


def _summary(manifest: dict) -> None:
    print(
        f"{manifest['upstream']} {manifest['version']}: {len(manifest['files'])} files, "
        f"{len(manifest['patches'])} rules applied"
    )
    if "drifted" in manifest:
        print(newer_words(manifest))


def newer_words(manifest: dict) -> str:
    """The warning for a tree of a version after those that the rules were written for."""
    names = ", ".join(manifest["drifted"])
    told = (
        f"these rules do not fit it and were left out: {names}"
        if names
        else "all rules of the newest one fit"
    )
    return (
        f"warning: {manifest['upstream']} {manifest['version']} is newer than the releases that were tried; {told}. "
        f"`python -m patches drift {manifest['upstream']} SOURCE` shows the differences"
    )


if __name__ == "__main__":
    sys.exit(main())
