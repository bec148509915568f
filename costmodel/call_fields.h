// The sizes of a call by name, for profiles that list measured calls: visit(name, field) for each, field a
// double, bool, Phase or KernelKind. A profile may leave out the further ones (visit_further_fields): these
// keep the values of an empty call.
#pragma once

#include "costmodel/call.h"

namespace tbdsim {

template <class Visit>
void visit_fields(GemmCall& c, Visit visit) {
  visit("m", c.m);
  visit("n", c.n);
  visit("k", c.k);
  visit("batch", c.batch);
  visit("transpose_a", c.transpose_a);
  visit("transpose_b", c.transpose_b);
  visit("reads_c", c.reads_c);
  visit("element_bytes", c.element_bytes);
  visit("output_bytes", c.output_bytes);
}

template <class Visit>
void visit_fields(ConvCall& c, Visit visit) {
  visit("phase", c.phase);
  visit("images", c.images);
  visit("channels", c.channels);
  visit("height", c.height);
  visit("width", c.width);
  visit("filters", c.filters);
  visit("out_height", c.out_height);
  visit("out_width", c.out_width);
  visit("kernel_height", c.kernel_height);
  visit("kernel_width", c.kernel_width);
  visit("stride_height", c.stride_height);
  visit("stride_width", c.stride_width);
  visit("pad_height", c.pad_height);
  visit("pad_width", c.pad_width);
  visit("element_bytes", c.element_bytes);
}

template <class Visit>
void visit_fields(RecurrentCall& c, Visit visit) {
  visit("phase", c.phase);
  visit("batch", c.batch);
  visit("steps", c.steps);
  visit("inputs", c.inputs);
  visit("hidden", c.hidden);
  visit("gates", c.gates);
  visit("element_bytes", c.element_bytes);
}

template <class Visit>
void visit_fields(StreamCall& c, Visit visit) {
  visit("kind", c.kind);
  visit("phase", c.phase);
  visit("rows", c.rows);
  visit("columns", c.columns);
  visit("read_bytes", c.read_bytes);
  visit("written_bytes", c.written_bytes);
  visit("flops", c.flops);
}

template <class Visit>
void visit_fields(AttentionCall& c, Visit visit) {
  visit("phase", c.phase);
  visit("heads", c.heads);
  visit("queries", c.queries);
  visit("keys", c.keys);
  visit("features", c.features);
  visit("values", c.values);
  visit("causal", c.causal);
  visit("bytes", c.bytes);
  visit("window", c.window);
  visit("queries_per_key", c.queries_per_key);
  visit("deterministic", c.deterministic);
  visit("element_bytes", c.element_bytes);
}

template <class Visit>
void visit_further_fields(GemmCall& c, Visit visit) {
  visit("grouped", c.grouped);
}

template <class Visit>
void visit_further_fields(ConvCall& c, Visit visit) {
  visit("groups", c.groups);
  visit("dilation_height", c.dilation_height);
  visit("dilation_width", c.dilation_width);
  visit("channels_last", c.channels_last);
  visit("framework_kernel", c.framework_kernel);
}
template <class OtherCall, class Visit>
void visit_further_fields(OtherCall&, Visit) {}

}  // namespace tbdsim
