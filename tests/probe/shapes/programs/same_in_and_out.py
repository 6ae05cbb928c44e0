"""In-place nonlinear stencil-free update: the same array is input and output of the step."""

import warp as wp


@wp.kernel
def logistic(x: wp.array(dtype=float), r: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = r[0] * x[i] * (1.0 - x[i])


@wp.kernel
def loss_fn(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] - 0.6) * (x[i] - 0.6))


def simulate(r, steps=4):
    x = wp.array([0.2, 0.3, 0.45], dtype=float, requires_grad=True)
    for _ in range(steps):
        wp.launch(logistic, dim=3, inputs=[x, r], outputs=[x])
    return x


def main():
    r = 1.8
    for it in range(15):
        rw = wp.array([r], dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            x = simulate(rw)
            wp.launch(loss_fn, dim=3, inputs=[x], outputs=[loss])
        tape.backward(loss)
        r -= 0.5 * rw.grad.numpy().item()
        print(it, loss.numpy().item(), r)


if __name__ == "__main__":
    main()
