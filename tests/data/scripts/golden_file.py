"""The container of plait's numerical reference files: named arrays in one little-endian binary file.

Layout (all integers unsigned, little-endian):

    8 bytes   the letters "plaitgld"
    u32       version, 1
    u32       number of arrays, n
    n entries:
        u32        length of the name in bytes, then the name (UTF-8, no terminator)
        u32        type: 0 = u8, 1 = i32, 2 = f32, 3 = f64
        u32        rank r, 0 to 4, then r times u64: the lengths, slowest first
        u64        offset of the first element from the start of the file, a multiple of 64
    the elements, row-major

Needs: numpy.
"""

import json
import os
import struct

import numpy as np

MAGIC = b"plaitgld"
VERSION = 1
TYPES = [np.dtype("<u1"), np.dtype("<i4"), np.dtype("<f4"), np.dtype("<f8")]
ALIGNMENT = 64


def _up(n):
    return (n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def write(path, arrays):
    """Writes `arrays`, a dict of name -> numpy array, in the dict's order. Returns the bytes written."""
    arrays = {name: np.ascontiguousarray(a).reshape(np.shape(a)) for name, a in arrays.items()}
    head = 16 + sum(4 + len(name.encode()) + 8 + 8 * a.ndim + 8 for name, a in arrays.items())
    offset = _up(head)
    entries, places = [], []
    for name, a in arrays.items():
        code = next(i for i, t in enumerate(TYPES) if t == a.dtype.newbyteorder("<"))
        raw = name.encode()
        entries.append(struct.pack("<I", len(raw)) + raw + struct.pack("<II", code, a.ndim)
                       + struct.pack("<%dQ" % a.ndim, *a.shape) + struct.pack("<Q", offset))
        places.append(offset)
        offset = _up(offset + a.nbytes)
    with open(path, "wb") as f:
        f.write(MAGIC + struct.pack("<II", VERSION, len(arrays)) + b"".join(entries))
        for place, (name, a) in zip(places, arrays.items()):
            f.write(b"\0" * (place - f.tell()))
            f.write(a.astype(TYPES[[t.kind + str(t.itemsize) for t in TYPES].index(
                a.dtype.kind + str(a.dtype.itemsize))]).tobytes())
        return f.tell()


def write_beside(folder, name, arrays, index):
    """NAME.golden, and NAME.json, which says the same for people: `index` with the arrays' types and shapes."""
    size = write(os.path.join(folder, name + ".golden"), arrays)
    index["arrays"] = {k: {"type": a.dtype.name, "shape": list(a.shape)} for k, a in arrays.items()}
    with open(os.path.join(folder, name + ".json"), "w") as f:
        json.dump(index, f, ensure_ascii=False, indent=1)
        f.write("\n")
    print("%d bytes" % size)


def read(path):
    """The dict of name -> numpy array that `write` was given."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:8] != MAGIC:
        raise ValueError("%s: not a plait golden file" % path)
    version, count = struct.unpack_from("<II", data, 8)
    if version != VERSION:
        raise ValueError("%s: version %d, expected %d" % (path, version, VERSION))
    at, arrays = 16, {}
    for _ in range(count):
        (length,) = struct.unpack_from("<I", data, at)
        name = data[at + 4:at + 4 + length].decode()
        at += 4 + length
        code, rank = struct.unpack_from("<II", data, at)
        shape = struct.unpack_from("<%dQ" % rank, data, at + 8)
        (offset,) = struct.unpack_from("<Q", data, at + 8 + 8 * rank)
        at += 16 + 8 * rank
        n = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(data, TYPES[code], n, offset).reshape(shape)
    return arrays
