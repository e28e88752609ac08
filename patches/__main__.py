"""The command line of the patch manager: python -m patches list | apply | verify."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import PatchError, apply, discover, upstreams, verify


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m patches", description="Apply our changes to a copy of an upstream."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="every rule and its reason")
    one = commands.add_parser("apply", help="copy SOURCE to DESTINATION with the rules applied")
    one.add_argument("upstream")
    one.add_argument("source", type=Path)
    one.add_argument("destination", type=Path)
    one.add_argument("--origin", type=json.loads, default={}, help="JSON object for the manifest")
    check = commands.add_parser("verify", help="is DESTINATION as apply left it?")
    check.add_argument("destination", type=Path)
    args = parser.parse_args(arguments)
    try:
        if args.command == "list":
            _list()
        elif args.command == "apply":
            manifest = apply(*discover(args.upstream), args.source, args.destination, args.origin)
            _report(manifest)
        else:
            _report(verify(args.destination))
    except PatchError as error:
        print(f"patches: {error}", file=sys.stderr)
        return 1
    return 0


def _list() -> None:
    for name in upstreams():
        upstream, patches = discover(name)
        print(f"{name} ({upstream.since} <= version < {upstream.before}): {len(patches)} rules")
        for patch in patches:
            print(f"  {patch.id}  [{patch.reason_class}]  {patch.target}\n      {patch.reason}")


def _report(manifest: dict) -> None:
    print(
        f"{manifest['upstream']} {manifest['version']}: {len(manifest['files'])} files, "
        f"{len(manifest['patches'])} rules applied"
    )


if __name__ == "__main__":
    sys.exit(main())
