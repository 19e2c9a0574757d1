"""Settings that all families share, and those that one adds to them."""

from meanfield.extend import EnsembleSettings
from meanfield.families.contrastive.settings import ParticleSettings


def test_a_family_adds_keys_around_the_common_ones():
    """The order of keys in problem files, and so in results and checkpoints, stays as it was."""
    common = ["dimension", "replicas", "seed", "snapshots", "snapshot_precision", "record", "longest_days"]
    assert list(EnsembleSettings.model_fields) == common
    assert list(ParticleSettings.model_fields) == ["method", *common, "escape_overlap"]
    assert list(ParticleSettings().model_dump()) == list(ParticleSettings.model_fields)
