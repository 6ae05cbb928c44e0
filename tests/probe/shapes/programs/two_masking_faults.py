"""Actuated pendulum: the torque buffer has no gradient and the states take turns in two buffers."""

import numpy as np
import warp as wp

T = 8


@wp.kernel
def motor(cmd: wp.array(dtype=float), gain: wp.array(dtype=float), k: int, tau: wp.array(dtype=float)):
    tau[k] = gain[0] * wp.tanh(cmd[k])


@wp.kernel
def swing(
    s: wp.array(dtype=float),
    tau: wp.array(dtype=float),
    cmd: wp.array(dtype=float),
    k: int,
    o: wp.array(dtype=float),
):
    w = s[1] + 0.2 * (tau[k] + 0.05 * cmd[k] - wp.sin(2.0 * s[0]) * s[0])
    o[0] = s[0] + 0.2 * w
    o[1] = w


@wp.kernel
def goal(s: wp.array(dtype=float), loss: wp.array(dtype=float)):
    loss[0] = (s[0] - 1.2) * (s[0] - 1.2) + 0.1 * s[1] * s[1]


cmd = wp.array(np.full(T, 0.3), dtype=float, requires_grad=True)
gain = wp.array([1.5], dtype=float)
a = wp.zeros(2, dtype=float, requires_grad=True)
b = wp.zeros(2, dtype=float, requires_grad=True)
start = wp.array([0.4, 0.0], dtype=float)
for it in range(20):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tau = wp.zeros(T, dtype=float)
    with wp.Tape() as tape:
        wp.copy(a, start)
        s0, s1 = a, b
        for k in range(T):
            wp.launch(motor, dim=1, inputs=[cmd, gain, k], outputs=[tau])
            wp.launch(swing, dim=1, inputs=[s0, tau, cmd, k], outputs=[s1])
            s0, s1 = s1, s0
        wp.launch(goal, dim=1, inputs=[s0], outputs=[loss])
    tape.backward(loss)
    g = cmd.grad.numpy().copy()
    cmd.assign(cmd.numpy() - 2.0 * g)
    tape.zero()
    print(it, loss.numpy()[0], np.round(g, 4))
