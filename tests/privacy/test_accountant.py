"""The accountant of sums: the Gaussian mechanism's own figures, neither more nor less."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federank.privacy.accountant import delta_of_mu, epsilon_of_mu, mu_for, mu_of_noise


@pytest.mark.parametrize(("sigma", "epsilon"), [(4, 3.75), (10, 1.37), (20, 0.65)])
def test_ten_messages_have_the_figures_that_a_privacy_loss_distribution_gives(sigma, epsilon):
    assert epsilon_of_mu(mu_of_noise([sigma] * 10), 1e-6) == pytest.approx(epsilon, abs=0.005)


def test_delta_is_what_the_two_densities_say():
    mu, epsilon = 0.8, 1.5
    x = np.linspace(-12, 12, 400_001)
    with_person, without = (np.exp(-((x - mean) ** 2) / 2) / np.sqrt(2 * np.pi) for mean in (mu, 0))
    worst = np.trapezoid(np.maximum(with_person - np.exp(epsilon) * without, 0), x)
    assert delta_of_mu(mu, epsilon) == pytest.approx(worst, rel=1e-6)


@given(epsilon=st.floats(0.01, 50), delta=st.floats(1e-12, 0.1))
def test_a_budget_keeps_its_guarantee_and_wastes_nothing(epsilon, delta):
    mu = mu_for(epsilon, delta)
    assert epsilon_of_mu(mu, delta) <= epsilon
    assert epsilon_of_mu(mu * 1.001, delta) > epsilon * 0.9999


def test_messages_with_unequal_noise_tell_as_much_as_one_with_all_of_it():
    assert mu_of_noise([2.0, 2.0, 2.0, 2.0]) == pytest.approx(mu_of_noise([1.0]))
    assert mu_of_noise([]) == epsilon_of_mu(0.0, 1e-6) == 0
