// cublasGemmEx, cublasGemmStridedBatchedEx and the first choice of cublasLt's heuristic.
#include <algorithm>

#include <cublasLt.h>

#include "calibrate/measure/ops/ops.h"
#include "calibrate/measure/ops/timing.h"

namespace tbdsim::measure {
namespace {
constexpr std::size_t kLtWorkspace = std::size_t{64} << 20U;

cudaDataType_t data_type(Type type) {
  return type == Type::f16 ? CUDA_R_16F : type == Type::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// fp32 in full precision; tf32 only where requested; half types accumulate in fp32.
cublasComputeType_t compute_type(const std::string& precision) {
  return precision == "tf32" ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

struct Matrices {
  Type type;
  cublasOperation_t op_a, op_b;
  int m, n, k, batch;
  int lda, ldb, ldc;  // column-major, tight
  DeviceBuffer a, b, c;
};

Matrices matrices(Session& session, const PlanPoint& point) {
  const RecordShape& s = point.shape;
  const Type type = type_of(point.precision);
  const std::int64_t batch = std::max<std::int64_t>(s.batch, 1);
  const bool a_transposed = point.layout[0] == 'T';
  const bool b_transposed = point.layout[1] == 'T';
  return {.type = type,
          .op_a = a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
          .op_b = b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
          .m = static_cast<int>(s.m),
          .n = static_cast<int>(s.n),
          .k = static_cast<int>(s.k),
          .batch = static_cast<int>(batch),
          .lda = static_cast<int>(a_transposed ? s.k : s.m),
          .ldb = static_cast<int>(b_transposed ? s.n : s.k),
          .ldc = static_cast<int>(s.m),
          .a = session.random(type, batch * s.m * s.k),
          .b = session.random(type, batch * s.k * s.n),
          .c = session.random(type, batch * s.m * s.n)};
}

Record run_cublas(Session& session, const PlanPoint& point, const Matrices& x) {
  const float alpha = 1;
  const float beta = 0;
  const cudaDataType_t data = data_type(x.type);
  const cublasComputeType_t compute = compute_type(point.precision);
  cublasHandle_t blas = session.blas();
  Record record = record_of(point);
  record.algorithm = "cublas";
  const auto stride = [](std::int64_t rows, std::int64_t cols) {
    return static_cast<long long>(rows * cols);
  };
  time_call(session, record, [&] {
    if (point.op == "gemm") {
      check(cublasGemmEx(blas, x.op_a, x.op_b, x.m, x.n, x.k, &alpha, x.a.get(), data, x.lda, x.b.get(), data,
                         x.ldb, &beta, x.c.get(), data, x.ldc, compute, CUBLAS_GEMM_DEFAULT),
            "cublasGemmEx");
    } else {
      check(cublasGemmStridedBatchedEx(blas, x.op_a, x.op_b, x.m, x.n, x.k, &alpha, x.a.get(), data, x.lda,
                                       stride(x.m, x.k), x.b.get(), data, x.ldb, stride(x.k, x.n), &beta,
                                       x.c.get(), data, x.ldc, stride(x.m, x.n), x.batch, compute,
                                       CUBLAS_GEMM_DEFAULT),
            "cublasGemmStridedBatchedEx");
    }
  });
  return record;
}

using LtMatmul = Owned<cublasLtMatmulDesc_t, nullptr, cublasLtMatmulDescDestroy>;
using LtLayout = Owned<cublasLtMatrixLayout_t, nullptr, cublasLtMatrixLayoutDestroy>;
using LtPreference = Owned<cublasLtMatmulPreference_t, nullptr, cublasLtMatmulPreferenceDestroy>;

LtLayout lt_layout(cudaDataType_t data, int rows, int cols, int ld) {
  cublasLtMatrixLayout_t layout = nullptr;
  check(cublasLtMatrixLayoutCreate(&layout, data, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(cols), ld),
        "cublasLtMatrixLayoutCreate");
  return LtLayout(layout);
}

LtMatmul lt_matmul(const Matrices& x, cublasComputeType_t compute) {
  cublasLtMatmulDesc_t matmul = nullptr;
  check(cublasLtMatmulDescCreate(&matmul, compute, CUDA_R_32F), "cublasLtMatmulDescCreate");
  LtMatmul owned(matmul);
  check(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &x.op_a, sizeof x.op_a),
        "transpose of A");
  check(cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSB, &x.op_b, sizeof x.op_b),
        "transpose of B");
  return owned;
}

LtPreference lt_preference() {
  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  LtPreference owned(preference);
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &kLtWorkspace, sizeof kLtWorkspace),
        "workspace preference");
  return owned;
}

Record run_lt(Session& session, const PlanPoint& point, const Matrices& x) {
  const cudaDataType_t data = data_type(x.type);
  const LtMatmul matmul = lt_matmul(x, compute_type(point.precision));
  const LtLayout a = lt_layout(data, x.lda, x.op_a == CUBLAS_OP_N ? x.k : x.m, x.lda);
  const LtLayout b = lt_layout(data, x.ldb, x.op_b == CUBLAS_OP_N ? x.n : x.k, x.ldb);
  const LtLayout c = lt_layout(data, x.m, x.n, x.ldc);
  const LtPreference preference = lt_preference();
  // A cuBLAS handle is a cublasLt handle too (cuBLAS manual, cublasLtHandle_t).
  auto* const lt = reinterpret_cast<cublasLtHandle_t>(session.blas());
  cublasLtMatmulHeuristicResult_t choice{};
  int choices = 0;
  check(cublasLtMatmulAlgoGetHeuristic(lt, matmul.get(), a.get(), b.get(), c.get(), c.get(), preference.get(),
                                       1, &choice, &choices),
        "cublasLtMatmulAlgoGetHeuristic");
  if (choices == 0) throw PointError("cublasLt has no algorithm");
  const DeviceBuffer workspace(choice.workspaceSize);
  const float alpha = 1;
  const float beta = 0;
  Record record = record_of(point);
  record.algorithm = "lt";
  record.workspace_bytes = static_cast<std::int64_t>(choice.workspaceSize);
  time_call(session, record, [&] {
    check(cublasLtMatmul(lt, matmul.get(), &alpha, x.a.get(), a.get(), x.b.get(), b.get(), &beta, x.c.get(),
                         c.get(), x.c.get(), c.get(), &choice.algo, workspace.get(), choice.workspaceSize,
                         session.stream()),
          "cublasLtMatmul");
  });
  return record;
}
}  // namespace

std::vector<Record> run_gemm(Session& session, const PlanPoint& point) {
  const Matrices x = matrices(session, point);
  return those_that_work(
      {[&] { return run_cublas(session, point, x); }, [&] { return run_lt(session, point, x); }});
}

std::vector<Record> run_batched_gemm(Session& session, const PlanPoint& point) {
  return {run_cublas(session, point, matrices(session, point))};
}

}  // namespace tbdsim::measure
