// Lowering of captured operators to kernels, one file for each family. operator_table.cpp names which
// function lowers which operator.
#pragma once

#include "graphs/captured/operator_site.h"
#include "graphs/captured/operator_table.h"

namespace tbdsim {

// convolution.cpp
void lower_convolution(OperatorSite& site);
void lower_convolution_backward(OperatorSite& site);
// True for an image of several channels and pixels whose channels are neighbors in memory.
[[nodiscard]] bool is_channels_last(const CapturedTensor& tensor);

// products.cpp
void lower_mm(OperatorSite& site);
void lower_addmm(OperatorSite& site);
void lower_bmm(OperatorSite& site);
void lower_baddbmm(OperatorSite& site);
void lower_grouped_mm(OperatorSite& site);
void lower_dot(OperatorSite& site);  // of vectors, and of a matrix and a vector

// attention.cpp
void lower_attention(OperatorSite& site);
void lower_attention_backward(OperatorSite& site);

// fourier.cpp
void lower_real_to_complex(OperatorSite& site);
void lower_complex_to_real(OperatorSite& site);
void lower_complex_to_complex(OperatorSite& site);

// linear_algebra.cpp
void lower_cholesky(OperatorSite& site);
void lower_cholesky_solve(OperatorSite& site);
void lower_cholesky_inverse(OperatorSite& site);
void lower_triangular_solve(OperatorSite& site);
void lower_lu(OperatorSite& site);
void lower_lu_and_solve(OperatorSite& site);
void lower_lu_solve(OperatorSite& site);
void lower_qr(OperatorSite& site);
void lower_reflections(OperatorSite& site);
void lower_symmetric_eigenvalues(OperatorSite& site);
void lower_singular_values(OperatorSite& site);

// recurrent.cpp
void lower_recurrent(OperatorSite& site);
void lower_recurrent_backward(OperatorSite& site);
void lower_recurrent_cell(OperatorSite& site);  // a single one, forward and backward

// norms.cpp
void lower_batch_norm(OperatorSite& site);
void lower_batch_norm_backward(OperatorSite& site);
void lower_layer_norm(OperatorSite& site);
void lower_layer_norm_backward(OperatorSite& site);
void lower_group_norm(OperatorSite& site);
void lower_group_norm_backward(OperatorSite& site);

// pooling.cpp
void lower_pool(OperatorSite& site);
void lower_max_pool_backward(OperatorSite& site);
void lower_mean_pool_backward(OperatorSite& site);
void lower_roi_align(OperatorSite& site);
void lower_roi_align_backward(OperatorSite& site);
void lower_resampling(OperatorSite& site);
void lower_resampling_backward(OperatorSite& site);

// softmax.cpp
void lower_softmax(OperatorSite& site);
void lower_softmax_backward(OperatorSite& site);
void lower_class_loss(OperatorSite& site);
void lower_class_loss_backward(OperatorSite& site);
void lower_ctc_loss(OperatorSite& site);  // both passes

// indexing.cpp
void lower_embedding(OperatorSite& site);
void lower_embedding_backward(OperatorSite& site);
void lower_embedding_bag(OperatorSite& site);
void lower_embedding_bag_backward(OperatorSite& site);
void lower_gather(OperatorSite& site);
void lower_scatter(OperatorSite& site);
void lower_selection(OperatorSite& site);  // how many numbers it returns depends on them
void lower_nms(OperatorSite& site);

// elementwise.cpp
void lower_elementwise(OperatorSite& site);
void lower_fill(OperatorSite& site);  // writes what it does not read
void lower_copy(OperatorSite& site);  // also casts and transposes
void lower_reduction(OperatorSite& site);
void lower_view(OperatorSite& site);  // moves nothing
void lower_host_read(OperatorSite& site);
void lower_synchronization(OperatorSite& site);  // the host waits

// joins.cpp
void lower_join(OperatorSite& site);
void lower_pad(OperatorSite& site);
void lower_slice_backward(OperatorSite& site);

// optimizers.cpp
void lower_foreach(OperatorSite& site);
void lower_foreach_norm(OperatorSite& site);
void lower_fused_optimizer(OperatorSite& site);
void lower_unscale(OperatorSite& site);

// fused.cpp
void lower_fused(OperatorSite& site);

// An operator without a row: an element-wise kernel that reads its arguments and writes its outputs.
void lower_unknown(OperatorSite& site, std::string_view name);

}  // namespace tbdsim
