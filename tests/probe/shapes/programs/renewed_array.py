"""Positions of buoys: the parameter array is renewed in every iteration, the gradient's name is not."""

import warp as wp


@wp.kernel
def cost(x: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (x[i] * x[i] - 1.0) * (x[i] * x[i] - 1.0))


x = wp.array([0.4, 0.7, 1.5], dtype=float, requires_grad=True)
grad = x.grad
for it in range(10):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(cost, dim=3, inputs=[x], outputs=[loss])
    tape.backward(loss)
    x = wp.array(x.numpy() - 0.05 * grad.numpy(), dtype=float, requires_grad=True)
    print(it, loss.numpy()[0])
