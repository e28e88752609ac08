# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.fx import _compatibility as _compatibility
from torch.fx import _pytree as _pytree
from torch.fx import _symbolic_trace as _symbolic_trace
from torch.fx import experimental as experimental
from torch.fx import graph as graph
from torch.fx import graph_module as graph_module
from torch.fx import immutable_collections as immutable_collections
from torch.fx import interpreter as interpreter
from torch.fx import node as node
from torch.fx import operator_schemas as operator_schemas
from torch.fx import passes as passes
from torch.fx import proxy as proxy
from torch.fx import subgraph_rewriter as subgraph_rewriter
from torch.fx import tensor_type as tensor_type
from torch.fx import traceback as traceback
from torch.fx.graph import Graph as Graph
from torch.fx.graph_module import GraphModule as GraphModule
from torch.fx.interpreter import Interpreter as Interpreter
from torch.fx.interpreter import Transformer as Transformer
from torch.fx.node import Node as Node
from torch.fx.node import has_side_effect as has_side_effect
from torch.fx.node import map_arg as map_arg
from torch.fx.proxy import Proxy as Proxy
from torch.fx.proxy import TracerBase as _base_TracerBase
from torch.fx.subgraph_rewriter import replace_pattern as replace_pattern

class CodeGen:
    _body_transformer: _Any
    _func_name: _Any
    def __init__(self) -> None: ...
    def additional_globals(self) -> _Any: ...
    def gen_fn_def(self, free_vars, maybe_return_annotation: _str, *, expanded_def: _bool = ...) -> _str: ...
    def generate_output(self, output_args, *, descs=..., repr_fn=...) -> _str: ...
    def process_inputs(self, *args) -> _Any: ...
    def process_outputs(self, outputs) -> _Any: ...
PH: _Any
class ProxyableClassMeta(_builtins.type):
    def __call__(cls, *args, **kwargs) -> _Any: ...
    def __init__(cls, name, bases, attrs) -> None: ...
class Tracer(_base_TracerBase):
    _autowrap_function_ids: _Any
    _autowrap_search: _Any
    graph: _Any
    module_stack: _Any
    node_name_to_scope: _Any
    num_calls: _Any
    param_shapes_constant: _Any
    root: _Any
    root_module_name: _Any
    scope: _Any
    submodule_paths: _Any
    tensor_attrs: _Any
    def __deepcopy__(self, memo) -> _Any: ...
    def __init__(self, autowrap_modules=..., autowrap_functions=..., param_shapes_constant=...) -> None: ...
    def call_module(self, m, forward, args, kwargs) -> _Any: ...
    def create_arg(self, a) -> _Any: ...
    def create_args_for_root(self, root_fn, is_module: _bool, concrete_args=...) -> _Any: ...
    def get_fresh_qualname(self, prefix: _str) -> _str: ...
    def getattr(self, attr, attr_val, parameter_proxy_cache) -> _Any: ...
    def is_leaf_module(self, m, module_qualified_name: _str) -> _bool: ...
    def path_of_module(self, mod) -> _str: ...
    def trace(self, root, concrete_args=...) -> _Any: ...
def symbolic_trace(root, concrete_args=...) -> _Any: ...
def wrap(fn_or_name) -> _Any: ...
