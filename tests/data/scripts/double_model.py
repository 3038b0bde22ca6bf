"""Runs a transformers model in double precision throughout, whatever types its code asks for on the way.

Transformers computes norms, rotation angles, softmax and routers in float for every type of model. Under `double` each
request for a smaller floating-point type is one for double; `only_double` fails when an operation gives one all the
same. `watch` looks at what passes through softmax and top-k: the facts about a model that a golden should have.

Needs: torch (CPU).
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

SMALL = (torch.float32, torch.float16, torch.bfloat16)
TO_SMALL = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)


class double_requests(TorchFunctionMode):
    """Every torch function that is asked for a smaller floating-point type is asked for double."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in TO_SMALL:
            function = torch.Tensor.double
        if function in (torch.Tensor.__torch_function__, torch.finfo):
            return function(*args, **(kwargs or {}))
        wide = lambda x: torch.float64 if isinstance(x, torch.dtype) and x in SMALL else x
        return function(*tree_map(wide, args), **tree_map(wide, kwargs or {}))


class only_double(TorchDispatchMode):
    """Fails when an operation gives a tensor of a smaller floating-point type."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor) and t.dtype in SMALL:
                raise AssertionError("%s gave %s" % (function, t.dtype))
        return out


class watch(TorchFunctionMode):
    """The scores of each attention, in order, and the closest call of the routers.

    `sinks`: the last column of each softmax is no score.
    """

    def __init__(self, sinks=False):
        super().__init__()
        self.sinks, self.scores, self.margin, self.experts = sinks, [], float("inf"), set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in (torch.nn.functional.softmax, torch.softmax, torch.Tensor.softmax) and args[0].ndim == 4:
            self.scores.append(args[0][0, ..., :-1] if self.sinks else args[0][0])
        if function in (torch.topk, torch.Tensor.topk):
            x, k = args[0], args[1] if len(args) > 1 else kwargs["k"]
            if x.ndim == 2 and k < x.shape[-1]:
                order = x.sort(-1, descending=True).values
                gap = order[:, k - 1] - order[:, k]
                self.margin = min(self.margin, float(gap[order[:, k - 1] > -1e30].min()))
        return function(*args, **kwargs)

    def score_deviation(self):
        """Per layer: the standard deviation of a query's visible scores, root mean square over queries and heads."""
        out = []
        for layer in self.scores:
            variances = []
            for row in layer.reshape(-1, layer.shape[-1]):
                seen = row[row > -5000]  # masked ones are far below: -10000 in the first GPT, the least float elsewhere
                if len(seen) >= 8:
                    variances.append(seen.var())
            out.append(float(torch.stack(variances).mean().sqrt()))
        return out


@contextlib.contextmanager
def double():
    """Within it, models are made in double and asked in double."""
    torch.set_default_dtype(torch.float64)
    try:
        with double_requests():
            yield
    finally:
        torch.set_default_dtype(torch.float32)
