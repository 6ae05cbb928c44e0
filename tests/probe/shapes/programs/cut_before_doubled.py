"""A cut path before a doubled one: force kept with retain_grad and launched twice; drag without gradient."""

import warp as wp


@wp.kernel
def drag(c: wp.array(dtype=float), d: wp.array(dtype=float)):
    i = wp.tid()
    d[i] = c[i] * c[i]


@wp.kernel
def force(d: wp.array(dtype=float), f: wp.array(dtype=float)):
    i = wp.tid()
    f[i] = 2.0 * d[i] + wp.sin(d[i])


@wp.kernel
def cost(f: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (f[i] - 0.9) * (f[i] - 0.9))


c = wp.array([0.2, 0.4, 0.5], dtype=float, requires_grad=True)
for it in range(8):
    d = wp.zeros(3, dtype=float)
    f = wp.zeros(3, dtype=float, requires_grad=True, retain_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(drag, dim=3, inputs=[c], outputs=[d])
        wp.launch(force, dim=3, inputs=[d], outputs=[f])
        wp.launch(force, dim=3, inputs=[d], outputs=[f])
        wp.launch(cost, dim=3, inputs=[f], outputs=[loss])
    tape.backward(loss)
    c.assign(c.numpy() - 0.1 * c.grad.numpy())
    tape.zero()
    print(it, loss.numpy()[0])
