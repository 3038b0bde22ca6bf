// as: kv/example.cpp
#include <plait/engine/engine.hpp> // finds: floor
#include <plait/model/files/gguf.hpp>    // finds: floor
#include "page_table.hpp"          // finds: floor
#include <plait/util/text.hpp>     // finds: floor
#include <plait/tests/support/co_test.hpp> // finds: floor
