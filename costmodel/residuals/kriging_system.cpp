#include "costmodel/residuals/kriging_system.h"

#include <Eigen/Cholesky>

namespace tbdsim {

KrigingFactors factorize(const KrigingSystem& system) {
  constexpr int kSize = static_cast<int>(kMaxNeighbors);
  using Matrix = Eigen::Matrix<double, kSize, kSize, Eigen::RowMajor>;
  using Values = Eigen::Matrix<double, kSize, 1>;
  const Eigen::Map<const Matrix> covariance(system.covariance.front().data());
  const Eigen::Map<const Values> residuals(system.residuals.data());
  KrigingFactors factors;
  Eigen::Map<Matrix> inverse_root(factors.inverse_root.front().data());
  Eigen::Map<Values> weights(factors.weights.data());
  const Eigen::LLT<Matrix> cholesky(covariance);
  inverse_root.setIdentity();
  cholesky.matrixL().solveInPlace(inverse_root);
  weights = cholesky.solve(residuals);
  return factors;
}

}  // namespace tbdsim
