"""torch.utils.collect_env, whose fields are those of PyTorch's and whose facts are those of the doctor."""

import subprocess

from msadapter import __config__
from msadapter._host import doctor
from msadapter.alias import TORCH_VERSION
from msadapter.utils import collect_env


def test_the_facts_are_the_doctors():
    facts = collect_env.get_env_info()
    assert facts.torch_version == TORCH_VERSION and facts.is_cuda_available in ("True", "False")
    assert "numpy==" in facts.pip_packages and "mindspore==2.10.0" in facts.pip_packages
    assert facts.gcc_version == doctor.machine()["compiler"]


def test_the_text_ends_with_the_doctors_report(capsys):
    collect_env.main()
    text = capsys.readouterr().out
    assert text.startswith("Collecting environment information...\n")
    for line in ("PyTorch interface: ", "Versions of relevant libraries:", "python -m msadapter doctor:"):
        assert line in text
    report = text.partition("python -m msadapter doctor:\n")[2]
    assert {line.split()[1] for line in report.splitlines() if line.startswith(("  ok ", "  WRONG "))} >= {
        "python",
        "mindspore",
        "cache",
    }


def test_the_build_is_told_without_a_process(monkeypatch):
    """torch_geometric asks for it while it is imported."""

    def refuse(*arguments, **options):
        raise AssertionError(f"a process is started: {arguments}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    text = __config__.show()
    assert text.startswith("PyTorch built with:\n  - ") and "  - MindSpore 2.10.0\n" in text
    assert f"interface {TORCH_VERSION}," in text and "CPU capability usage: " in text


def test_commands_are_run_by_the_function_that_is_given():
    """kornia's tests ask for these facts with `run`."""
    assert collect_env.run("echo one; echo two >&2; exit 3") == (3, "one", "two")
    assert collect_env.run(["echo", "one two"]) == (0, "one two", "")
    answers = {"gcc --version": (0, "gcc (Debian) 12.2.0\nmore", ""), "lscpu": (1, "", "no lscpu")}

    def ask(command):
        return answers.get(command, (127, "", "not found"))

    assert (
        collect_env.get_gcc_version(ask) == "(Debian) 12.2.0" and collect_env.get_clang_version(ask) is None
    )
    assert collect_env.get_cpu_info(ask) == "no lscpu" and collect_env.get_gpu_info(ask) is None
    assert collect_env.run_and_return_first_line(ask, "gcc --version") == "gcc (Debian) 12.2.0"
    assert collect_env.run_and_parse_first_match(ask, "gcc --version", "clang (.*)") is None
