"""Words near a statement that say what is meant by it: a cut path, a constant, an iterative solver.

The static pass and the probe look for the same ones.
"""

from __future__ import annotations

import re

DETACHED = re.compile(
    r"detach|stop[_ -]?grad|truncat|tbptt|semi[_ -]?gradient|straight[_ -]?through", re.IGNORECASE
)
CONSTANT = re.compile(
    r"(held|kept|keeps?|holds?|treat\w*|taken|as)\s+(\w+\s+)?(a\s+)?(constant|fixed|frozen)\b"
    r"|frozen|freez|lagged|bootstrap|teacher|polyak|moving[_ -]average|target[_ -]net|reweight|\birls\b"
    r"|(\b|_)ema(_|\b)|\.slow\b|\bslow_\w+|\bsnapshot|\w_target\b|target_(w|weights?|params?|policy)\b",
    re.IGNORECASE,
)
"""Words for a value that is computed from the parameter and meant as a constant."""
METHOD = re.compile(r"stop[_ -]?grad|semi[_ -]?gradient|straight[_ -]?through", re.IGNORECASE)
"""Names of methods that a docstring may give once for all the statements that make them up."""
SURROGATE = re.compile(
    r"surrogate|straight[_ -]?through|stop[_ -]?grad|detach|\bste\b|gradient[_ -]clip|clip\w*[_ -]grad",
    re.IGNORECASE,
)
"""Words for an adjoint that is not meant to be the derivative."""
LINES_ABOVE = 5
FRAMES = 3
SOLVER = re.compile(
    r"jacobi|gauss[_ -]?seidel|red[_ -]?black|\bsor\b|relaxation|fixed[_ -]?point|picard|equilibri|"
    r"(un)?converge|steady[_ -]?state|poisson|power[_ -]iteration|"
    r"(linear|pressure|implicit|iterative|inner|newton)[_ -]sol|sol(ve|ver)[_ -](iter|sweep|turn)",
    re.IGNORECASE,
)
"""Words for iterations that stand for the solution of an equation."""
