"""Our Adam is torch's, bit by bit, and leaves torch's compiler alone."""

import subprocess
import sys

import pytest
import torch

from fujinsplat.compat import optim


def course(kind: type, **options) -> tuple[torch.Tensor, dict]:
    """Twenty steps with a state saved and restored midway."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(50, generator=generator, requires_grad=True)
    optimizer = kind([weight], lr=0.01, **options)
    for step in range(20):
        optimizer.zero_grad()
        (weight - torch.randn(50, generator=generator)).square().sum().backward()
        optimizer.step()
        if step == 9:
            state, optimizer = optimizer.state_dict(), kind([weight], lr=0.01, **options)
            optimizer.load_state_dict(state)
    return weight.detach(), optimizer.state_dict()["state"][0]


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"weight_decay": 0.1}])
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_the_same_numbers_as_torch(name, options):
    (ours, our_state), (theirs, their_state) = (course(getattr(m, name), **options) for m in (optim, torch.optim))
    assert torch.equal(ours, theirs)
    assert our_state.keys() == their_state.keys()
    assert all(torch.equal(our_state[key], their_state[key]) for key in our_state)


def test_nothing_of_the_compiler_is_imported():
    script = (
        "import sys, torch; from fujinsplat.compat.optim import Adam\n"
        "x = torch.ones(2, requires_grad=True); a = Adam([x])\n"
        "a.zero_grad(); x.sum().backward(); a.step(); a.load_state_dict(a.state_dict())\n"
        "print('torch._dynamo' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.strip() == "False"


class Counter(torch.Tensor):
    """A step counter that writes down where it is sent."""

    sent: list

    def to(self, device):
        self.sent.append(torch.device(device).type)
        return self


@pytest.mark.parametrize("fused, where", [(True, "meta"), (False, "cpu")])
def test_counters_go_where_their_kernel_reads_them(fused, where):
    """ "meta" stands for a GPU: nothing can be computed there, but everything has to lie there."""
    weight = torch.zeros(3, device="meta", requires_grad=True)
    optimizer = optim.Adam([weight], fused=fused)
    counter = torch.tensor(7.0).as_subclass(Counter)
    counter.sent = []
    optimizer.state[weight] = {"step": counter, "exp_avg": torch.zeros(3), "exp_avg_sq": torch.zeros(3)}
    optim.count_steps_where_they_are_read(optimizer)
    assert counter.sent == [where]
