"""The small real model that reads; fetched and converted at first use."""

import pytest

from as2d_cli.registry import load_registry
from as2d_cli.weights import ensure


@pytest.fixture(scope="session")
def smollm_folder():
    return ensure(load_registry().model("smollm2-135m"))
