#include "calibrate/importers/importers.h"

#include <algorithm>
#include <array>

#include "hwspecs/base/file.h"
#include "hwspecs/base/suggest.h"

namespace tbdsim {
namespace {
constexpr std::string_view kOwn = "records";

// clang-format off
constexpr std::array kImporters{
    Importer{"deepbench", "gpu,mode,cuda,precision,M,N,K,transA,transB,time_ms,source", import_deepbench_gemm,
             "cuBLAS matrix products", "Apache-2.0", "baidu-research/DeepBench@da81ba782073"},
    Importer{"deepbench", "gpu,mode,cudnn,precision,pass,N,C,H,W,K,filter_h,filter_w,pad_h,pad_w,stride_h,stride_w,out_h,out_w,time_ms,fwd_algo,source",
             import_deepbench_conv, "cuDNN convolutions, three passes", "Apache-2.0", "baidu-research/DeepBench@da81ba782073"},
    Importer{"deepbench", "gpu,mode,cudnn,precision,cell,pass,hidden,batch,timesteps,time_ms,source", import_deepbench_rnn,
             "cuDNN recurrent layers, three passes", "Apache-2.0", "baidu-research/DeepBench@da81ba782073"},
    Importer{"neusight", "gpu,src,op,b,m,n,k,t_ms,kernel,grid_x,grid_y,grid_z,block_x,sm_count", import_neusight_gemm,
             "PyTorch bmm and linear", "MIT", "sitar-lab/NeuSight@6945927d9afc"},
    Importer{"neusight", "gpu,src,n,c,k,r,h,stride,pad,t_ms,kernel,grid_x,grid_y,grid_z,block_x", import_neusight_conv,
             "PyTorch convolutions, forward", "MIT", "sitar-lab/NeuSight@6945927d9afc"},
    Importer{"neusight", "gpu,src,op,rows,cols,t_ms,kernel", import_neusight_elementwise,
             "PyTorch element-wise operators, softmax, layer norm, forward", "MIT", "sitar-lab/NeuSight@6945927d9afc"},
    Importer{"aiconfigurator", "device,framework,fw_version,kernel_source,dtype,m,n,k,latency_us", import_aiconfigurator_gemm,
             "bf16 linear layers of inference frameworks", "Apache-2.0", "ai-dynamo/aiconfigurator"},
    Importer{"pipeweave", "gpu,precision,M,N,K,avg_us,num_sms,source", import_pipeweave_gemm,
             "fp8 matrix products", "Apache-2.0", "zksainx/pipeweave@55e03178d15a"},
    Importer{"training_kernels", "gpu,op,shape,dtype,time_us,backend,source", import_training_kernels,
             "matrix products of language-model training, three passes and grouped", "Apache-2.0",
             "MooreThreads/SimuMax@4dcaae513ba7"},
    Importer{"attention_kernels",
             "set,gpu,backend,pass,dtype,causal,batch,q_len,kv_len,q_heads,kv_heads,head_dim_qk,head_dim_v,time_us,deterministic,note,source",
             import_attention_kernels, "attention in one kernel, forward and backward", "Apache-2.0, MIT, Apache-2.0",
             "ai-dynamo/aiconfigurator, NVIDIA/cudnn-frontend, MooreThreads/SimuMax@4dcaae513ba7"},
    Importer{"rnn_tables", "gpu,framework,library,cell,layers,bidirectional,batch,seq_len,input,hidden,mode,ms_per_batch,std_ms,n,source",
             import_rnn_tables, "recurrent networks of old frameworks", "none stated",
             "glample/rnn-benchmarks@7b737bf64943, MaximumEntropy/cudnn_rnn_theano_benchmarks@00fd5a42cbd2, "
             "stefbraun/rnn_benchmarks@eb6358a67c94"},
    Importer{"sockeye", "profile,type,name,calls,avg_ms,source", import_sockeye_kernels,
             "nvprof totals of Sockeye iterations, a kernel a row", "Apache-2.0", "UofT-EcoSystem/sockeye@8fe92d29df93"},
    Importer{"tensorflow", "gpu,precision,optimizer,batch,in_size,kernel,c_in,c_out,stride,padding,activation,bias,time_median_ms,time_std_ms,source",
             import_tensorflow_conv, "convolution layers in a TensorFlow session", "Apache-2.0",
             "CDECatapult/ml-performance-prediction@e649f32d354d"},
    Importer{"tensorflow", "gpu,precision,optimizer,batch,dim_in,dim_out,activation,time_median_ms,time_std_ms,source", import_tensorflow_dense,
             "dense layers in a TensorFlow session", "Apache-2.0", "CDECatapult/ml-performance-prediction@e649f32d354d"},
    Importer{"torch7", "gpu,cudnn,precision,model,batch,img_h,img_w,fwd_ms,bwd_ms,n_passes,source", import_torch7_networks,
             "whole networks, forward and backward", "MIT / none stated",
             "jcjohnson/cnn-benchmarks@83d441f85213, dmikushin/cnn-benchmarks@1a67201a6879"},
};
// clang-format on

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    names.emplace_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return names;
}

std::vector<std::string> missing_columns(const CsvReader& csv, std::string_view columns) {
  std::vector<std::string> missing = split(columns);
  std::erase_if(missing, [&](const std::string& name) { return csv.find_column(name).has_value(); });
  return missing;
}

// The importer whose columns the table has. Throws SpecError about the nearest one where none is.
const Importer& recognised(const CsvReader& csv, const std::string& source, const std::string& path) {
  const Importer* nearest = nullptr;
  std::vector<std::string> nearest_missing;
  for (const Importer& importer : importers()) {
    if (!source.empty() && importer.source != source) continue;
    std::vector<std::string> missing = missing_columns(csv, importer.columns);
    if (nearest == nullptr || missing.size() < nearest_missing.size()) {
      nearest = &importer;
      nearest_missing = std::move(missing);
    }
  }
  if (nearest_missing.empty()) return *nearest;
  throw SpecError({std::make_shared<const std::string>(path), 1, 1},
                  "the columns are those of no known table" + (source.empty() ? "" : " of " + source) +
                      "; nearest is " + std::string(nearest->source) + " (" + std::string(nearest->reads) +
                      "), which also has: " + joined(nearest_missing));
}

bool is_own(const CsvReader& csv, const std::string& source) {
  if (!source.empty()) return source == kOwn;
  // No published table has the column of the library, or both of the operation and its seconds.
  return csv.find_column("generation") || (csv.find_column("op") && csv.find_column("time_s"));
}

// Ends at the last line break, so that the cut last row of an interrupted download is not read as a whole
// one.
class WholeRows {
 public:
  explicit WholeRows(std::istream& in) : in_(in), whole_(end_of_whole_lines(in)) {}
  [[nodiscard]] bool at_end() const {
    return whole_ >= 0 &&
           static_cast<std::int64_t>(in_.rdbuf()->pubseekoff(0, std::ios::cur, std::ios::in)) >= whole_;
  }
  [[nodiscard]] bool cut_last_line() const { return whole_ >= 0; }

 private:
  std::istream& in_;
  std::int64_t whole_;
};

constexpr std::string_view kCutLine = ": the last line is unfinished and was left out";

void import_own(const std::string& path, ImportSummary& summary,
                const std::function<void(const Record&)>& on_record) {
  std::ifstream in = open_input(path);
  RecordReader reader(in, path);
  for (Record record; reader.next(record); ++summary.rows, ++summary.records) on_record(record);
  if (reader.cut_last_line()) summary.notes.push_back(path + std::string(kCutLine));
}

void import_rows(CsvReader& csv, const WholeRows& whole, const Importer& importer, ImportSummary& summary,
                 const std::function<void(const Record&)>& on_record,
                 std::map<std::string, std::int64_t>& left_out) {
  std::vector<std::string> fields;
  while (!whole.at_end() && csv.next(fields)) {
    ++summary.rows;
    const ImportedRow row = importer.import_row(TableRow(csv, fields));
    if (!row.left_out.empty()) ++left_out[row.left_out];
    for (const Record& record : row.records) {
      if (const auto why = implausible(record)) throw SpecError(csv.row_mark(), *why);
      on_record(record);
      ++summary.records;
    }
  }
}
}  // namespace

std::span<const Importer> importers() { return kImporters; }

void require_source(const std::string& source) {
  std::vector<std::string> known{std::string(kOwn)};
  for (const Importer& importer : importers()) {
    if (importer.source != known.back()) known.emplace_back(importer.source);
  }
  if (source.empty() || std::find(known.begin(), known.end(), source) != known.end()) return;
  throw UsageError("unknown source " + in_quotes(source) + did_you_mean(source, known) +
                   " ('tbd-calibrate import --list' names them)");
}

ImportSummary import_table(const std::string& path, const std::string& source,
                           const std::function<void(const Record&)>& on_record) {
  require_source(source);
  std::ifstream in = open_input(path);
  const WholeRows whole(in);
  CsvReader csv(in, path);
  ImportSummary summary;
  if (is_own(csv, source)) {
    summary.source = kOwn;
    import_own(path, summary, on_record);
    return summary;
  }
  const Importer& importer = recognised(csv, source, path);
  summary.source = importer.source;
  std::map<std::string, std::int64_t> left_out;
  import_rows(csv, whole, importer, summary, on_record, left_out);
  for (const auto& [reason, rows] : left_out) {
    summary.notes.push_back(path + ": " + std::to_string(rows) + (rows == 1 ? " row" : " rows") +
                            " left out: " + reason);
  }
  if (whole.cut_last_line()) summary.notes.push_back(path + std::string(kCutLine));
  return summary;
}

RecordTable read_any_records(const std::string& path) {
  RecordTable table;
  table.notes = import_table(path, "", [&](const Record& record) { table.records.push_back(record); }).notes;
  return table;
}

}  // namespace tbdsim
