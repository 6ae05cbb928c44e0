"""The part of warplint that lives in the user's process.

It is loaded by path into the project's own interpreter (Python 3.9+, Warp 1.13 to 1.19), so
it imports nothing but the standard library, numpy, warp and its own siblings.

======================  ======================================================================
module                  one idea
======================  ======================================================================
``main, bootstrap``     the entry: loads this package under a name of its own, opens the pipe
``session``             the probe of one program: scout → measure → attribute, as JSON lines
``replay``              the numbers of an evidence script again
``program``             run the user's file as ``__main__``, as it stands
``sites``               call sites: which user line an operation belongs to; what names it
``arrays``              arrays as memory: births, views, structs, who owns a gradient
``hooks``               Warp's operations as a stream of numbered events
``devices``             CUDA requests on a machine without a GPU
``pinning``             randomness and file offsets, so that forks repeat each other
``forks``               children that report once and leave by ``os._exit``
``scout``               which parameters, versions, episodes, objectives the program has
``objectives``          what a backward call is worth: loss, seeds, manual adjoint launches
``boundary, restored``  where a version ends; versions that are put aside and put back
``lagging``             copies of a parameter that stay in use when it has moved on
``unread``              backward calls whose gradient belongs to another parameter
``episodes``            children that go on from an episode's start: objective, gradient
``held, host_copies``   what goes through the host, held constant
``reported, declared``  the numbers that the program shows, or the user names, as the objective
``judge``               noise, step ladder, kinks: the three-valued judgement (numpy only)
``measure``             directions × steps at an episode's start
``snapshots``           what each recorded launch read, who overwrote it, putting it back
``signatures``          what the numbers of a wrong gradient look like, and what that points at
``attribute``           counterfactuals and the minimal set of causes
``rewrites, slots``     which statement makes an adjoint wrong, and in which element
``factories``           kernels that functions define, for made-up arguments
``library``             solvers and integrals of Warp's own library, as operations
``supervisor, confine`` limits, confinement, and the end of every descendant
``processes``           the process table
======================  ======================================================================
"""
