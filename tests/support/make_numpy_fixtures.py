#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes numpy_fixtures.json: files as NumPy writes them, in hexadecimal, with what tests/host/formats/unit_arrays.cpp
must read from them, or why it must refuse them. Needs NumPy and nothing else:

    /usr/bin/python3 tests/support/make_numpy_fixtures.py

A case has `name`, `file` (its name), `bytes`, and either `arrays` (name -> `type` as NumPy's letter and number of
bytes, `shape`, `values` row by row, or the one that all are; booleans are u1) or `refused` (a part of the message).
"""

import io
import json
import os
import pathlib
import pickle
import warnings
import zipfile

import numpy
from numpy.lib import format as npy_format

warnings.simplefilter("ignore")  # of format versions 2 and 3, and of doubled names, which are meant


def saved(array, version=None):
    file = io.BytesIO()
    npy_format.write_array(file, numpy.asanyarray(array), version=version)
    return file.getvalue()


def zipped(arrays, compressed=False):
    file = io.BytesIO()
    (numpy.savez_compressed if compressed else numpy.savez)(file, **arrays)
    return file.getvalue()


def packed(members, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return file.getvalue()


def with_header(header, values, version=1):
    """A file with a header of our own, for what other writers and older versions wrote."""
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + values


def described(array):
    array = numpy.asanyarray(array)
    kind = "u" if array.dtype.kind == "b" else array.dtype.kind
    # float() of a float32 is exact, and its text reads back to the same double.
    values = [float(x) if kind == "f" else int(x) for x in array.ravel(order="C")]
    if len(values) > 1000 and len(set(values)) == 1:
        values = values[:1]
    size = 4 if (kind, array.dtype.itemsize) == ("f", 2) else array.dtype.itemsize  # halves are read as float32
    return dict(type=f"{kind}{size}", shape=list(array.shape), values=values)


def limits(dtype):
    dtype = numpy.dtype(dtype)
    if dtype.kind == "b":
        return numpy.array([[True, False, True], [False, True, True]])
    info = numpy.finfo(dtype) if dtype.kind == "f" else numpy.iinfo(dtype)
    small = info.smallest_subnormal if dtype.kind == "f" else 1
    return numpy.array([[info.min, info.max, 0], [small, 5, 100]], dtype=dtype)


def single_arrays():
    for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"):
        yield code, limits(code), None
        if code[1] != "1":
            yield f"{code}, big endian", limits(code).astype(">" + code), None
    box = numpy.arange(24).reshape(2, 3, 4)
    for code in ("<f4", ">f8", ">f2", "<u1", ">i2", "|b1"):
        values = box % 3 == 0 if code == "|b1" else box
        yield f"columns first, {code}", numpy.asfortranarray(values).astype(code), None
    yield "columns first, five indices", numpy.asfortranarray(numpy.arange(72.0).reshape(2, 3, 1, 4, 3)), None
    yield "columns first, empty", numpy.asfortranarray(numpy.zeros((2, 0, 3))), None
    yield "a view with gaps", numpy.arange(40.0).reshape(5, 8)[::2, 1::3], None
    yield "a number", numpy.float64(2.5), None
    yield "an integer", numpy.int32(-3), None
    yield "one entry", numpy.array([7.5]), None
    yield "empty", numpy.zeros(0, dtype="f4"), None
    for version in ((1, 0), (2, 0), (3, 0)):
        yield f"version {version[0]}", numpy.array([[1.5, -2.5]]), version


def refused_arrays():
    yield "objects", numpy.array([1, "x", None], dtype=object), "holds Python objects"
    yield "texts", numpy.array(["a", "bc"]), "holds texts"
    yield "bytes", numpy.array([b"a", b"bc"]), "holds texts"
    yield "complex", numpy.array([1 + 2j]), "holds complex numbers"
    yield "records", numpy.zeros(2, dtype=[("x", "f8"), ("y", "i4")]), "holds records"
    yield "raw", numpy.zeros(2, dtype="V3"), "holds records"
    yield "dates", numpy.array(["2019-01-01"], dtype="M8[D]"), "holds dates or times"
    yield "long double", numpy.array([1.5], dtype="longdouble"), "holds numbers of more than 64 bits"


def cases():
    for name, array, version in single_arrays():
        yield dict(name=name, file="x.npy", bytes=saved(array, version), arrays=dict(x=described(array)))
    x = numpy.array([1.0, 2.0], dtype="<f4")
    for name, header in (
            ("other order and quotes", '{"shape":(2,),"fortran_order":False,"descr":"<f4"}'),
            ("Python 2", "{'descr': '<f4', 'fortran_order': False, 'shape': (2L,), }     ")):
        yield dict(name=name, file="x.npy", bytes=with_header(header, x.tobytes()), arrays=dict(x=described(x)))
    for name, array, message in refused_arrays():
        yield dict(name=name, file="x.npy", bytes=saved(array), refused=message)
    yield dict(name="pickle", file="x.npy", bytes=pickle.dumps([1.0]), refused="does not begin as one")
    yield dict(name="two arrays", file="x.npy", bytes=saved(x) + saved(x), refused="136 bytes follow the last number")
    yield dict(name="zip as npy", file="x.npy", bytes=zipped(dict(x=x)), refused="does not begin as one")

    several = {"a": limits("f4"), "b": numpy.asfortranarray(limits(">i8")), "K": numpy.int64(3),
               "group/µ": limits("u1")}
    for name, content in (
            ("stored", zipped(several)), ("deflated", zipped(several, compressed=True)),
            ("without zip64", packed([(f"{key}.npy", saved(value)) for key, value in several.items()]))):
        yield dict(name=name, file="x.npz", bytes=content, arrays={k: described(v) for k, v in several.items()})
    zeros = numpy.zeros((64, 512), dtype="f4")
    yield dict(name="strongly deflated", file="x.npz", bytes=zipped(dict(z=zeros), compressed=True),
               arrays=dict(z=described(zeros)))
    # A mixture, in types and orders of all sorts; `json` holds the same numbers.
    mixture = dict(means=numpy.asfortranarray([[0.1, -0.2], [6.3, 5.9]]).astype(">f8"),
                   weights=numpy.array([1, 3], dtype="u1"), sds=numpy.array([1, 0.5], dtype="f4"))
    yield dict(name="mixture", file="mixture.npz", bytes=zipped(mixture, compressed=True),
               arrays={k: described(v) for k, v in mixture.items()},
               json=json.dumps({k: v.tolist() for k, v in mixture.items()}))

    yield dict(name="no arrays", file="x.npz", bytes=zipped({}), refused="holds no arrays")
    yield dict(name="no archive", file="x.npz", bytes=saved(x), refused="Not a zip archive")
    yield dict(name="nothing", file="x.npz", bytes=b"", refused="x.npz")
    yield dict(name="other content", file="x.npz", bytes=packed([("x.npy", saved(x)), ("read\nme", b"?")]),
               refused='holds "read\\nme" (only arrays')
    yield dict(name="texts inside", file="x.npz", bytes=zipped(dict(names=numpy.array(["a"]))),
               refused='"names" in ')
    yield dict(name="doubled", file="x.npz", bytes=packed([("x.npy", saved(x)), ("x.npy", saved(x))]),
               refused='gives "x" twice')
    yield dict(name="bzip2", file="x.npz", bytes=packed([("x.npy", saved(x))], zipfile.ZIP_BZIP2),
               refused="compressed with method 12")


def main():
    target = pathlib.Path(__file__).with_name("numpy_fixtures.json")
    lines = ",\n    ".join(json.dumps(dict(case, bytes=case["bytes"].hex())) for case in cases())
    temporary = target.with_suffix(".tmp")
    temporary.write_text(f'{{"numpy": "{numpy.__version__}",\n  "cases": [\n    {lines}\n]}}\n')
    os.replace(temporary, target)


if __name__ == "__main__":
    main()
