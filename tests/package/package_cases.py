"""torch.package: archives with source code, what becomes of modules, and errors. The code is made in a temporary folder."""

from tests.golden.answers import expressions

SETUP = """
import importlib, io, os, sys, tempfile
from torch.package import (
    EmptyMatchError, GlobGroup, PackageExporter, PackageImporter, PackagingError, OrderedImporter, is_from_package, sys_importer
)
FILES = {
    "pk_shop/__init__.py": "NAME = 'shop'\\n",
    "pk_shop/model.py": "import math\\nimport torch\\nfrom torch import nn\\nfrom .parts import wheel\\nfrom pk_shop.parts.door "
    "import SIZE\\nimport pk_tool\\n\\nclass Net(nn.Module):\\n    def __init__(self):\\n        super().__init__()\\n"
    "        self.lin = nn.Linear(4, 2)\\n    def forward(self, x):\\n        return self.lin(x) * wheel.turn() * "
    "math.sqrt(SIZE)\\n",
    "pk_shop/parts/__init__.py": "",
    "pk_shop/parts/wheel.py": "def turn():\\n    return 2.0\\n",
    "pk_shop/parts/door.py": "SIZE = 4.0\\n",
    "pk_tool.py": "def run():\\n    return 1\\ndef add(x):\\n    return x + 1\\nclass Tool:\\n    pass\\n",
    "pk_broken.py": "import sys\\nimport io\\n",
    "pk_bad.py": "from ... import nothing\\n",
    "pk_self.py": "import torch_package_importer\\ndef text():\\n    return torch_package_importer.load_text('data', 'a.txt')\\n"
    "class Own:\\n    def __init__(self, v):\\n        self.v = v\\n    def __reduce_package__(self, exporter):\\n"
    "        name = exporter.get_unique_id() + '.txt'\\n        exporter.save_text('own', name, str(self.v))\\n"
    "        return make, (name,)\\ndef make(importer, name):\\n    return Own(importer.load_text('own', name) + '!')\\n",
    "pk_outer.py": "class A:\\n    class B:\\n        x = 1\\n",
}
folder = tempfile.mkdtemp()
for name, text in FILES.items():
    os.makedirs(os.path.dirname(os.path.join(folder, name)) or folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)
for name in [n for n in sys.modules if n.startswith("pk_")]:
    del sys.modules[name]
sys.path[:] = [folder] + [p for p in sys.path if "pk_path" not in p]
importlib.invalidate_caches()
def made(fill, **options):
    f = io.BytesIO()
    with PackageExporter(f, **options) as e:
        fill(e)
    f.seek(0)
    return f
def opened(fill, **options):
    return PackageImporter(made(fill, **options))
def modules(fill):
    f = io.BytesIO()
    with PackageExporter(f) as e:
        fill(e)
    return [e.externed_modules(), e.interned_modules(), e.mocked_modules(), e.denied_modules()]
def net():
    from pk_shop.model import Net
    made = Net()
    with torch.no_grad():
        made.lin.weight.copy_(torch.arange(8.0).reshape(2, 4) / 4)
        made.lin.bias.fill_(0.5)
    return made
def shop(e):
    e.intern("pk_shop.**")
    e.mock("pk_tool")
    e.save_pickle("model", "net.pkl", net())
def graph(own_function=False):
    import pk_tool
    made = torch.fx.Graph()
    x = made.placeholder("x")
    made.output(made.call_function(pk_tool.add if own_function else torch.relu, (x,)))
    module = torch.fx.GraphModule({}, made)
    module.own = 5
    return module
def problem(fill, **options):
    try:
        made(fill, **options)
    except (PackagingError, EmptyMatchError) as error:
        return [type(error).__name__, str(error)]
"""
_CASES = [
    "[GlobGroup('torch.**').matches(n) for n in ('torch', 'torch.nn', 'torch.nn.functional', 'torchx', 'a.torch')]",
    "[GlobGroup('torch.*').matches(n) for n in ('torch', 'torch.nn', 'torch.nn.functional', 'torch.')]",
    "[GlobGroup('t*r.**.x').matches(n) for n in ('tr.x', 'taar.x', 'tar.b.c.x', 'tar.b', 'ta.r.x')]",
    "[GlobGroup(['a', 'b.**'], exclude='b.c').matches(n) for n in ('a', 'b', 'b.c', 'b.d', 'c')]",
    "[GlobGroup('a/*.txt', separator='/').matches(n) for n in ('a/b.txt', 'a/b/c.txt', 'a.b.txt')]",
    "GlobGroup('a**')",
    "str(GlobGroup('a.b', exclude=['c']))",
    "modules(shop)",
    "opened(shop).load_pickle('model', 'net.pkl')(torch.ones(1, 4))",
    "is_from_package(opened(shop).load_pickle('model', 'net.pkl')), is_from_package(net()), is_from_package(os)",
    "[type(n).__module__.partition('.')[2] for n in [opened(shop).load_pickle('model', 'net.pkl')]]",
    "(lambda i: [i.import_module('pk_shop.model').wheel.turn(), i.import_module('pk_shop.parts.door').SIZE])(opened(shop))",
    "(lambda i: i.import_module('pk_shop.model') is i.import_module('pk_shop').model)(opened(shop))",
    "(lambda i: i.import_module('pk_shop.model').pk_tool.run())(opened(shop))",
    "(lambda i: i.import_module('pk_shop.model').pk_tool.Tool + 1)(opened(shop))",
    "repr((lambda i: i.import_module('pk_shop.model').pk_tool.Tool)(opened(shop))).partition('.')[2]",
    "'pk_shop.model' in sys.modules, opened(shop).load_pickle('model', 'net.pkl') and 'pk_shop' in sys.modules",
    "(lambda a, b: type(a.load_pickle('model', 'net.pkl')) is type(b.load_pickle('model', 'net.pkl')))(opened(shop), opened(shop))",
    "(lambda i: type(i.load_pickle('model', 'net.pkl')) is i.import_module('pk_shop.model').Net)(opened(shop))",
    "opened(shop).import_module('numpy.linalg')",
    "!opened(shop).import_module('pk_outer')",
    "sorted(opened(shop).file_structure(exclude='**/.data/**').children)",
    "str(opened(lambda e: (e.save_text('t', 'a.txt', 'x'), e.save_binary('t.u', 'b.bin', b'1'))).file_structure(include='t/**'))",
    "opened(shop).file_structure().has_file('pk_shop/model.py'), opened(shop).file_structure().has_file('pk_shop/none.py')",
    "(lambda i: [i.load_text('t', 'a.txt'), i.load_binary('t', 'a.txt').decode()])(opened(lambda e: e.save_text('t', "
    "'a.txt', 'é')))",
    "opened(lambda e: e.save_text('t', 'a/b.txt', 'x'))",
    "!opened(lambda e: e.save_text('t', 'a.txt', 'x')).load_text('t', 'b.txt')",
    "opened(lambda e: (e.save_text('t', 'a.txt', 'x'), e.save_text('t', 'a.txt', 'y')))",
    "opened(lambda e: e.save_pickle('m', 'x.pkl', 1)).python_version() == __import__('platform').python_version()",
    "problem(lambda e: e.save_pickle('model', 'net.pkl', net()))",
    "problem(lambda e: (e.deny('pk_shop.**'), e.save_pickle('model', 'net.pkl', net())))",
    "problem(lambda e: (e.intern('pk_shop.**'), e.save_pickle('model', 'net.pkl', net())))",
    "problem(lambda e: (e.intern('pk_shop.**'), e.save_pickle('model', 'net.pkl', net())), debug=True)",
    "problem(lambda e: (e.intern('pk_broken'), e.save_module('pk_broken')))",
    "modules(lambda e: (e.extern(['sys', 'io']), e.save_module('pk_broken')))",
    "problem(lambda e: (e.intern('**'), e.save_module('pk_bad')))",
    "problem(lambda e: e.save_source_string('one', 'import math as'))",
    "problem(lambda e: (e.mock('pk_tool'), e.save_pickle('m', 't.pkl', __import__('pk_tool').Tool())))",
    "problem(lambda e: e.intern('pk_none.**', allow_empty=False))",
    "problem(lambda e: (e.intern('**'), e.save_module('_csv')))",
    "problem(lambda e: (e.extern('pk_tool'), e.deny('pk_tool'), e.save_source_string('one', 'import pk_tool')))",
    "problem(lambda e: (e.deny('pk_tool'), e.extern('pk_tool'), e.save_source_string('one', 'import pk_tool')))",
    "modules(lambda e: (e.extern('pk_**', exclude='pk_tool'), e.intern('pk_tool'), e.save_source_string('a', 'import "
    "pk_tool, pk_outer')))",
    "modules(lambda e: e.save_source_string('a', 'import pk_none'))",
    "modules(lambda e: (e.extern('**'), e.save_source_string('a', \"__import__('pk_shop.model')\")))",
    "modules(lambda e: (e.extern('**'), e.save_source_string('a.b', 'from . import c', is_package=True)))",
    "opened(lambda e: e.save_source_string('one', 'x = 3')).import_module('one').x",
    "opened(lambda e: e.save_source_string('one', 'import math\\nx = math.pi')).import_module('one').x",
    "opened(lambda e: e.save_source_string('one', 'import pk_tool', dependencies=False)).import_module('one')",
    "opened(lambda e: e.save_source_string('one', '1 / 0')).import_module('one')",
    "opened(lambda e: e.save_source_string('one', 'import os.path\\nx = os.path.join(\"a\", \"b\")')).import_module('one').x",
    "(lambda f: (__import__('zipfile').ZipFile(made(lambda e: e.save_text('one', 'a.txt', 'x'))).extractall(f), "
    "os.path.relpath(PackageImporter(f + '/archive').get_resource_reader('one').resource_path('a.txt'), f))[1])("
    "tempfile.mkdtemp())",
    "!opened(lambda e: e.save_text('one', 'a.txt', 'x')).get_resource_reader('one').resource_path('a.txt')",
    "opened(lambda e: (e.save_source_file('pk_shop', folder + '/pk_shop', dependencies=False))).import_module('pk_shop').NAME",
    "opened(lambda e: (e.save_module('pk_self'), e.save_text('data', 'a.txt', 'hi'))).import_module('pk_self').text()",
    "opened(lambda e: (e.intern('pk_self'), e.save_pickle('m', 'x.pkl', "
    "[__import__('pk_self').Own(3)]))).load_pickle('m', 'x.pkl')[0].v",
    "(lambda l: l[0] is l[1])(opened(lambda e: (e.intern('pk_self'), e.save_pickle('m', 'x.pkl', "
    "[__import__('pk_self').Own(3)] * 2))).load_pickle('m', 'x.pkl'))",
    "opened(lambda e: (e.intern('pk_outer'), e.save_pickle('m', 'x.pkl', "
    "__import__('pk_outer').A.B()))).load_pickle('m', 'x.pkl').x",
    "modules(lambda e: (e.intern('pk_tool'), e.save_pickle('m', 'x.pkl', __import__('pk_tool').run)))",
    "opened(lambda e: (e.intern('pk_tool'), e.save_pickle('m', 'x.pkl', __import__('pk_tool').run))).load_pickle('m', 'x.pkl')()",
    "opened(lambda e: e.save_pickle('m', 'x.pkl', graph())).load_pickle('m', 'x.pkl')(torch.tensor([-1.0, 2.0]))",
    "modules(lambda e: e.save_pickle('m', 'x.pkl', graph()))",
    "opened(lambda e: e.save_pickle('m', 'x.pkl', [graph(), graph()])).load_text('fx-generated', '_1.py')",
    "(lambda g: [str(g.graph), g.own, type(g).__name__])(opened(lambda e: e.save_pickle('m', 'x.pkl', graph())).load_pickle("
    "'m', 'x.pkl'))",
    "(lambda f: [f.import_module('pk_graph').run(3), 'pk_graph.py' in str(f.file_structure())])(opened(lambda e: "
    "(e.intern('pk_tool'), e.save_source_string('pk_graph', 'from pk_tool import run as tool\\ndef run(x):\\n    return "
    "tool() + x'))))",
    "opened(lambda e: (e.intern('pk_tool'), e.save_pickle('m', 'x.pkl', graph(True)))).load_pickle('m', 'x.pkl')(3)",
    "opened(lambda e: e.save_pickle('m', 'x.pkl', [1, 'a', {2.5: None}, (torch.int32, torch.Size([2]), torch.device('cpu'))]))"
    ".load_pickle('m', 'x.pkl')",
    "(lambda d: [d['b'], d['a'].untyped_storage().data_ptr() == d['b'].untyped_storage().data_ptr()])(opened(lambda e: [("
    "e.save_pickle('m', 'x.pkl', {'a': a, 'b': a.t()})) for a in [torch.arange(6).view(2, 3)]]).load_pickle('m', 'x.pkl'))",
    "PackageImporter(made(shop), lambda name: name != 'math')",
    "!PackageImporter(io.BytesIO(b'nothing'))",
    "PackageExporter(io.BytesIO(), importer=3)",
    "(lambda i: modules.__name__ and [sorted(PackageImporter(made(lambda e: (e.intern('**'), e.mock('pk_tool'), "
    "e.save_pickle('m', 'n.pkl', "
    "i.load_pickle('model', 'net.pkl'))), importer=[i, "
    "sys_importer])).file_structure(include='pk_shop/**').children['pk_shop'].children)])"
    "(opened(shop))",
    "(lambda i: PackageImporter(made(lambda e: (e.intern('**'), e.save_pickle('m', 'n.pkl', i.load_pickle('model', 'net.pkl'))), "
    "importer=[i, sys_importer])).load_pickle('m', 'n.pkl')(torch.ones(1, 4)))(opened(shop))",
    "!made(lambda e: (e.intern('**'), e.save_pickle('m', 'n.pkl', opened(shop).load_pickle('model', 'net.pkl'))))",
    "[(h.remove(), seen.clear(), made(lambda e: e.save_pickle('m', 'x.pkl', 1)), seen)[3] for seen in [[]] for e in "
    "[PackageExporter("
    "io.BytesIO())] for h in [e.register_extern_hook(lambda e, n: seen.append(n))]]",
    "(lambda seen: (made(lambda e: (e.register_intern_hook(lambda e, n: seen.append(('in', n))), e.register_mock_hook(lambda e, n: "
    "seen.append(('mock', n))), e.register_extern_hook(lambda e, n: seen.append(('out', n))), shop(e))), sorted(seen))[1])([])",
    "(lambda e: (e.intern('**'), e.save_pickle('m', 'n.pkl', net()), e.get_rdeps('pk_shop.parts.wheel'), "
    "e.get_rdeps('pk_none'))[2:])"
    "(PackageExporter(io.BytesIO()))",
]
CASES = expressions(SETUP, _CASES)
