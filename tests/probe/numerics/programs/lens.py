"""Shape the two faces of a lens so that parallel rays meet in one spot."""

import numpy as np
import warp as wp

SEED = 0
RAYS = 40
TERMS = 4
UNIT = 1.0
ABSOLUTE = False
LOSS_SCALE = 1.0
RATE = 0.02
ITERATIONS = 10


@wp.func
def weigh(value: float, scale: float):
    return scale * value


@wp.kernel
def meet(
    origin: wp.array(dtype=wp.vec2),
    along: wp.array(dtype=wp.vec2),
    face: wp.array(dtype=float),
    terms: int,
    place: float,
    unit: float,
    sag_and_slope: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    o = origin[i]
    d = along[i]
    y = o[1] + d[1] / d[0] * (place - o[0])
    total = wp.vec2(0.0, 0.0)
    for k in range(terms):
        power = float(k + 2)
        total += face[k] / unit * wp.vec2(wp.cos(power * y) / power, -wp.sin(power * y))
    sag_and_slope[i] = total


@wp.kernel
def refract(
    origin: wp.array(dtype=wp.vec2),
    along: wp.array(dtype=wp.vec2),
    sag_and_slope: wp.array(dtype=wp.vec2),
    place: float,
    index: float,
    hit: wp.array(dtype=wp.vec2),
    refracted: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    o = origin[i]
    d = along[i]
    y = o[1] + d[1] / d[0] * (place - o[0])
    shape = sag_and_slope[i]
    normal = wp.normalize(wp.vec2(-1.0, shape[1]))
    c = -wp.dot(normal, d)
    inside = 1.0 - index * index * (1.0 - c * c)
    hit[i] = wp.vec2(place + shape[0], y)
    refracted[i] = wp.normalize(d * index + normal * (index * c - wp.sqrt(wp.max(inside, 0.01))))


@wp.kernel
def spread(
    origin: wp.array(dtype=wp.vec2),
    along: wp.array(dtype=wp.vec2),
    screen: float,
    absolute: int,
    scale: float,
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    o = origin[i]
    d = along[i]
    y = o[1] + d[1] / d[0] * (screen - o[0])
    if absolute == 1:
        wp.atomic_add(loss, 0, weigh(wp.abs(y), scale))
    else:
        wp.atomic_add(loss, 0, weigh(y * y, scale))


@wp.kernel
def descend(p: wp.array(dtype=float), g: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * g[i]


DESCEND = {wp.float32: descend}


class Problem:
    def __init__(self):
        rng = np.random.default_rng(SEED)
        rays = np.zeros((RAYS, 2), dtype=np.float32)
        rays[:, 1] = np.linspace(-0.7, 0.7, RAYS)
        direction = np.zeros((RAYS, 2), dtype=np.float32)
        direction[:, 0] = 1.0
        self.origin = wp.array(rays, dtype=wp.vec2)
        self.along = wp.array(direction, dtype=wp.vec2)
        self.start = [
            (UNIT * 0.15 * rng.normal(size=TERMS)).astype(np.float32),
            (UNIT * 0.15 * rng.normal(size=TERMS)).astype(np.float32),
        ]
        self.types = [wp.float32, wp.float32]
        self.shapes = [wp.zeros(RAYS, dtype=wp.vec2, requires_grad=True) for _ in range(2)]  # buffer
        self.hits = [wp.zeros(RAYS, dtype=wp.vec2, requires_grad=True) for _ in range(2)]  # buffer
        self.rays = [wp.zeros(RAYS, dtype=wp.vec2, requires_grad=True) for _ in range(2)]  # buffer

    def pass_face(self, n, origin, along, face, place, index):
        wp.launch(meet, dim=RAYS, inputs=[origin, along, face, TERMS, place, UNIT], outputs=[self.shapes[n]])
        wp.launch(
            refract,
            dim=RAYS,
            inputs=[origin, along, self.shapes[n], place, index],
            outputs=[self.hits[n], self.rays[n]],
        )

    def forward(self, parameters, loss):
        front, back = parameters
        self.pass_face(0, self.origin, self.along, front, 1.0, 0.67)
        self.pass_face(1, self.hits[0], self.rays[0], back, 1.6, 1.49)
        wp.launch(
            spread,
            dim=RAYS,
            inputs=[self.hits[1], self.rays[1], 4.0, 1 if ABSOLUTE else 0, LOSS_SCALE],
            outputs=[loss],
        )
