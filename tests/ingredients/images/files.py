"""Tiny files in the published formats of image sets, written from the description of the format."""

import gzip
import pickle
import struct

import numpy as np


def random_pixels(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def write_idx(path, numbers, compressed=False):
    text = struct.pack(f">HBB{numbers.ndim}I", 0, 8, numbers.ndim, *numbers.shape) + numbers.tobytes()
    path.write_bytes(gzip.compress(text) if compressed else text)
    return path


def write_cifar10(path, pixels, labels):
    """Binary version: label, then red, green and blue planes, row by row."""
    with open(path, "wb") as file:
        for image, label in zip(pixels, labels, strict=True):
            file.write(bytes([label]))
            for channel in range(3):
                file.write(b"".join(bytes(row[:, channel].tolist()) for row in image))
    return path


def write_cifar10_pickle(path, pixels, labels, protocol=2):
    rows = np.array([[image[:, :, channel].ravel() for channel in range(3)] for image in pixels])
    batch = {b"batch_label": b"batch 1", b"labels": list(labels), b"data": rows.reshape(len(pixels), -1)}
    path.write_bytes(pickle.dumps(batch, protocol=protocol))
    return path


def write_stl10(path, pixels):
    """Channel by channel, each column by column."""
    with open(path, "wb") as file:
        for image in pixels:
            for channel in range(3):
                for column in range(96):
                    file.write(bytes(image[:, column, channel].tolist()))
    return path
