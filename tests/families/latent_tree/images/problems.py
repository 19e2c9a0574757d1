"""Problems on images for tests."""

from meanfield.problems.file import parse_problem

BARS = "meanfield.families.latent_tree.images.bars:make_bars"

TABLES = {
    "data": f"law = 'arrays'\nimages = '{BARS}'\naugmentation = {{ shift = 1, noise = 0.1 }}",
    "network": "widths = [6, 3]\noutput_normalisation = true",
    "loss": "kind = 'simple'",
    "training": "learning_rate = 0.1\nbatch_size = 8",
    "time": "stop = 1.0\noutputs = 3",
    "operator": "images = 6\nviews = 2",
    "particles": "replicas = 2",
}


def written(**tables):
    """Text of a problem, with other tables in place of those above."""
    return 'family = "latent_tree"\n' + "".join(f"[{name}]\n{text}\n" for name, text in (TABLES | tables).items())


def problem(**tables):
    """The problem itself."""
    return parse_problem(written(**tables))
