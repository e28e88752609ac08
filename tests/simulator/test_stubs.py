"""The tools that read and complete MindSpore's Ascend plugin, on a small plugin that is compiled here."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from kernels_ascend.simulator.stubs import generate, wanted

# Two operators of the plugin: one calls aclnn functions directly and through a helper, the other by a function pointer.
SOURCE = r"""
extern "C" void dlsym_of(const char *);
extern "C" int HcclAsked(int);
extern "C" void aclnnNeverListed();
__attribute__((noinline)) static void helper() { dlsym_of("aclnnInplaceAdd"); }
__attribute__((noinline)) static void pointed() { dlsym_of("aclnnMul"); }
void (*volatile chosen)();
namespace mindspore { namespace kernel { namespace pyboost {
struct Op { virtual ~Op() {} virtual void Call() = 0; };
struct AddExtAscend : Op { void Call() override; };
struct MulAscend : Op { void Call() override; };
void AddExtAscend::Call() { helper(); dlsym_of("aclnnAdd"); HcclAsked(1); aclnnNeverListed(); }
void MulAscend::Call() { chosen = pointed; chosen(); }
struct AloneCpu : Op { void Call() override; };
void AloneCpu::Call() { dlsym_of("aclnnAlone"); }
Op *one() { return new AddExtAscend; }
Op *two() { return new MulAscend; }
Op *three() { return new AloneCpu; }
} } }
"""


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    library = folder / name
    library.parent.mkdir(parents=True, exist_ok=True)
    text = folder / f"{library.stem}.cpp"
    text.write_text(source)
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-fno-inline", "-shared", "-fPIC", *options, text, "-o", library],
        check=True,
    )
    return library


@pytest.fixture(scope="module")
def plugin(tmp_path_factory) -> Path:
    return compiled(tmp_path_factory.mktemp("plugin"), wanted._PLUGIN, SOURCE)


def test_operators_lead_to_the_functions_that_they_call(plugin):
    found = wanted.Plugin(plugin).operators()
    assert found == {"AddExt": {"aclnnAdd", "aclnnInplaceAdd"}, "Mul": {"aclnnMul"}}


def test_operators_that_declarations_name():
    known = {"AdaptiveAvgPool3DExt", "Erfinv", "NoSuchOperator", "GridSampler2D", "SeLUExt"}
    assert wanted.declared(known) == known - {"NoSuchOperator"}


def test_the_list_says_what_is_simulated(plugin, tmp_path, monkeypatch, capsys):
    source = 'extern "C" const char *SimulatedNpuOperators() { return "aclnnAdd\\tx\\naclnnOther\\ty\\n"; }'
    library = compiled(tmp_path, "libsimulator.so", source)
    package = plugin.parents[2] / "__init__.py"
    monkeypatch.setattr(
        wanted.importlib.util, "find_spec", lambda name: type("Spec", (), {"origin": str(package)})
    )
    monkeypatch.setattr(wanted, "declared", lambda known: known)
    assert wanted.main([str(library)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "simulated  aclnnAdd",
        "MISSING    aclnnInplaceAdd",
        "MISSING    aclnnMul",
        "3 names are reached, 1 of them are simulated; 2 are simulated altogether",
    ]
    assert wanted.main([str(library), "-v"]) == 0
    assert "simulated  aclnnAdd  AddExt\n" in capsys.readouterr().out
    monkeypatch.setattr(wanted.importlib.util, "find_spec", lambda name: None)
    assert wanted.main([str(library)]) == 1
    assert "mindspore is not installed" in capsys.readouterr().err
    folder = type("Spec", (), {"origin": None})  # a folder of that name is not a package
    monkeypatch.setattr(wanted.importlib.util, "find_spec", lambda name: folder)
    assert wanted.main([str(library)]) == 1
    assert "mindspore is not installed" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path, belongs",
    [
        ("lib/plugin/ascend/libascend.so", True),
        ("lib/plugin/libmindspore_ascend.so.2", True),
        ("lib/plugin/libmindspore_ops_ascend.so", True),
        ("lib/plugin/ascend/libdvpp_utils.so", False),
        ("lib/plugin/ascend/op_kernels/libkernel.so", False),
        ("lib/plugin/gpu/libgpu.so", False),
        ("lib/plugin/libdvpp_utils.so", False),
        ("lib/libmindspore_core.so", False),
    ],
)
def test_libraries_of_the_plugin(path, belongs):
    assert generate._is_plugin(Path("/somewhere/mindspore") / path) is belongs


def test_the_functions_of_a_plugin_are_those_of_its_symbols(plugin):
    """The table of frames has the address of every function that the symbols name."""
    listing = subprocess.run(["nm", plugin], capture_output=True, text=True, check=True).stdout
    named = {
        int(line.split()[0], 16): line.split()[2] for line in listing.splitlines() if line[17:18] in "tTW"
    }
    ours = {
        address
        for address, name in named.items()
        if "Ascend" in name or "helper" in name or "pointed" in name
    }
    found = wanted.Plugin(plugin).functions.tolist()
    assert len(ours) >= 4 and ours <= set(found) and found == sorted(found)


@pytest.mark.parametrize("machine", ["x86-64", "AArch64"])
def test_what_the_system_has_needs_no_stub(tmp_path, monkeypatch, machine):
    """The names that a library of the system defines, and not those that it asks for itself."""
    system = compiled(
        tmp_path,
        "libofsystem.so",
        "int missing(); int of_system() { return missing(); }",
        "-Wl,-soname,libofsystem.so",
    )
    source = "int of_system(); int missing(); int run() { return of_system() + missing(); }"
    mindspore = tmp_path / "mindspore"
    compiled(mindspore, "lib/plugin/ascend/libascend.so", source, "-Wl,--no-as-needed", str(system))
    run = generate._run
    listed = f"\tlibofsystem.so (libc6,{machine}) => {system}\n"
    monkeypatch.setattr(
        generate, "_run", lambda *words: listed if words[0] == "/sbin/ldconfig" else run(*words)
    )
    defined, asked, needed = generate._survey(mindspore, [])
    assert {"_Z9of_systemv", "_Z7missingv"} <= asked
    assert "_Z9of_systemv" in defined and "_Z7missingv" not in defined
    assert "libofsystem.so" not in needed


def test_stubs_are_written_for_what_nobody_defines(tmp_path):
    mindspore = tmp_path / "mindspore"
    other = compiled(
        mindspore, "lib/libcore.so", "int defined_beside() { return 1; }", "-Wl,-soname,libcore.so"
    )
    source = r"""
    int defined_beside();
    namespace ge { struct OperatorCreatorRegister { OperatorCreatorRegister(int); }; }
    namespace cann { struct Table { virtual void f(); Table(); }; extern int counter; int quote(const char *); }
    extern "C" int aclnnAdd(); extern "C" int PyThing(); extern "C" int ours(); extern "C" int absent();
    static ge::OperatorCreatorRegister registered(1);
    extern "C" double lgamma(double);
    double f(double x) { return lgamma(x); }
    int run() { cann::Table t; return defined_beside() + cann::counter + cann::quote("") + aclnnAdd() + PyThing()
                                      + ours() + absent(); }
    """
    cann = compiled(tmp_path, "libcann.so", "int of_cann() { return 1; }", "-Wl,-soname,libcann.so")
    linked = ("-Wl,--no-as-needed", str(other), str(cann), "-lm")
    plugin = compiled(mindspore, "lib/plugin/ascend/libascend.so", source, *linked)
    assert "libm.so" in subprocess.run(["readelf", "-d", plugin], capture_output=True, text=True).stdout
    compiled(mindspore, "lib/plugin/gpu/libgpu.so", "int in_gpu(); int g() { return in_gpu(); }")
    compiled(
        mindspore,
        "lib/plugin/ascend/op_kernels/libkernel.so",
        "int in_kernel(); int g() { return in_kernel(); }",
    )
    (mindspore / "lib/not_a_library.so").write_text("text")
    headers = mindspore / "include/mindspore/ccsrc/plugin/ascend/res_manager"
    (headers / "symbol_interface").mkdir(parents=True)
    (headers / "symbol_interface/acl.h").write_text(
        "ORIGIN_METHOD(aclrtAsked, aclError, void *)\nORIGIN_METHOD_WITH_SIMU(rtOther, int, void)\n"
        "ORIGIN_METHOD(ours, aclError)\n"
    )
    (headers / "hccl_adapter/plugin").mkdir(parents=True)
    (headers / "hccl_adapter/plugin/hccl_plugin.h").write_text("ORIGIN_METHOD(HcclFind, HcclResult, int)\n")
    own = compiled(tmp_path, "libown.so", 'extern "C" int ours() { return 1; }')
    assert other.exists() and generate.generate(mindspore, tmp_path, [own]) == ["libcann.so"]
    text = (tmp_path / "stubs.S").read_text()
    made = {line.split()[1] for line in text.splitlines() if line.startswith(".globl")}
    assert {"absent", "aclrtAsked", "rtOther", "HcclFind", "_ZN4cann7counterE"} <= made
    assert not made & {"aclnnAdd", "PyThing", "ours", "in_gpu", "in_kernel", "_Z14defined_besidev", "lgamma"}
    entries = {name: part for part in text.split(".globl ")[1:] for name in [part.split()[0]]}
    assert "mov $207000,%eax" in entries["aclrtAsked"] and "mov $0,%eax" in entries["rtOther"]
    assert "mov $5,%eax" in entries["HcclFind"] and "jmp .Labort" in entries["absent"]
    assert '.asciz "cann::quote(char const*)"' in entries["_ZN4cann5quoteEPKc"]
    assert "@object" in entries["_ZN4cann7counterE"] and ".zero 512" in entries["_ZN4cann7counterE"]
    register = next(name for name in made if "OperatorCreatorRegister" in name)
    assert "mov %rdi,%rax\n  ret" in entries[register]
    subprocess.run(
        ["gcc", "-c", tmp_path / "stubs.S", "-o", tmp_path / "stubs.o"], check=True
    )  # it assembles
    assert (tmp_path / "needed").read_text() == "libcann.so\n"


def test_packages_of_cann_take_everything(monkeypatch):
    stub = Path(generate.__file__).with_name("te_package.py")
    spec = importlib.util.spec_from_file_location("te", stub, submodule_search_locations=[])
    te = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("te", "te.lang", "te.lang.cce", "tbe", "tbe.dsl"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "te", te)
    spec.loader.exec_module(te)
    cce, dsl = importlib.import_module("te.lang.cce"), importlib.import_module("tbe.dsl")

    @cce.decorate
    def own():
        return 7

    assert own() == 7 and te.tik is te.tvm
    assert te.tik.anything(1, 2).of.it() is te.tik and te.tvm(own, option=1) is te.tvm
    assert dsl.vadd(1) is not None and te.version.version == "8.5.0"
    for thing in (te.tik, cce):
        with pytest.raises(AttributeError):
            getattr(thing, "__nothing__")  # noqa: B009
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tbee")
