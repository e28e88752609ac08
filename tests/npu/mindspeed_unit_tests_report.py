"""Makes the pages of MindSpeed's and MindSpeed-RL's unit tests: how many passed, failed and were skipped, and why."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from tests.megatron.unit_tests_report import short, table

NEW, DEVICE, UPSTREAM = "open", "needs the device", "upstream's own fault"

# Tests that cannot pass here: (pattern of the test's name or error, class, reason).
EXCUSES: list[tuple[str, str, str]] = [
    (
        r"test_variable_length.py::test_communicate_shapes_impl",
        UPSTREAM,
        "expects zeros in a tensor made by torch.empty, but the communication that would fill it is mocked",
    ),
    (
        r"test_dist_model_send_recv_tensor\[src_dst_ranks[12]\]",
        DEVICE,
        "processes draw random tensors of different sizes and expect the next draws to be equal; the device's generator "
        "advances one step per call, but a CPU generator (PyTorch's too) advances one step per number",
    ),
    (
        r"/triton/",
        DEVICE,
        "imports Triton for Ascend, whose kernels are compiled for an NPU; upstream skips its tests too",
    ),
]

# Files that two cores do not finish in reasonable time -> what they compute.
_SCORES = "each of 8 ranks computes the complete attention of 2 x 32 heads with {} x {} scores in addition to its own part"
_LARGE = _SCORES.format(8192, 8192)
_CONTEXT = "mindspeed/core/context_parallel/test_"
TOO_LARGE = {
    "features/moe/test_1f1b_overlap.py": "two layers with hidden size 4096 and 16 experts on 8 ranks, sequence length 2048; "
    "the first test did not finish in 300 s",
    "features/multi_model/test_conv3d_model.py": "4000 training steps of convolutions over 128 x 128 x 128 voxels on 4 ranks",
    f"{_CONTEXT}adaptive_context_parallel.py": _LARGE.replace("2 x 32", "32"),
    f"{_CONTEXT}hybrid_context_parallel.py": _LARGE,
    f"{_CONTEXT}mla_ringattn_context_parallel.py": _LARGE,
    f"{_CONTEXT}ringattn_context_parallel_eodbase.py": _SCORES.format(16384, 16384),
    f"{_CONTEXT}ulysses_context_parallel.py": _LARGE,
}


@dataclass(frozen=True)
class Project:
    """Whose tests a page is about.

    head: the page up to its first table. prefix: the folder of the tests. excuses: as EXCUSES. too_large: as TOO_LARGE.
    """

    head: str
    prefix: str
    excuses: list[tuple[str, str, str]]
    too_large: dict[str, str]

    def excuse(self, test: str, said: str) -> tuple[str, str]:
        """Class and reason of a failure. The class is "open" if msadapter may be at fault."""
        for pattern, kind, reason in self.excuses:
            if re.search(pattern, f"{test}\n{said}"):
                return kind, reason
        return NEW, ""


def _classes(part: dict, project: Project) -> Counter:
    """Counts a part's tests by outcome, and the failed ones by class of reason."""
    found = Counter()
    for outcomes in part.values():
        for test, (outcome, said) in outcomes.items():
            found[outcome if outcome != "failed" else project.excuse(test, said)[0]] += 1
    return found


def _summary(parts: dict, project: Project) -> str:
    rows = []
    for name, part in parts.items():
        found = _classes(part, project)
        counted = found["passed"] + found[NEW]
        share = f"{found['passed'] / counted:.1%}" if counted else ""
        cells = [found["passed"], found[NEW], found[UPSTREAM], found[DEVICE], found["skipped"], share]
        rows.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return table(
        "| tests | passed | open | upstream's own fault | need the device | skipped | passed of what can pass |",
        rows,
    )


def _failures(part: dict, project: Project) -> str:
    lines: dict[tuple, int] = Counter()
    for outcomes in part.values():
        for test, (outcome, said) in outcomes.items():
            if outcome == "failed":
                kind, reason = project.excuse(test, said)
                file, _, name = test.removeprefix(project.prefix).partition("::")
                lines[kind, file, re.sub(r"\[.*", "", name), reason, short(said)] += 1
    rows = [
        f"| {kind} | {file} | {name or '(the file)'} | {count} | {reason} | {said} |"
        for (kind, file, name, reason, said), count in sorted(lines.items())
    ]
    return table("| class | file | test | cases | why | said |", rows) if rows else "None.\n"


def _files(part: dict, project: Project) -> str:
    rows = []
    for name in sorted(part):
        outcomes = part[name]
        count = Counter(outcome for outcome, _ in outcomes.values())
        why = Counter(
            project.excuse(test, said)[0]
            if outcome == "failed"
            else f'skipped: "{said.removeprefix("Skipped: ")}"'
            for test, (outcome, said) in outcomes.items()
            if outcome != "passed"
        )
        told = ", ".join(f"{number} {reason}" for reason, number in why.most_common())
        cells = [len(outcomes), count["passed"], count["failed"], count["skipped"], told]
        rows.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return table("| file | tests | passed | failed | skipped | why |", rows)


_HEAD = """# MindSpeed's own unit tests

Generated by `python -m tests.npu.mindspeed_unit_tests MINDSPEED MEGATRON --table docs/mindspeed_unit_tests.md`. These are
the tests of tests_extend/unit_tests in MindSpeed 2.3.0_core_r0.12.1, with Megatron-LM core_v0.12.1 and all files unmodified.
Each file runs in its own pytest process. Distributed tests (most use eight ranks) start their ranks through upstream's
`DistributedTest`, and the ranks communicate over MPI. The host CPU acts as eight devices (`MSADAPTER_DEVICE=npu`), which are
named Ascend910B so that tests that check this name run. To save time, Python's forkserver imports torch before it creates
the ranks, and an error in one rank ends the test immediately.

The tests run in up to three ways:

- "as marked": upstream's skip marks are obeyed;
- "skips lifted" (`--lifted`): tests that upstream skips unconditionally run nonetheless;
- "made smaller" (`--smaller`): files that are too large for two cores run with smaller sizes, from the table SMALLER of the
  runner.

"Passed of what can pass" leaves out upstream's own faults and the tests that need the device, both listed below with reasons.

"""


MINDSPEED = Project(_HEAD, "tests_extend/unit_tests/", EXCUSES, TOO_LARGE)


def _not_run(results: dict, files: list[str], project: Project) -> str:
    missing = [name for name in files if name not in results.get("as marked", {})]
    large = project.too_large
    told = [f"- {name}: {large[name]}" if name in large else f"- {name}" for name in missing]
    return "\n".join(["\nNot run:\n", *told, ""]) if missing else ""


def markdown(results: dict, files: list[str], project: Project = MINDSPEED) -> str:
    """The page for results {part: {file: {test: [outcome, reason]}}}. `files` lists all test files of the project."""
    text = project.head + _summary(results, project) + _not_run(results, files, project)
    for name, part in results.items():
        text += f"\n## Failures, {name}\n\n" + _failures(part, project)
    for name, part in results.items():
        text += f"\n## By file, {name}\n\n" + _files(part, project)
    return text
