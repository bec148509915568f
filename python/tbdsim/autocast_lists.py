"""What autocast does to the operators of a CUDA build.

The lists are those of PyTorch's `aten/src/ATen/autocast_mode.h` (`AT_FORALL_...`) and `autocast_mode.cpp`; a test compares them
with the header of the PyTorch that is installed. A name is an operator and, behind a dot, its overload.
"""

from __future__ import annotations


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: Run in the precision of the autocast region: convolutions, matrix products, cells of recurrent layers, attention.
LOWER_PRECISION = _names("""
    _convolution.deprecated _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
    conv_transpose3d.input convolution prelu _prelu_kernel addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm
    baddbmm bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell
    rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention""")

#: Run in fp32: their arguments are cast.
FP32 = _names("""
    acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar
    softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim cosine_similarity
    poisson_nll_loss cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss
    mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
    binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d _upsample_nearest_exact1d
    upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d
    upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa""")

#: Read their argument as it is and write fp32, unless the caller asked for a dtype.
FP32_OUTPUT = _names("""
    prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
    linalg_matrix_norm.str_ord sum sum.dim_IntList""")

#: Norms that write fp32 by way of an overload with a dtype: from, to.
NORM_WITH_DTYPE = (
    ("norm.Scalar", "norm.ScalarOpt_dtype"),
    ("norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype"),
    ("norm.names_ScalarOpt_dim", "norm.names_ScalarOpt_dim_dtype"),
)

#: Run in the widest dtype among their arguments.
WIDEST = _names("""
    addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add""")

#: Refused, for fp16 loses their result.
REFUSED = ("binary_cross_entropy",)
