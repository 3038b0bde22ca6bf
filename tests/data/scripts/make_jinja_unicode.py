#!/usr/bin/env python3
"""Writes model/chat/jinja/unicode_tables.cpp: what Python's str methods know about Unicode, as packed ranges.

Run with the Python whose unicodedata the goldens were made with: make_jinja_unicode.py > model/chat/jinja/unicode_tables.cpp
"""
import sys
import unicodedata

LAST = 0x10FFFF
points = [c for c in range(LAST + 1) if not 0xD800 <= c <= 0xDFFF]


def ranges(predicate):
    out = []
    for c in points:
        if not predicate(chr(c)):
            continue
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def simple_mapping(function):
    """Ranges (first, last, stride, delta) of single code point mappings; longer ones come apart as special."""
    runs, special = [], []
    for c in points:
        mapped = function(chr(c))
        if mapped == chr(c):
            continue
        if len(mapped) > 1:
            special.append((c, mapped))
            continue
        delta = ord(mapped) - c
        if runs:
            first, last, stride, d = runs[-1]
            gap = c - last
            if d == delta and gap <= 2 and (first == last or gap == stride):
                runs[-1] = (first, c, gap, d)
                continue
        runs.append((c, c, 1, delta))
    return runs, special


def emit(name, type_name, rows):
    print(f"constexpr {type_name} {name}[] = {{")
    line = "   "
    for row in rows:
        if len(line) + len(row) + 2 > 118:
            print(line)
            line = "   "
        line += " " + row + ","
    print(line)
    print("};")
    print()


def emit_ranges(name, predicate):
    emit(name, "range", ["{%#x, %#x}" % tuple(r) for r in ranges(predicate)])


def quoted(s):
    return '"' + "".join("\\x%02x" % b for b in s.encode()) + '"'


print(f"// Made by tests/data/scripts/make_jinja_unicode.py from Unicode {unicodedata.unidata_version}. Do not edit.")
print("// clang-format off")
print("#include <plait/model/chat/jinja/unicode.hpp>")
print()
print("namespace plait::jinja::unicode {")
print()
print("namespace {")
print()
emit_ranges("alphabetic_ranges", str.isalpha)
emit_ranges("unprintable_ranges", lambda c: not c.isprintable())
emit_ranges("space_ranges", str.isspace)
emit_ranges("decimal_ranges", str.isdecimal)
emit_ranges("digit_ranges", lambda c: c.isdigit() and not c.isdecimal())
emit_ranges("numeric_ranges", lambda c: c.isnumeric() and not c.isdigit())
# Cased letters: upper() and lower() tell most of them; these ranges hold the rest of what islower and isupper say.
emit_ranges("lower_ranges", str.islower)
emit_ranges("upper_ranges", str.isupper)
emit_ranges("title_ranges", lambda c: unicodedata.category(c) == "Lt")
# Case_Ignorable, seen through the rule for a final sigma.
emit_ranges("ignorable_ranges", lambda c: ("A" + c + "\u03a3").lower()[-1] == "\u03c2" and
            (c + "\u03a3").lower()[-1] == "\u03c3")
for name, function in (("lower", str.lower), ("upper", str.upper), ("title", str.title)):
    runs, special = simple_mapping(function)
    emit(f"to_{name}_runs", "run", ["{%#x, %#x, %d, %d}" % r for r in runs])
    emit(f"to_{name}_special", "expansion", ["{%#x, %s}" % (c, quoted(m)) for c, m in special])
print("} // namespace")
print()
for name in ("alphabetic", "unprintable", "space", "decimal", "digit", "numeric", "lower", "upper", "title", "ignorable"):
    print(f"std::span<range const> {name}() noexcept {{ return {name}_ranges; }}")
for name in ("lower", "upper", "title"):
    print(f"case_table to_{name}() noexcept {{ return {{to_{name}_runs, to_{name}_special}}; }}")
print()
print("} // namespace plait::jinja::unicode")
