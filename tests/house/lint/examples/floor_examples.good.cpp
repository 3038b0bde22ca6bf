// as: apps/examples/embed/main.cpp
#include "service.hpp"

#include <plait/engine/engine.hpp>
