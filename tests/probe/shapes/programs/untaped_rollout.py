"""A pendulum swings off the tape, in place; every pass starts it again from the same angle."""

import numpy as np
import warp as wp


@wp.kernel
def swing(state: wp.array(dtype=float), stiffness: wp.array(dtype=float)):
    angle = state[0]
    state[0] = angle + 0.1 * state[1]
    state[1] = state[1] - 0.1 * stiffness[0] * wp.sin(angle)


@wp.kernel
def miss(state: wp.array(dtype=float), stiffness: wp.array(dtype=float), loss: wp.array(dtype=float)):
    d = state[0] - 0.1
    loss[0] = d * d + 1.0e-3 * stiffness[0] * stiffness[0]


start = np.array([0.8, 0.0], dtype=np.float32)
state = wp.zeros(2, dtype=float, requires_grad=True)
stiffness = wp.array([1.5], dtype=float, requires_grad=True)
for _ in range(4):
    state.assign(start)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    for _ in range(6):
        wp.launch(swing, 1, [state, stiffness])
    tape = wp.Tape()
    with tape:
        wp.launch(miss, 1, [state, stiffness], [loss])
    tape.backward(loss)
    stiffness.assign(stiffness.numpy() - 0.1 * stiffness.grad.numpy())
    tape.zero()
