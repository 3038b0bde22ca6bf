// as: kv/example.test.cpp
#include <plait/actors/tasks/task.hpp>
#include <plait/kernels/ops.hpp>
#include <plait/kv/page_table.hpp>
#include <plait/tests/support/co_test.hpp>

#include <doctest/doctest.h>
#include <vector>
// #include <plait/engine/engine.hpp>
/*
#include <plait/engine/engine.hpp>
*/
