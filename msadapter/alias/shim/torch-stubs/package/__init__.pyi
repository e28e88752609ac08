# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.package import _mangling as _mangling
from torch.package import analyze as analyze
from torch.package import file_structure_representation as file_structure_representation
from torch.package import glob_group as glob_group
from torch.package import importer as importer
from torch.package import package_exporter as package_exporter
from torch.package import package_importer as package_importer
from torch.package.analyze.is_from_package import is_from_package as is_from_package
from torch.package.file_structure_representation import Directory as Directory
from torch.package.glob_group import GlobGroup as GlobGroup
from torch.package.importer import Importer as Importer
from torch.package.importer import ObjMismatchError as ObjMismatchError
from torch.package.importer import ObjNotFoundError as ObjNotFoundError
from torch.package.importer import OrderedImporter as OrderedImporter
from torch.package.package_exporter import EmptyMatchError as EmptyMatchError
from torch.package.package_exporter import PackageExporter as PackageExporter
from torch.package.package_exporter import PackagingError as PackagingError
from torch.package.package_importer import PackageImporter as PackageImporter

sys_importer: _Any
