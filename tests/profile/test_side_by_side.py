"""How many engines pay for what there is to do."""

import pytest

from as2d_cli.profile.side_by_side import ENOUGH, engines_for


@pytest.fixture
def model(tmp_path):
    (tmp_path / "weights").write_bytes(bytes(1_000_000))
    return tmp_path


@pytest.mark.parametrize(
    ("windows", "threads", "engines"),
    [(0, 4, 1), (1, 4, 1), (2 * ENOUGH - 1, 4, 1), (2 * ENOUGH, 4, 2), (1000, 4, 4), (1000, 1, 1)],
)
def test_there_is_an_engine_for_each_thread_if_there_is_enough_to_do_for_all(
    model, windows, threads, engines
):
    assert engines_for(windows, threads, model, None) == engines


@pytest.mark.parametrize(("free_bytes", "engines"), [(10**10, 4), (600_000_000, 2), (10**6, 1), (0, 1)])
def test_memory_bounds_the_engines_and_leaves_one(model, free_bytes, engines):
    assert engines_for(1000, 4, model, free_bytes) == engines
