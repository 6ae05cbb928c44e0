"""What the adjoints of Warp's built-in functions need, by name.

Only the shape of the adjoint matters here: whether it uses the values of the operands. Names that
are in no table are taken as nonlinear in every argument, which is right for ``sin``, ``length``,
``normalize`` and the like.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


LINEAR = _words(
    """
    float float16 float32 float64 half vec2 vec3 vec4 vec2f vec3f vec4f vec2d vec3d vec4d vec2h vec3h
    vec4h mat22 mat33 mat44 mat22f mat33f mat44f mat22d mat33d mat44d mat22h mat33h mat44h quat quatf
    quatd quath quaternion spatial_vector spatial_vectorf spatial_vectord spatial_matrix
    spatial_matrixf transform transformf transformd vector matrix matrix_from_cols
    matrix_from_rows neg pos add sub transpose trace skew diag get_diag extract assign copy identity
    spatial_top spatial_bottom transform_get_translation transform_get_rotation
    transform_set_translation transform_set_rotation quat_inverse tile_sum tile_load
    tile_broadcast tile_reshape tile_transpose tile_view tile_squeeze tile_astype tile_extract tile
    untile tile_assign cast tile_from_thread
    """
)
"""The adjoint passes derivatives on without looking at the operands."""


def _shapes() -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for kind in ("", "f", "d", "h"):
        for n in (2, 3, 4):
            found[f"vec{n}{kind}"] = (n,)
            found[f"mat{n}{n}{kind}"] = (n, n)
        found[f"quat{kind}"] = (4,)
        found[f"spatial_vector{kind}"] = (6,)
        found[f"spatial_matrix{kind}"] = (6, 6)
    found["quaternion"] = (4,)
    return found


SHAPES = _shapes()
"""How many components the constructors of vectors, matrices and quaternions take."""

SINGULAR = {"sqrt": True, "cbrt": True, "log": False, "log2": False, "log10": False, "exp": False}
"""Functions that are infinite, or have an infinite derivative, somewhere; whether it is the derivative
alone, so that the forward pass shows nothing."""

PRODUCT = _words(
    """
    mul dot tensordot ddot cross outer cw_mul tile_matmul spatial_dot spatial_cross
    spatial_cross_dual matmul
    """
)
"""Bilinear: the adjoint of one operand needs the value of the other."""

NO_DERIVATIVE = _words(
    """
    int int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool boolean floor ceil round rint trunc
    sign nonzero step tid len rand_init randi randu randf randn sample_cdf sample_unit_disk
    sample_unit_sphere sample_unit_cube sample_unit_square sample_unit_ring
    sample_unit_hemisphere isnan isinf isfinite argmin argmax
    lower_bound zeros ones full empty tile_zeros tile_ones tile_full tile_arange tile_empty
    hash_grid_query hash_grid_query_next hash_grid_point_id mesh_query_aabb
    mesh_query_aabb_next bvh_query_aabb bvh_query_ray bvh_query_next mesh_get lookup
    closest_point_edge_edge_feature block_dim printf print expect_eq breakpoint static constant vec2i
    vec3i vec4i vec2ui vec3ui vec4ui vec2b vec2s vec3s vec4s encode_morton_3d grid_index unot bit_and
    bit_or bit_xor lshift rshift invert type min_axis max_axis poisson
    """
)
"""The result carries no derivative at all."""

STEPS = frozenset({"floor", "ceil", "round", "rint", "trunc", "sign", "nonzero", "step"})
"""Piecewise constant functions of real numbers."""

ACCUMULATING = frozenset({"atomic_add", "atomic_sub", "tile_atomic_add"})
"""First argument is accumulated into; the adjoint needs none of its values."""

STORING = frozenset({"atomic_min", "atomic_max", "atomic_cas", "atomic_exch", "tile_store"})

BITWISE = frozenset({"atomic_and", "atomic_or", "atomic_xor"})

READING = frozenset({"tile_load", "tile_load_async"})

INTEGER_TYPES = _words(
    """
    int bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 boolean vec2i vec3i vec4i vec2ui vec3ui
    vec4ui vec2s vec3s vec4s vec2us vec3us vec4us vec2b vec3b vec4b vec2ub vec3ub vec4ub vec2l vec3l
    vec4l vec2ul vec3ul vec4ul
    """
)
"""Element types that cannot carry a derivative."""
