"""gradcheck of functions that draw random numbers."""

import msadapter as torch


def test_a_function_that_restores_the_generator_is_the_same_in_every_call():
    def noisy(x):
        state = torch.get_rng_state()
        try:
            return torch.nn.functional.rrelu(x, 0.1, 0.9, training=True)
        finally:
            torch.set_rng_state(state)

    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    before = torch.get_rng_state()
    for fast in (True, False):
        assert torch.autograd.gradcheck(noisy, (x,), fast_mode=fast, atol=1e-4)
    assert torch.equal(before, torch.get_rng_state())
