#pragma once

namespace plait {

class block_pool;
class kv_storage;
class page_table;
class sequence_pages;
struct kv_geometry;
struct memory_plan;

} // namespace plait
