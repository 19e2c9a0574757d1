"""Keys of problem files in a terminal: all families, a table with its laws, one key, and one that there is not."""


def test_families_and_keys_are_listed(call):
    code, out, _ = call("keys")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()][:2] == ["contrastive", "hidden_manifold"]
    code, out, _ = call("keys", "contrastive", "model.learning_rate")
    assert code == 0
    assert out.startswith("model.learning_rate: number")
    assert len(out.splitlines()) <= 4


def test_a_table_is_listed_with_its_laws_and_tables_with_numbers_are_the_same(call):
    out = call("keys", "contrastive", "features[0].hidden")[1]
    assert out == call("keys", "contrastive", "features.hidden")[1]
    assert "features.hidden(three_point).fourth_moment: number, > 0; required\n    E[c^4]" in out
    assert "model." not in out
    assert call("keys", "latent_tree", "data.images")[1].startswith("data(arrays).images: text")


def test_an_unknown_key_is_refused_with_the_closest_one(call):
    code, out, err = call("keys", "contrastive", "model.learning_rat")
    assert (code, out) == (2, "")
    assert "have no key 'model.learning_rat'; did you mean 'model.learning_rate'?" in err
    assert call("keys", "contrastiv")[0] == 2
