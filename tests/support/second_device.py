"""A second device that is made of Python: its tensors hold their numbers in a CPU tensor that nobody else can reach.

The real rollout and the real learner run on it and give real numbers. An operation that mixes the two devices raises,
as it would with a GPU; every look of the host at a number of the device (`int()`, `bool()`, `.item()`, `.cpu()`,
`nonzero`, a boolean index, a copy that the host waits for) is counted with its file and line, and every operation that
would launch a kernel or a copy is counted too.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

NAME = "second"
OURS = str(Path(__file__).resolve().parents[2] / "src" / "gridmill")
# Of these the host needs a number, or the number of numbers, before it can go on.
LOOKS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "_unique", "equal", "is_nonzero", "bincount")
# No work of the device: memory is taken, or seen in another way. Views are known by their schema.
NOTHING = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "_unsafe_view", "detach", "alias")


def device() -> torch.device:
    """The device, made known to torch at the first call; it stays for the life of the process."""
    if torch._C._get_privateuse1_backend_name() != NAME:
        from torch.utils import backend_registration

        class Backend(backend_registration._DummyBackendModule):  # type: ignore[no-any-unimported]
            def get_amp_supported_dtype(self) -> list[torch.dtype]:
                return [torch.bfloat16, torch.float16]

        backend_registration._setup_privateuseone_for_python_backend(NAME, Backend())
        FALLBACK.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
        for name in PRODUCTS:
            LIBRARY.impl(name, _in_few_bits(getattr(torch.ops.aten, name).default), "AutocastPrivateUse1")
    return torch.device(NAME, 0)


PRODUCTS = ("linear", "mm", "addmm", "bmm", "matmul", "conv2d", "scaled_dot_product_attention")  # that autocast rounds
LIBRARY, FALLBACK = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")


def _in_few_bits(product: Any) -> Any:
    """A product as autocast has it on a GPU: its inputs rounded."""
    here = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)

    def run(*args: Any, **kwargs: Any) -> Any:
        dtype = torch.get_autocast_dtype(NAME)
        with torch._C._ExcludeDispatchKeyGuard(here):
            cast = _each(lambda x: x.to(dtype) if x.is_floating_point() else x, [args, list(kwargs.values())])
            return product(*cast[0], **dict(zip(kwargs, cast[1], strict=True)))

    return run


class Far(Tensor):
    """A tensor of the second device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Far:
        found: Far = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype,
            device=device(),
        )  # fmt: skip
        found.held = held
        return found

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Far({self.held!r})"

    def tolist(self) -> Any:
        return self.cpu().tolist()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.lstm, torch.gru) and not torch.is_grad_enabled():
            _count_one(func.__name__)
            return _each(Far, func(*_each(near, args)))
        if func in (torch.lstm, torch.gru):
            leaves, tree = tree_flatten(args)
            return _Sequence.apply(func, leaves, tree, *(leaf for leaf in leaves if isinstance(leaf, Far)))
        return torch._C._disabled_torch_function_impl(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, None)


class _Sequence(torch.autograd.Function):
    """torch's LSTM or GRU as cuDNN does them: one operation, and one on the way back."""

    @staticmethod
    def forward(ctx: Any, func: Any, leaves: list[Any], tree: Any, *far: Far) -> Any:
        _count_one(func.__name__)
        ctx.inputs = [x.held.detach().requires_grad_(x.requires_grad) for x in far]
        rest = iter(ctx.inputs)
        with torch.enable_grad():
            given = [next(rest) if isinstance(leaf, Far) else leaf for leaf in leaves]
            ctx.outputs = func(*tree_unflatten(given, tree))
        return tuple(Far(x.detach()) for x in ctx.outputs)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        _count_one("sequence_backward")
        wanted = [x for x in ctx.inputs if x.requires_grad]
        held = [near(x) for x in slopes]
        found = iter(torch.autograd.grad(ctx.outputs, wanted, held, allow_unused=True, materialize_grads=True))
        return None, None, None, *(Far(next(found)) if x.requires_grad else None for x in ctx.inputs)


@dataclass
class Section:
    """What happened between two marks."""

    looks: Counter[str] = field(default_factory=Counter)  # by file and line
    kernels: Counter[str] = field(default_factory=Counter)  # by name

    @property
    def synchronisations(self) -> int:
        return self.looks.total()


class Counted(TorchDispatchMode):
    """While it is on, what the device does is counted into the newest of `sections`."""

    newest: ClassVar[Counted | None] = None

    def __init__(self) -> None:
        super().__init__()
        device()
        Counted.newest = self
        self.sections: dict[str, list[Section]]
        self.begin()

    def begin(self) -> None:
        """Forget what was counted so far."""
        self.now = Section()
        self.sections = {"": [self.now]}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {}, self)

    # ---- a Watch of the trainer: a section for each step of the rollout and each minibatch

    def step(self, kind: str) -> None:
        self.now = Section()
        self.sections.setdefault(kind, []).append(self.now)

    def finish(self, kind: str) -> None:
        self.now = self.sections[""][0]

    def span(self, name: str, began: float, ended: float) -> None:
        """Time does not matter here."""


def _count_one(name: str) -> None:
    if Counted.newest is not None:
        Counted.newest.now.kernels[name] += 1


@functools.cache
def _made_of_others(func: Any) -> bool:
    """Whether torch has it as a list of other operations."""
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def _each(do: Callable[[Tensor], Any], x: Any) -> Any:
    """What `do` makes of every tensor in lists of arguments; torch's own way through trees takes much longer."""
    if isinstance(x, Tensor):
        return do(x)
    return type(x)([_each(do, y) for y in x]) if type(x) in (list, tuple) else x


def _run(func: Any, args: Any, kwargs: dict[str, Any], counted: Counted | None) -> Any:
    """One operation: on CPU tensors as it is, on those of the device by what they hold."""
    tensors: list[Tensor] = []
    _each(tensors.append, [args, list(kwargs.values())])
    far = [x for x in tensors if isinstance(x, Far)]
    wanted = kwargs.get("device")
    to_far = wanted is not None and torch.device(wanted).type == NAME
    if not far and not to_far:
        return func(*args, **kwargs)
    if _made_of_others(func):
        if counted is None:
            return func.decompose(*args, **kwargs)
        with counted:  # what it is made of is counted
            return func.decompose(*args, **kwargs)
    name = func.overloadpacket.__name__
    copies = name in ("_to_copy", "copy_", "_copy_from")
    if far and not copies:  # a number of the host's is allowed, as on a GPU; an array of it is not
        for x in tensors:
            if x.ndim > 0 and not isinstance(x, Far):
                raise RuntimeError(f"{name}: expected all tensors on one device, got {NAME} and {x.device}: {_place()}")
    if counted is not None:
        _count(counted.now, func, name, args, kwargs, copies)
    return _computed(func, name, args, kwargs, far, to_far)


def _count(now: Section, func: Any, name: str, args: Any, kwargs: dict[str, Any], copies: bool) -> None:
    if copies:
        source, target = (args[0], kwargs.get("device")) if name == "_to_copy" else (args[1], args[0].device)
        crosses = (target is not None and torch.device(target).type) != source.device.type and target is not None
        waits = not (kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2]))
        if crosses and waits and not (source.ndim == 0 and source.device.type == "cpu"):
            now.looks[f"{name} {_place()}"] += 1
    elif name in LOOKS or _indexes_by_flags(name, args):
        now.looks[f"{name} {_place()}"] += 1
    if name not in NOTHING and not func.is_view:
        now.kernels[name] += 1


def _indexes_by_flags(name: str, args: Any) -> bool:
    """A boolean index is a search on the device whose result has a size that the host must know."""
    if name not in ("index", "index_put_", "index_put", "_index_put_impl_"):
        return False
    flags = any(isinstance(x, Tensor) and x.dtype in (torch.bool, torch.uint8) for x in args[1])
    return flags and not (name != "index" and args[2].numel() == 1)


def _computed(func: Any, name: str, args: Any, kwargs: dict[str, Any], far: list[Far], to_far: bool) -> Any:
    known = {id(x.held): x for x in far}
    kept = dict(kwargs)
    back = name == "_to_copy" and kwargs.get("device") is not None and not to_far
    if kept.get("device") is not None:
        kept["device"] = torch.device("cpu")
    if "pin_memory" in kept:
        kept["pin_memory"] = False
    found = func(*_each(near, args), **{key: _each(near, value) for key, value in kept.items()})
    if name == "copy_" and not isinstance(args[0], Far):
        return args[0]
    if back or name in ("_local_scalar_dense", "equal", "is_nonzero"):
        return found
    inference = torch.is_inference_mode_enabled() and not (func.is_view and not args[0].is_inference())
    with torch.inference_mode(inference):  # a view of a tensor with gradients is one too
        return _each(lambda x: known[id(x)] if id(x) in known else Far(x), found)


def _place() -> str:
    """The line of ours that asked for it."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            return f"{Path(frame.f_code.co_filename).relative_to(OURS)}:{frame.f_lineno}"
        frame = frame.f_back
    return "on the way back"


@contextmanager
def counting() -> Iterator[Counted]:
    """Operations on the device are counted. The way back runs in this thread: torch counts its devices only once."""
    mode = Counted()
    with torch.autograd.set_multithreading_enabled(False), mode:
        yield mode


def near(x: Tensor) -> Tensor:
    """What a tensor of the device holds, without counting a look."""
    return x.held if isinstance(x, Far) else x
