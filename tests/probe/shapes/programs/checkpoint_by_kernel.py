"""Checkpointing in the same buffers, with a kernel that copies."""

import numpy as np
import warp as wp
import warp.optim

N, SEGMENTS, STEPS, DT = 6, 3, 4, 0.05


@wp.kernel
def advance(
    x: wp.array(dtype=float),
    v: wp.array(dtype=float),
    x_out: wp.array(dtype=float),
    v_out: wp.array(dtype=float),
):
    i = wp.tid()
    force = x[(i + N - 1) % N] + x[(i + 1) % N] - 2.0 * x[i] - 0.3 * wp.sin(x[i])
    v_out[i] = v[i] + DT * force
    x_out[i] = x[i] + DT * (v[i] + DT * force)


@wp.kernel
def misfit(x: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - goal[i]) * (x[i] - goal[i]))


@wp.kernel
def copy_values(source: wp.array(dtype=float), target: wp.array(dtype=float)):
    i = wp.tid()
    target[i] = source[i]


def put(target, source):
    wp.launch(copy_values, N, inputs=[source], outputs=[target])


class Chain:
    def __init__(self):
        self.x = [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(STEPS + 1)]
        self.v = [wp.zeros(N, dtype=float, requires_grad=True) for _ in range(STEPS + 1)]
        self.x[0].assign(np.sin(np.arange(N)).astype(np.float32))
        self.saved = [[wp.zeros(N, dtype=float) for _ in range(2)] for _ in range(SEGMENTS)]
        self.adjoints = [wp.zeros(N, dtype=float) for _ in range(2)]
        self.goal = wp.array(np.linspace(-1.0, 1.0, N), dtype=float)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)

    def segment(self):
        for t in range(STEPS):
            outputs = [self.x[t + 1], self.v[t + 1]]
            wp.launch(advance, N, inputs=[self.x[t], self.v[t]], outputs=outputs)

    def forward(self):
        self.loss.zero_()
        for s in range(SEGMENTS):
            for saved, states in zip(self.saved[s], (self.x, self.v), strict=True):
                put(saved, states[0])
            self.segment()
            if s < SEGMENTS - 1:
                put(self.x[0], self.x[STEPS])
                put(self.v[0], self.v[STEPS])
        wp.launch(misfit, N, inputs=[self.x[STEPS], self.goal], outputs=[self.loss])

    def backward(self):
        for s in reversed(range(SEGMENTS)):
            for saved, states in zip(self.saved[s], (self.x, self.v), strict=True):
                put(states[0], saved)
            tape = wp.Tape()
            with tape:
                self.segment()
            if s == SEGMENTS - 1:
                self.loss.grad.fill_(1.0)
                wp.launch(
                    misfit,
                    N,
                    inputs=[self.x[STEPS], self.goal],
                    outputs=[self.loss],
                    adj_inputs=[self.x[STEPS].grad, None],
                    adj_outputs=[self.loss.grad],
                    adjoint=True,
                )
            else:
                put(self.x[STEPS].grad, self.adjoints[0])
                put(self.v[STEPS].grad, self.adjoints[1])
            tape.backward()
            if s > 0:
                put(self.adjoints[0], self.x[0].grad)
                put(self.adjoints[1], self.v[0].grad)
                tape.zero()
        return tape


chain = Chain()
optimizer = warp.optim.Adam([chain.x[0]], lr=0.05)
for it in range(4):
    chain.forward()
    tape = chain.backward()
    optimizer.step([chain.x[0].grad])
    print(it, chain.loss.numpy()[0])
    tape.zero()
    chain.loss.grad.zero_()
