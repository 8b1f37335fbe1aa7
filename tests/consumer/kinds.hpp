#pragma once

void add_nearest_router();
void add_scaling_expert();
