"""What is odd in the facts that a plugin states of a model."""

import re
from dataclasses import replace

import numpy as np
import pytest

from as2d_cli.decoding.protocols import DrafterSpec, TargetSpec
from as2d_cli.domain.types import NOTHING_HEARD, FeatureSpec
from as2d_cli.models.validation import spec_flaw

DRAFTER = DrafterSpec(NOTHING_HEARD, languages=None)
TARGET = TargetSpec(FeatureSpec(), end_id=9, vocab_size=10, languages=("en",))


class OwnSpec(DrafterSpec):
    """A class that no other process knows."""


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        (DRAFTER, DrafterSpec),
        (replace(DRAFTER, languages=["en"], tasks=("ask",)), DrafterSpec),
        (replace(DRAFTER, features=FeatureSpec(np.int64(80), np.int32(3000))), DrafterSpec),
        (replace(TARGET, end_id=np.int32(3)), TargetSpec),
    ],
)
def test_facts_of_the_declared_types_can_be_gone_by(spec, kind):
    assert spec_flaw(spec, kind) is None


@pytest.mark.parametrize(
    ("spec", "kind", "flaw"),
    [
        ({"features": 80}, DrafterSpec, "its spec is a dict, not a DrafterSpec"),
        (OwnSpec(NOTHING_HEARD, None), DrafterSpec, "its spec is a OwnSpec, not a DrafterSpec"),
        (replace(DRAFTER, features=None), DrafterSpec, "odd features: None"),
        (replace(DRAFTER, features=FeatureSpec("80")), DrafterSpec, "odd features: FeatureSpec"),
        (replace(DRAFTER, features=FeatureSpec(80.5)), DrafterSpec, "odd features: FeatureSpec"),
        (replace(DRAFTER, features=FeatureSpec(n_frames=-1)), DrafterSpec, "odd features: FeatureSpec"),
        (replace(DRAFTER, languages="en"), DrafterSpec, "odd languages: 'en'"),
        (replace(DRAFTER, tasks=7), DrafterSpec, "odd tasks: 7"),
        (replace(TARGET, languages=None), TargetSpec, "odd languages: None"),
        (replace(TARGET, tasks=(1,)), TargetSpec, r"odd tasks: \(1,\)"),
        (replace(TARGET, end_id=None), TargetSpec, "odd end_id: None"),
        (replace(TARGET, end_id=10), TargetSpec, "end_id 10 is none of 10 ids"),
        (replace(TARGET, splits_threads=1), TargetSpec, "odd splits_threads: 1"),
    ],
)
def test_facts_of_other_types_are_named(spec, kind, flaw):
    assert re.search(flaw, spec_flaw(spec, kind))
