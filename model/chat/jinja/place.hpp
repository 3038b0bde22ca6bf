#pragma once

namespace plait::jinja {

/// Where something stands in a template, counted from 1; columns are characters. A line ends where jinja2 ends it.
struct place {
    int line = 1;
    int column = 1;
};

} // namespace plait::jinja
