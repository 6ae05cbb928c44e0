"""Abstract interpretation of host code: from programs to ordered events on arrays.

The interpreter is one object built up in layers: ``core`` (state, branches, events), ``expressions``,
``statements``, ``python`` (containers and built-ins), ``calls`` (inlining) and ``library`` (Warp).
"""
