"""Readers of image files: what they return, and what they refuse."""

import gzip
import os
import pickle
import struct

import numpy as np
import pytest

from meanfield.errors import InputError
from meanfield.ingredients.images.labelled import checked_images
from meanfield.ingredients.images.reading import read_images
from tests.ingredients.images.files import (
    random_pixels,
    write_cifar10,
    write_cifar10_pickle,
    write_idx,
    write_stl10,
)


@pytest.mark.parametrize("compressed", [False, True])
def test_mnist(tmp_path, compressed):
    pixels, labels = random_pixels(3, 5, 4), np.array([7, 0, 9], dtype=np.uint8)
    images = write_idx(tmp_path / "images", pixels, compressed)
    found = read_images("mnist", [images], write_idx(tmp_path / "labels", labels, compressed))
    assert np.array_equal(found.pixels, pixels[..., None])
    assert np.array_equal(found.labels, labels)
    assert read_images("mnist", [images]).labels is None
    assert np.array_equal(found.values([2, 0]), pixels[[2, 0], :, :, None] / 255.0)


@pytest.mark.parametrize("protocol", [None, 2, 4, 5])
def test_cifar10(tmp_path, protocol):
    pixels, labels, paths = random_pixels(5, 32, 32, 3), [3, 9, 0, 1, 1], []
    for number, part in enumerate((slice(0, 2), slice(2, 5))):
        write = write_cifar10 if protocol is None else lambda *given: write_cifar10_pickle(*given, protocol)
        paths.append(write(tmp_path / f"data_batch_{number}", pixels[part], labels[part]))
    found = read_images("cifar10", paths)
    assert np.array_equal(found.pixels, pixels)
    assert found.labels.tolist() == labels


def test_a_pickle_as_the_published_one_writes_it(tmp_path):
    """By Python 2 and an old numpy: text of bytes, modules of old names, and arrays that state their bytes."""
    rows = random_pixels(2, 3072)
    text = (
        b"\x80\x02}q\x01(U\x06labelsq\x02]q\x03(K\x06K\x09eU\x04dataq\x04cnumpy.core.multiarray\n_reconstruct\nq\x05"
        b"cnumpy\nndarray\nq\x06K\x00\x85U\x01b\x87Rq\x07(K\x01K\x02M\x00\x0c\x86cnumpy\ndtype\nq\x08U\x02u1K\x00K\x01"
        b"\x87Rq\x09(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<i", rows.size)
        + rows.tobytes()
        + b"tbu."
    )
    (tmp_path / "data_batch_1").write_bytes(text)
    found = read_images("cifar10", [tmp_path / "data_batch_1"])
    assert found.labels.tolist() == [6, 9]
    assert np.array_equal(found.pixels[1, :, :, 2].ravel(), rows[1, 2048:])


def test_stl10(tmp_path):
    pixels = random_pixels(2, 96, 96, 3)
    images, labels = write_stl10(tmp_path / "train_X.bin", pixels), tmp_path / "train_y.bin"
    labels.write_bytes(bytes([10, 1]))
    found = read_images("stl10", [images], labels)
    assert np.array_equal(found.pixels, pixels)
    assert found.labels.tolist() == [9, 0]
    assert read_images("stl10", [images]).labels is None


def test_stl10_by_the_formula_of_its_page(tmp_path):
    """`reshape(X, 10000, 96, 96, 3)` in MATLAB, whose first index is the fastest (cs.stanford.edu/~acoates/stl10)."""
    rows = random_pixels(2, 27648)
    (tmp_path / "unlabeled_X.bin").write_bytes(rows.tobytes())
    found = read_images("stl10", [tmp_path / "unlabeled_X.bin"])
    assert np.array_equal(found.pixels, rows.reshape(2, 96, 96, 3, order="F"))
    # One place, by hand: the second value of a row is that below the first, and column 1 begins after 96 of them.
    assert found.pixels[0, 1, 0, 0] == rows[0, 1]
    assert found.pixels[0, 0, 1, 2] == rows[0, 2 * 96 * 96 + 96]


@pytest.mark.parametrize("order", ["C", "F"])
def test_cifar10_by_the_words_of_its_page(tmp_path, order):
    """Rows of red, green and blue, each row by row, and other entries beside them (cs.toronto.edu/~kriz/cifar.html)."""
    rows = np.array(random_pixels(3, 3072), order=order)
    batch = {
        b"batch_label": b"training batch 1 of 5",
        b"labels": [6, 9, 9],
        b"data": rows,
        b"filenames": [b"leptodactylus_pentadactylus_s_000004.png", b"camion_s_000148.png", b"tipper_s_001250.png"],
    }
    (tmp_path / "data_batch_1").write_bytes(pickle.dumps(batch, protocol=2))
    records = np.column_stack([np.array(batch[b"labels"], np.uint8), rows])
    (tmp_path / "data_batch_1.bin").write_bytes(records.tobytes())
    for name in ("data_batch_1", "data_batch_1.bin"):
        found = read_images("cifar10", [tmp_path / name])
        assert found.labels.tolist() == [6, 9, 9]
        for channel, row, column in ((0, 0, 31), (1, 5, 0), (2, 31, 30)):
            assert found.pixels[2, row, column, channel] == rows[2, 1024 * channel + 32 * row + column]


def corner(side, by_columns):
    """Bytes of a picture, black but for a red corner that is 3 pixels high and 5 wide, place by place."""
    text = bytearray(3 * side * side)
    for row in range(3):
        for column in range(5):
            text[side * column + row if by_columns else side * row + column] = 255  # the red plane comes first
    return bytes(text)


@pytest.mark.parametrize("format", ["cifar10", "stl10"])
def test_a_red_corner_is_red_at_the_top_left(tmp_path, format):
    side, labels = {"cifar10": 32, "stl10": 96}[format], None
    picture, path = corner(side, format == "stl10"), tmp_path / "pictures.bin"
    if format == "cifar10":
        path.write_bytes(b"\x07" + picture)
    else:
        path.write_bytes(picture)
        labels = tmp_path / "train_y.bin"
        labels.write_bytes(b"\x08")
    found = read_images(format, [path], labels)
    assert found.pixels.shape == (1, side, side, 3)
    assert found.labels.tolist() == [7]
    assert found.pixels[0, :3, :5, 0].min() == 255
    assert found.pixels.sum() == 15 * 255


def test_arrays(tmp_path):
    pixels, labels = np.linspace(-1.0, 1.0, 24).reshape(2, 3, 4), np.array([1, 0])
    np.savez(tmp_path / "both.npz", images=pixels, labels=labels)
    np.save(tmp_path / "images.npy", pixels)
    np.save(tmp_path / "labels.npy", labels)
    np.savez(tmp_path / "labels.npz", classes=labels + 1, labels=labels)
    for found in (
        read_images("arrays", [tmp_path / "both.npz"]),
        read_images("arrays", [tmp_path / "images.npy"], tmp_path / "labels.npy"),
        read_images("arrays", [tmp_path / "images.npy"], tmp_path / "labels.npz"),
    ):
        assert np.array_equal(found.values(), pixels[..., None])
        assert np.array_equal(found.labels, labels)
        assert found.inputs == 12


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_nothing_in_a_pickle_is_executed(tmp_path, protocol):
    trap, file = tmp_path / "trap", tmp_path / "data_batch_1"
    rows = random_pixels(1, 3072)
    text = pickle.dumps({b"labels": [1], b"data": rows, b"more": Harmful(trap)}, protocol=protocol)
    pickle.loads(text)
    assert trap.exists()  # that the trap works
    trap.rmdir()
    file.write_bytes(text if text.startswith(b"\x80") else b"\x80\x00" + text)
    with pytest.raises(InputError, match=r"asks for \w+\.mkdir, which is not imported"):
        read_images("cifar10", [file])
    assert not trap.exists()


def test_a_pickle_cannot_change_a_stand_in(tmp_path):
    """BUILD of a class sets its attributes, where the class has no way of its own to take a state."""
    text = b"\x80\x02cnumpy\ndtype\nN}X\x0c\x00\x00\x00__setstate__K\x01s\x86b."
    (tmp_path / "data_batch_1").write_bytes(text)
    with pytest.raises(InputError, match="cannot be read as a batch"):
        read_images("cifar10", [tmp_path / "data_batch_1"])
    assert read_images(
        "cifar10", [write_cifar10_pickle(tmp_path / "sound", random_pixels(1, 32, 32, 3), [4])]
    ).labels.tolist() == [4]


def refusals(folder):
    """Format, files, and words of the message."""
    pixels, color = random_pixels(2, 4, 4), random_pixels(2, 32, 32, 3)
    mnist = write_idx(folder / "mnist", pixels)
    cut = folder / "cut"
    cut.write_bytes(mnist.read_bytes()[:-1])
    long = folder / "long"
    long.write_bytes(mnist.read_bytes() + b"1")
    short = folder / "short"
    short.write_bytes(mnist.read_bytes()[:9])
    packed = write_idx(folder / "packed.gz", pixels, compressed=True)
    broken = folder / "broken.gz"
    broken.write_bytes(packed.read_bytes()[:20])
    three = write_idx(folder / "three", np.array([1, 2, 3], dtype=np.uint8))
    records = write_cifar10(folder / "records", color, [1, 10])
    archive = folder / "cifar-10-binary.tar.gz"
    archive.write_bytes(gzip.compress(records.read_bytes()))
    ended = folder / "ended.bin"
    ended.write_bytes(write_cifar10(folder / "whole", color, [1, 2]).read_bytes()[:-7])
    stl = write_stl10(folder / "stl", random_pixels(2, 96, 96, 3))
    one = folder / "one"
    one.write_bytes(bytes([1]))
    batch = write_cifar10_pickle(folder / "batch", color, [1, 2])
    half = folder / "half"
    half.write_bytes(batch.read_bytes()[:-100])
    stated = write_cifar10_pickle(folder / "stated", color, [1, -2])
    few = write_cifar10_pickle(folder / "few", color, [1])
    listed = folder / "listed"
    listed.write_bytes(pickle.dumps([1, 2], protocol=2))
    wide = folder / "wide"
    wide.write_bytes(pickle.dumps({b"labels": [1], b"data": random_pixels(1, 3073)}, protocol=2))
    real = folder / "real"
    real.write_bytes(pickle.dumps({b"labels": [1], b"data": np.ones((1, 3072))}, protocol=2))
    objects = folder / "objects.npy"
    np.save(objects, np.array([[[None]]]), allow_pickle=True)
    flat = folder / "flat.npy"
    np.save(flat, np.ones((3, 64)))
    infinite = folder / "infinite.npy"
    np.save(infinite, np.array([np.zeros((2, 2)), np.full((2, 2), np.inf)]))
    unnamed = folder / "unnamed.npz"
    np.savez(unnamed, pictures=np.ones((3, 2, 2)))
    two, first = folder / "two.npy", folder / "first.npy"
    np.save(two, np.ones((2, 3, 3)))
    np.save(first, np.ones((64, 3, 8, 8)))
    text = folder / "text.npy"
    text.write_text("0 1\n")
    damaged = folder / "damaged.npz"
    np.savez_compressed(damaged, images=np.random.default_rng(0).normal(size=(3, 20, 20)))
    body = bytearray(damaged.read_bytes())
    body[600:700] = bytes(100)
    damaged.write_bytes(body)
    return [
        ("mnist", [folder / "none"], None, "no such file"),
        ("mnist", [cut], None, r"holds more .*\(31\)"),
        ("mnist", [long], None, "holds more than these 32"),
        ("mnist", [short], None, "says that it holds"),
        ("mnist", [broken], None, "cannot be read as an idx file"),
        ("mnist", [three], None, "begins with 00 00 08 01.*give images"),
        ("mnist", [mnist], mnist, "give labels"),
        ("mnist", [mnist], three, "three: its labels are uint8 .* a whole number >= 0 for each of the 2 images"),
        ("mnist", [mnist, mnist], None, "2 files of images"),
        ("cifar10", [records], None, "holds the label 10, and labels are from 0 to 9"),
        ("cifar10", [mnist], None, "has 48 bytes, and CIFAR-10 a multiple of 3,073"),
        ("cifar10", [archive], None, "cifar-10-binary.tar.gz: is compressed.*tar -xzf"),
        ("cifar10", [ended], None, "ended.bin: has 6,139 bytes, and CIFAR-10 a multiple of 3,073"),
        ("cifar10", [stl], None, "stl: has 55,296 bytes, and CIFAR-10 a multiple of 3,073"),
        ("stl10", [archive], None, "is compressed"),
        ("stl10", [records], None, "records: has 6,146 bytes, and STL-10 a multiple of 27,648"),
        ("stl10", [stl], one, "one: its labels are int64 of shape .1,.*for each of the 2 images"),
        ("stl10", [stl], stl, "stl: holds the label 0, and labels are from 1"),
        ("cifar10", [half], None, "cannot be read as a batch of CIFAR-10"),
        ("cifar10", [stated], None, "holds the label 255"),
        ("cifar10", [few], None, "no list of 2 labels"),
        ("cifar10", [listed], None, "no dictionary"),
        ("cifar10", [wide], None, r"shape \(1, 3073\)"),
        ("cifar10", [real], None, "numbers of another type"),
        ("stl10", [mnist], None, "STL-10 a multiple of 27,648"),
        ("arrays", [mnist], None, "read from .npz and .npy files"),
        ("arrays", [objects], None, r"objects.npy: cannot be read as images \(it holds objects in place of numbers"),
        ("arrays", [damaged], None, "damaged.npz: cannot be read as images"),
        ("arrays", [first], None, r"3 pixels high with 8 channels.*numpy.moveaxis\(images, 1, -1\)"),
        ("arrays", [two], text, r"text.npy: cannot be read as labels \(it holds objects .* or no arrays at all\)"),
        ("arrays", [two], objects, r"objects.npy: cannot be read as labels"),
        ("arrays", [two], flat, r"flat.npy: its labels are float64 of shape \(3, 64\)"),
        ("arrays", [two], unnamed, "unnamed.npz: cannot be read as labels .it holds pictures, and no 'labels'"),
        ("arrays", [two], mnist, "mnist: labels of arrays are read from .npz and .npy"),
        ("arrays", [flat], None, r"holds float64 of shape \(3, 64\)"),
        ("arrays", [infinite], None, "image 1 holds a pixel that is not finite"),
        ("arrays", [unnamed], None, "holds pictures, and no 'images'"),
    ]


def test_damaged_files_are_refused(tmp_path):
    for format, paths, labels, words in refusals(tmp_path):
        with pytest.raises(InputError, match=words):
            read_images(format, paths, labels)


def test_labels_of_stl10_begin_at_1(tmp_path):
    images = write_stl10(tmp_path / "X", random_pixels(1, 96, 96, 3))
    (tmp_path / "y").write_bytes(bytes([0]))
    with pytest.raises(InputError, match="holds the label 0, and labels are from 1 to 10"):
        read_images("stl10", [images], tmp_path / "y")


@pytest.mark.parametrize("labels", [[0.5, 1.0], [-1, 0], [1]])
def test_labels_are_whole_numbers(labels):
    with pytest.raises(InputError, match="give a whole number >= 0 for each of the 2 images"):
        checked_images("mine", np.zeros((2, 3, 3)), labels)
