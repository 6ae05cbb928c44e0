"""Gradient checkpointing: untaped forward that keeps segment starts, then segments in reverse."""

import numpy as np
import warp as wp

SEG, LEN, N = 4, 5, 6


@wp.kernel
def advance(x: wp.array(dtype=float), ctrl: wp.array2d(dtype=float), s: int, y: wp.array(dtype=float)):
    i = wp.tid()
    j = (i + 1) % N
    y[i] = x[i] + 0.1 * (wp.sin(x[j]) - x[i] * x[i] * 0.3 + ctrl[s, i])


@wp.kernel
def final_cost(x: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - goal[i]) * (x[i] - goal[i]))


def segment(x, ctrl, k):
    for s in range(k * LEN, (k + 1) * LEN):
        y = wp.empty(N, dtype=float, requires_grad=True)
        wp.launch(advance, dim=N, inputs=[x, ctrl, s], outputs=[y])
        x = y
    return x


goal = wp.array(np.linspace(0.5, 1.5, N), dtype=float)
start = wp.array(np.linspace(-0.5, 0.5, N), dtype=float)
ctrl = wp.zeros((SEG * LEN, N), dtype=float, requires_grad=True)

for it in range(12):
    # forward without a tape, checkpoints kept
    checkpoints = [start]
    for k in range(SEG):
        checkpoints.append(segment(checkpoints[-1], ctrl, k))

    loss = wp.zeros(1, dtype=float, requires_grad=True)
    end = wp.clone(checkpoints[-1], requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(final_cost, dim=N, inputs=[end, goal], outputs=[loss])
    tape.backward(loss)
    adj = wp.clone(end.grad)

    # backward over the segments
    ctrl.grad.zero_()
    for k in reversed(range(SEG)):
        x0 = wp.clone(checkpoints[k], requires_grad=True)
        with wp.Tape() as tape:
            x1 = segment(x0, ctrl, k)
        tape.backward(grads={x1: adj})
        adj = wp.clone(x0.grad)

    g = ctrl.grad.numpy()
    ctrl.assign(ctrl.numpy() - 0.5 * g)
    print(it, loss.numpy()[0], np.abs(g).max())
