#pragma once

#include <cstdint>
#include <span>

/// The Unicode facts behind Python's str methods, as sorted ranges; text.cpp searches them.
namespace plait::jinja::unicode {

struct range {
    std::uint32_t first;
    std::uint32_t last;
};

/// Code points first, first + stride, ..., last map to themselves plus delta.
struct run {
    std::uint32_t first;
    std::uint32_t last;
    std::uint32_t stride;
    std::int32_t delta;
};

/// A code point whose mapping is longer than one.
struct expansion {
    std::uint32_t point;
    char const* utf8;
};

struct case_table {
    std::span<run const> runs;
    std::span<expansion const> special;
};

std::span<range const> alphabetic() noexcept;
std::span<range const> unprintable() noexcept;
std::span<range const> space() noexcept;
std::span<range const> decimal() noexcept;
std::span<range const> digit() noexcept;   ///< digits that are not decimal: superscripts, circled ones
std::span<range const> numeric() noexcept; ///< numbers that are not digits: fractions, Roman numerals
std::span<range const> lower() noexcept;
std::span<range const> upper() noexcept;
std::span<range const> title() noexcept;     ///< titlecase digraphs
std::span<range const> ignorable() noexcept; ///< looked through when a sigma asks whether it ends a word
case_table to_lower() noexcept;
case_table to_upper() noexcept;
case_table to_title() noexcept;

} // namespace plait::jinja::unicode
