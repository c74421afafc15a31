"""What a framework imports and a check of its arguments does not need.

install(names) makes modules of these names (and below them) whose attributes are all there:
classes that can be called, subclassed, indexed and compared, and do nothing.
A framework's own parser and checks then run without torch and without a GPU.
"""
import importlib.abc
import importlib.machinery
import sys
import types
import typing

NO_FILE = "/none"


class Stub(type(typing.Protocol)):
    """The type of attributes of modules that are not there."""

    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = make_stub(name, cls.__module__)
        setattr(cls, name, made)
        return made

    def __call__(cls, *args, **options):
        if "is_stub" not in cls.__dict__:
            return type.__call__(cls, *args, **options)
        is_decorated = len(args) == 1 and not options and callable(args[0])
        if is_decorated and not isinstance(args[0], Stub):
            return args[0]
        return cls

    def __iter__(cls):
        return iter(())

    def register(cls, *arguments, **options):
        return cls

    def __len__(cls):
        return 0

    def __bool__(cls):
        return True

    def __format__(cls, how):
        return cls.__name__

    def __enter__(cls):
        return cls

    def __exit__(cls, *why):
        return False


for _same in ("__getitem__", "__or__", "__ror__", "__mul__", "__rmul__"):
    setattr(Stub, _same, lambda cls, other: cls)
for _name, _said in (("__lt__", False), ("__gt__", False), ("__le__", True),
                     ("__ge__", True)):
    setattr(Stub, _name, lambda cls, other, said=_said: said)


def make_stub(name, module):
    return Stub(name, (), {
        "__module__": module,
        "__file__": NO_FILE,
        "__init_subclass__": classmethod(lambda cls, **options: None),
        "is_stub": True,
    })


class StubModule(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name == "__version__":
            return "99.0.0"
        if name == "__file__":
            return NO_FILE
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        made = make_stub(name, self.__name__)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        if not any(".".join(parts[:n + 1]) in self.names
                   for n in range(len(parts))):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return StubModule(spec.name)

    def exec_module(self, module):
        pass


class Version:
    """Enough of packaging.version.Version."""

    def __init__(self, text):
        self.text = str(text)
        digits = "".join(c if c.isdigit() else " " for c in self.text)
        self.release = tuple(int(n) for n in digits.split()[:3])
        self.major, self.minor, self.micro = (self.release + (0,) * 3)[:3]

    def __str__(self):
        return self.text

    def __lt__(self, other):
        return self.release < other.release

    def __le__(self, other):
        return self.release <= other.release

    def __gt__(self, other):
        return self.release > other.release

    def __ge__(self, other):
        return self.release >= other.release

    def __eq__(self, other):
        return self.release == other.release


def install_packaging():
    try:
        import packaging.version  # noqa: F401
    except ImportError:
        package = types.ModuleType("packaging")
        package.__path__ = []
        package.version = types.ModuleType("packaging.version")
        package.version.Version = package.version.parse = Version
        package.version.InvalidVersion = ValueError
        sys.modules["packaging"] = package
        sys.modules["packaging.version"] = package.version


def install(names):
    sys.meta_path.insert(0, Finder(set(names)))
    install_packaging()
    if not hasattr(typing, "override"):  # Python 3.12
        typing.override = lambda function: function
