"""Comparing files of vectors."""

import hashlib

import numpy


def load(path):
    return numpy.load(path, mmap_mode="r")


def cosines(ours, theirs):
    """The cosine of each row with its counterpart, in float64."""
    a, b = ours.astype(numpy.float64), theirs.astype(numpy.float64)
    return (a * b).sum(1) / (numpy.linalg.norm(a, axis=1) * numpy.linalg.norm(b, axis=1))


def differing_rows(ours, theirs):
    """How many rows are not the same bits; every row when the shapes disagree."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return max(len(ours), len(theirs))
    return int((ours.view(numpy.uint32) != theirs.view(numpy.uint32)).any(axis=1).sum())


def file_hash(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
