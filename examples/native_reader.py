"""Reads a native file (docs/reference/layout.md) with h5py alone: all tables, columns and keywords, exactly.

tables(file), documents(group), cells(group, document), keywords(document)
"""
import json
import struct

import h5py
import numpy as np

ARRAYS = {"bool": "?", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "int64": "i8",
          "float": "f4", "double": "f8", "complex": "c8", "dcomplex": "c16", "string": object}


def tables(file):
    """{name: group} of all tables: "." is the main one, "ANTENNA" a subtable, "A/B" one of its own."""
    found = {}

    def visit(path, item):
        if "table" in item.attrs:
            found[json.loads(item.attrs["table"])["name"]] = file[path]

    file["_ctds"].visititems(visit)
    return found


def documents(group):
    """What `_ctds` says of a table: its own document, and {name: document} of its columns in their order."""
    attributes = group.file["_ctds" + group.name].attrs
    columns = [json.loads(text) for name, text in attributes.items() if name.startswith("column.")]
    columns.sort(key=lambda column: column["position"])
    return json.loads(attributes["table"]), {column["name"]: column for column in columns}


def read(dataset):
    return dataset.asstr()[...] if h5py.check_string_dtype(dataset.dtype) else dataset[...]


def strings(group, column, values):
    """Bytes of strings that are not UTF-8, or have a NUL, in place of the text that shows them."""
    kept = group.file["_ctds" + group.name].get("strings." + column["link"])
    if kept is not None:
        flat, (index, offset, data) = values.reshape(-1), (kept[name][...] for name in ("index", "offset", "bytes"))
        for place, start, end in zip(index, offset, offset[1:]):
            flat[place] = data[start:end].tobytes()
    return values


def cells(group, column):
    """The cells of a column, one of each row: arrays in the order (channel, correlation), None where undefined."""
    if column["form"] == "missing":
        raise ValueError(column["reason"])
    item = group[column["link"]]
    if column["form"] in ("dense", "record"):
        values = strings(group, column, read(item))
        if column["form"] == "record":
            return [record(json.loads(text)) if text else None for text in values]
        defined = group[column["defined"]][...] if column.get("defined") else np.ones(len(values), bool)
        return [value if known else None for value, known in zip(values, defined)]
    if column["form"] == "ragged":
        values = strings(group, column, read(item["values"]))
        offset, shape, defined = (item[name][...] for name in ("offset", "shape", "defined"))
        return [values[start:end].reshape(axes[axes >= 0]) if known else None
                for start, end, axes, known in zip(offset, offset[1:], shape, defined)]
    cubes = []
    for grid in column.get("grids", []):    # by the axes of MSv4: time, baseline, frequency, polarization
        values = read(group.file[grid["path"]])
        values = values.reshape(-1, *values.shape[2:])
        cubes.append(values[:, ::-1] if grid.get("reversed") else values)
    while "cube%d" % len(cubes) in item:
        cubes.append(read(item["cube%d" % len(cubes)]))
    return [cubes[cube][place] if cube >= 0 else None for cube, place in zip(item["row_cube"][...], item["row_index"][...])]


def keywords(document):
    """The keywords of a table or column; those that lead to subtables are ("table", name)."""
    return record(document["keywords"])


def record(fields):
    return {name: value(field["type"], field) for name, field in fields}


def value(kind, field):
    found = field["value"]
    if kind == "record":
        return record(found)
    if kind == "table":
        return "table", found
    if "shape" in field:
        array = np.empty(len(found), ARRAYS[kind])
        array[:] = [scalar(kind, element) for element in found]
        return array.reshape(field["shape"] or len(found))
    return scalar(kind, found)


def scalar(kind, found):
    if kind in ("complex", "dcomplex"):
        return complex(*(scalar("float" if kind == "complex" else "double", part) for part in found))
    if kind in ("float", "double") and isinstance(found, str):    # the bits of what JSON has no number for
        return struct.unpack(">f" if kind == "float" else ">d", int(found, 16).to_bytes(4 if kind == "float" else 8, "big"))[0]
    if kind == "string" and isinstance(found, dict):
        return bytes.fromhex(found["bytes"])
    return found


if __name__ == "__main__":
    import sys
    with h5py.File(sys.argv[1]) as file:
        for name, group in tables(file).items():
            document, columns = documents(group)
            print(name, keywords(document))
            for column in columns.values():
                print(" ", column["name"], cells(group, column)[:1])
