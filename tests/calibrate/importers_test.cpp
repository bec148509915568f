#include "calibrate/importers/importers.h"

#include <sstream>

#include <gmock/gmock.h>

#include "tests/support/temp_dir.h"

namespace tbdsim {
namespace {
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kGemm = "gpu,mode,cuda,precision,M,N,K,transA,transB,time_ms,tflops_recomputed,source\n";
const std::string kConv =
    "gpu,mode,cuda,cudnn,precision,pass,N,C,H,W,K,filter_h,filter_w,pad_h,pad_w,stride_h,stride_w,out_h,out_"
    "w,"
    "time_ms,fwd_algo,source\n";
const std::string kRnn = "gpu,mode,cuda,cudnn,precision,cell,pass,hidden,batch,timesteps,time_ms,source\n";
const std::string kNeusightGemm = "gpu,src,op,b,m,n,k,t_ms,kernel,grid_x,grid_y,grid_z,block_x,sm_count\n";
const std::string kNeusightConv = "gpu,src,n,c,k,r,h,stride,pad,t_ms,kernel,grid_x,grid_y,grid_z,block_x\n";
const std::string kNeusightOps = "gpu,src,op,rows,cols,t_ms,kernel\n";
const std::string kAiconfigurator =
    "system,device,framework,fw_version,kernel_source,dtype,m,n,k,latency_us\n";

class Importers : public testing::Test {
 protected:
  RecordTable read(const std::string& csv) { return read_any_records(dir_.write("t.csv", csv).string()); }

  Record only(const std::string& csv) {
    const RecordTable table = read(csv);
    EXPECT_EQ(table.records.size(), 1u);
    EXPECT_THAT(table.notes, IsEmpty());
    return table.records.empty() ? Record{} : table.records[0];
  }

  std::string error_of(const std::string& csv) {
    try {
      static_cast<void>(read(csv));
    } catch (const SpecError& wrong) {
      const std::string text = wrong.what();
      return text.substr(text.rfind('/') + 1);
    }
    return "no error";
  }

  test::TempDir dir_;
};

TEST_F(Importers, DeepBenchGemm) {
  const Record r = only(kGemm + "NV_TitanXp,train,8.0.88,fp32,1760,16,1024,N,T,0.050,1.7,sheet!4\n");
  EXPECT_EQ(r.gpu, "titanxp");
  EXPECT_EQ(r.generation, "cublas8");
  EXPECT_EQ(r.precision, "fp32");
  EXPECT_EQ(r.op, "gemm");
  EXPECT_EQ(to_text(r.shape), "m=1760 n=16 k=1024");
  EXPECT_EQ(r.layout, "NT");
  EXPECT_EQ(r.timer, "host");
  EXPECT_EQ(r.cache, "hot");
  EXPECT_EQ(r.source, "sheet!4");
  EXPECT_DOUBLE_EQ(r.time_s, 50.5e-6);  // cut to whole microseconds: the middle of 50 to 51
  EXPECT_NEAR(r.spread * r.time_s, 0.288675e-6, 1e-12);
}

TEST_F(Importers, DeepBenchLeavesOutWhatTheRecordCannotHold) {
  const RecordTable table =
      read(kGemm + "NV_P100,train,8.0.88,fp16_storage_fp32_math,1760,16,1024,N,T,0.050,1.7,s\n" +
           "NV_T4,inference,10.1.243,int8,1760,16,1024,N,T,0.050,1.7,s\n" +
           "NV_T4,train,10.1.243,fp16_tensorcore_fp32_acc,1760,16,1024,T,N,0.050,1.7,s\n");
  ASSERT_EQ(table.records.size(), 1u);
  EXPECT_EQ(table.records[0].precision, "fp16");
  EXPECT_EQ(table.records[0].generation, "cublas10");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("t.csv: 1 row left out: fp16_storage_fp32_math"),
                                       HasSubstr("inference")));
}

TEST_F(Importers, DeepBenchConvolution) {
  const std::string row = "NV_V100,train,10.1,7.6.2.24,fp32,bwd_filter,4,1,161,700,32,5,20,0,0,2,2,";
  const Record r = only(kConv + row + "79,341,0.257,,s\n");
  EXPECT_EQ(r.gpu, "v100_sxm2_16gb");
  EXPECT_EQ(r.generation, "cudnn7");
  EXPECT_EQ(r.phase, "backward_weights");
  EXPECT_EQ(to_text(r.shape),
            "batch=4 channels=1 height=161 width=700 filters=32 filter_h=5 filter_w=20 stride_h=2 stride_w=2 "
            "dilation_h=1 dilation_w=1 groups=1");
  // Filter sides swapped: the output does not follow.
  EXPECT_EQ(
      error_of(kConv + "NV_V100,train,10.1,7.6.2.24,fp32,fwd,4,1,161,700,32,20,5,0,0,2,2,79,341,1,,s\n"),
      "t.csv:2:1: out_h x out_w is 79 x 341; expected 71 x 348 from the other columns: is the filter "
      "height x width?");
  EXPECT_THAT(error_of(kConv + row + "78.5,341,0.257,,s\n"), HasSubstr("column 'out_h' holds '78.5'"));
}

TEST_F(Importers, DeepBenchRecurrentLayersSkipTheirInput) {
  const Record r = only(kRnn + "NV_M40,train,7.5.18,5,fp32,gru,bwd_data,2816,32,1500,12.5,s\n");
  EXPECT_EQ(r.op, "gru");
  EXPECT_EQ(r.generation, "cudnn5");
  EXPECT_EQ(r.algorithm, "skip_input");
  EXPECT_EQ(to_text(r.shape), "batch=32 hidden=2816 layers=1 directions=1 steps=1500");
  EXPECT_EQ(only(kRnn + "NV_M40,train,7.5.18,5,fp32,vanilla,fwd,2816,32,1500,12.5,s\n").op, "rnn");
}

TEST_F(Importers, NeuSightProductsAreTransposedToColumnMajor) {
  // y[7][1000 x 200] = x[7][1000 x 30] w[7][30 x 200]: 2 x 16 tiles of 128 x 64.
  const std::string bmm = "P100,train,bmm,7,1000,200,30,0.09,maxwell_sgemm_128x64_nn,";
  const Record r = only(kNeusightGemm + bmm + "2,16,7,128,56.0\n");
  EXPECT_EQ(r.op, "batched_gemm");
  EXPECT_EQ(to_text(r.shape), "batch=7 m=200 n=1000 k=30");
  EXPECT_EQ(r.layout, "NN");
  EXPECT_EQ(r.timer, "event");
  EXPECT_DOUBLE_EQ(r.time_s, 9e-5);
  EXPECT_EQ(r.grid, "2x16x7/128");
  EXPECT_EQ(r.source, "sitar-lab/NeuSight:train@6945927d9afc, t.csv line 2");
  EXPECT_THAT(error_of(kNeusightGemm + bmm + "1,16,7,128,56.0\n"), HasSubstr("expected k as the reduced"));
  EXPECT_EQ(error_of(kNeusightGemm + "L4,test,bmm,7,1000,200,30,0.09,other,1,1,1,128,60.0\n"),
            "t.csv:2:1: column 'sm_count' holds '60.0'; expected 58, the SMs of L4");

  const Record linear = only(kNeusightGemm + "H100,test,linear,1,1000,200,30,0.09,cutlass,9,9,9,128,132.0\n");
  EXPECT_EQ(linear.op, "gemm");
  EXPECT_EQ(to_text(linear.shape), "m=200 n=1000 k=30");
  EXPECT_EQ(linear.layout, "TN");
}

TEST_F(Importers, NeuSightConvolutionsAndElementwise) {
  const Record conv = only(kNeusightConv + "T4,train,38,893,326,3,5,1,1,0.96,implicit,30,11,1,64\n");
  EXPECT_EQ(conv.generation, "cudnn8");
  EXPECT_EQ(to_text(conv.shape),
            "batch=38 channels=893 height=5 width=5 filters=326 filter_h=3 filter_w=3 stride_h=1 stride_w=1 "
            "pad_h=1 pad_w=1 dilation_h=1 dilation_w=1 groups=1");
  const RecordTable ops =
      read(kNeusightOps + "P4,train,add,127,168,0.0467,k\nP4,train,powu,127,168,0.0467,k\n" +
           "P4,test,ln,127,168,0.0467,k\n");
  ASSERT_EQ(ops.records.size(), 3u);
  EXPECT_EQ(ops.records[0].op + " " + to_text(ops.records[0].shape), "add elements=21336");
  EXPECT_EQ(ops.records[1].op, "pow_scalar");
  EXPECT_EQ(ops.records[2].op + " " + to_text(ops.records[2].shape), "layer_norm rows=127 cols=168");
}

TEST_F(Importers, Aiconfigurator) {
  const Record r = only(kAiconfigurator +
                        "a100_sxm,NVIDIA A100-SXM4-80GB,trtllm,1.0.0,torch_flow,bfloat16,4,32,64,2.79893\n");
  EXPECT_EQ(r.gpu, "a100_sxm_80gb");
  EXPECT_EQ(r.precision, "bf16");
  EXPECT_EQ(to_text(r.shape), "m=32 n=4 k=64");
  EXPECT_EQ(r.layout, "TN");
  EXPECT_EQ(r.algorithm, "trtllm 1.0.0 torch_flow");
  EXPECT_DOUBLE_EQ(r.time_s, 2.79893e-6);
}

TEST_F(Importers, Pipeweave) {
  const RecordTable table = read(
      "gpu,precision,M,N,K,avg_us,TFLOPS,num_sms,source\n"
      "NVIDIA H100,fp8,960,5120,6912,318.6,213,132,a#L1\nNVIDIA H20,fp8,960,5120,6912,318.6,213,78,a#L2\n");
  ASSERT_EQ(table.records.size(), 1u);
  EXPECT_EQ(table.records[0].gpu, "h100_sxm");
  EXPECT_EQ(to_text(table.records[0].shape), "m=5120 n=960 k=6912");
  EXPECT_DOUBLE_EQ(table.records[0].time_s, 318.6e-6);
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("1 row left out: NVIDIA H20 is not in the catalogue")));
}

TEST_F(Importers, RecurrentNetworksAreOpsOnlyAsOneLibraryCall) {
  const std::string header =
      "gpu,framework,library,cell,layers,bidirectional,batch,seq_len,input,hidden,loss,mode,"
      "ms_per_batch,us_per_sample,std_ms,n,note,source\n";
  const std::string titan = "GTX TITAN X (Maxwell),CUDA 8.0 cuDNN 5.1.05,";
  const std::string sizes = ",3,0.0,128.0,30,256.0,512,MSE,";
  const RecordTable table =
      read(header + titan + "cuDNN Theano GRU,GRU" + sizes + "forward,1.5,,,,,a\n" + titan +
           "cuDNN Theano GRU,GRU" + sizes + "train fwd+bwd,4.5,,0.45,400,,b\n" + titan + "Theano LSTM,LSTM" +
           sizes + "forward,3.5,,,,,c\n" +
           "GTX 1080 FE,PyTorch 0.4.0,pytorch_cudnnLSTM,LSTM,4,1.0,32,500..1000,123,320,CTC,train "
           "fwd+bwd,9,,,,,d\n");
  ASSERT_EQ(table.records.size(), 3u);
  const Record& forward = table.records[0];
  EXPECT_EQ(forward.op + " " + forward.phase + " " + forward.generation, "gru forward cudnn5");
  EXPECT_EQ(to_text(forward.shape), "batch=128 input_size=256 hidden=512 layers=3 directions=1 steps=30");
  const Record& training = table.records[1];
  EXPECT_EQ(training.op + " " + training.kernel, "network gru, cuDNN Theano GRU, train fwd+bwd");
  EXPECT_DOUBLE_EQ(training.spread, 0.1);
  EXPECT_EQ(training.samples, 400);
  EXPECT_EQ(table.records[2].op + " " + table.records[2].generation, "network theano");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("several lengths")));
}

TEST_F(Importers, TrainingKernelsInThreePassesAndGrouped) {
  const RecordTable table = read(
      "gpu,op,shape,dtype,time_us,backend,source\n"
      "A100-PCIe-80GB,gemm,\"m=64, k=32, n=16, layout=NT, accumulate=True, "
      "out_dtype=fp32\",bf16,9,TE,a/b@1:c\n"
      "B200-SXM-180GB,grouped_gemm,\"ng=4, M=8, N=16, K=32, main_grad_dtype=fp32, stage=bwd_grad_act, "
      "accumulate=False\",bf16,9,TE,a/b@1:c\n"
      "B200-SXM-180GB,grouped_gemm,\"ng=4, M=8, N=16, K=32, main_grad_dtype=fp32, stage=bwd_grad_w, "
      "accumulate=True\",bf16,9,TE,a/b@1:c\n"
      "H200,rms_norm,\"N=1, C=2\",bf16,9,cudnn,a/b@1:c\n");
  ASSERT_EQ(table.records.size(), 3u);
  EXPECT_EQ(to_text(table.records[0].shape), "m=16 n=64 k=32 output_bytes=4");
  EXPECT_EQ(table.records[0].layout, "NT+");
  EXPECT_EQ(table.records[0].source, "a/b:c@1");
  EXPECT_EQ(to_text(table.records[1].shape), "batch=4 m=32 n=8 k=16 output_bytes=2");
  EXPECT_EQ(table.records[1].layout, "NN");
  EXPECT_EQ(to_text(table.records[2].shape), "batch=4 m=32 n=16 k=8 output_bytes=4");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("no matrix product: rms_norm")));
}

TEST_F(Importers, AttentionKernels) {
  const RecordTable table = read(
      "set,gpu,backend,pass,dtype,causal,batch,q_len,kv_len,q_heads,kv_heads,head_dim_qk,head_dim_v,time_us,"
      "deterministic,note,source\n"
      "cudnn_sdpa,GB200,cudnn,bwd,bf16,y,2,64,96,8,2,192,128,9,True,gpt_oss; sliding window 32,a/b@1:c\n"
      "aic_context,H100-SXM5-80GB,flash_attention,fwd,bf16,n,1,64,64,8,8,64,64,9,,,aiconfigurator@1\n"
      "simumax_sdp,A100-PCIe-80GB,flash/cudnn (TE),fwd,bf16,y,1,64,64,8,8,64,64,9,,,a/b@1:c\n"
      "cudnn_sdpa,B200,pyt_flash_attention,fwd,bf16,y,1,64,64,8,8,64,64,999,,,a/b@1:c\n"
      "aic_context,B200,trtllm_mha,fwd,bf16,y,1,64,64,8,8,64,64,9,,,a/b@1:c\n");
  ASSERT_EQ(table.records.size(), 3u);
  const Record& cudnn = table.records[0];
  EXPECT_EQ(cudnn.gpu + " " + cudnn.generation + " " + cudnn.phase + " " + cudnn.layout,
            "gb200 cudnn9 backward_data causal ordered");
  EXPECT_EQ(to_text(cudnn.shape),
            "batch=2 heads=8 kv_heads=2 queries=64 keys=96 head_dim=192 value_dim=128 window=32");
  EXPECT_DOUBLE_EQ(cudnn.time_s, 9e-6);
  EXPECT_EQ(table.records[1].generation + " " + table.records[1].layout, "flash3 full");
  EXPECT_EQ(table.records[1].source, "ai-dynamo/aiconfigurator:@1");
  EXPECT_EQ(table.records[2].generation + " " + table.records[2].timer, "flash2 event");
  EXPECT_THAT(table.notes,
              ElementsAre(HasSubstr("with PyTorch's launches"), HasSubstr("do not grow with the sequence")));
}

TEST_F(Importers, SockeyeKernelsHaveNamesOnly) {
  const RecordTable table = read(
      "profile,batch,type,name,calls,total_ms,avg_ms,min_ms,max_ms,pct,source\n"
      "p,,GPU activities,\"a<1, 2>\",4,8,2,1,3,40,s\np,,GPU activities,b,4,8,2,1,3,40,s\n"
      "p,,API calls,cudaMalloc,4,8,2,1,3,40,s\n");
  ASSERT_EQ(table.records.size(), 2u);
  EXPECT_EQ(table.records[0].op + " " + table.records[0].kernel, "kernel a<1, 2>");
  EXPECT_EQ(table.records[0].gpu, "titanxp");
  EXPECT_EQ(table.records[0].samples, 4);
  EXPECT_DOUBLE_EQ(table.records[0].time_s, 2e-3);
  EXPECT_NE(record_key(table.records[0]), record_key(table.records[1])) << "named kernels are no duplicates";
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("1 row left out: API calls")));
}

TEST_F(Importers, TorchNetworksGiveTwoRecords) {
  const RecordTable table = read(
      "gpu,framework,cudnn,use_cudnn,precision,model,batch,img_h,img_w,fwd_ms,bwd_ms,n_passes,source\n"
      "TITAN X Pascal,Torch7,5105,1,fp32,vgg-16,16,224,224,41.5,128.0,10,s\n");
  ASSERT_EQ(table.records.size(), 2u);
  EXPECT_EQ(table.records[0].generation, "cudnn5");
  EXPECT_EQ(table.records[0].algorithm, "forward");
  EXPECT_DOUBLE_EQ(table.records[0].time_s, 41.5e-3);
  EXPECT_EQ(table.records[1].algorithm, "backward");
  EXPECT_DOUBLE_EQ(table.records[1].time_s, 128e-3);
  EXPECT_EQ(table.records[1].kernel, "vgg-16");
}

TEST_F(Importers, TensorFlowLayers) {
  const std::string header =
      "gpu,precision,optimizer,batch,in_size,kernel,c_in,c_out,stride,padding,activation,bias,"
      "time_min_ms,time_median_ms,time_max_ms,time_std_ms,source\n";
  const auto conv = [&](const std::string& optimizer, const std::string& sizes, const std::string& rest) {
    return header + "1080ti,fp32," + optimizer + ",16," + sizes + ",8,32," + rest + ",0.9,1,1.1,0.05,s\n";
  };
  const Record valid = only(conv("None", "28,5", "2,VALID,none,0"));
  EXPECT_EQ(valid.op + " " + valid.phase, "conv forward");
  EXPECT_EQ(output_height(valid.shape), 12);
  EXPECT_DOUBLE_EQ(valid.spread, 0.05);
  const Record same =
      only(conv("None", "28,5", "2,SAME,none,0"));  // 3 pixels are missing: 2 at one side, 1 at the other
  EXPECT_EQ(output_height(same.shape), 14);
  EXPECT_EQ(same.shape.pad_h, 2);
  EXPECT_EQ(only(conv("None", "28,3", "1,SAME,none,0")).shape.pad_h, 1);
  EXPECT_EQ(only(conv("None", "28,1", "4,SAME,none,0")).shape.pad_h, 0);
  EXPECT_THAT(read(conv("None", "28,4", "1,SAME,none,0")).notes, ElementsAre(HasSubstr("one side only")));
  const Record trained = only(conv("Adam", "28,5", "2,VALID,relu,1"));
  EXPECT_EQ(trained.op + ": " + trained.kernel, "network: conv, bias, relu, Adam");

  const Record dense = only(
      "gpu,precision,optimizer,batch,dim_in,dim_out,activation,time_min_ms,time_median_ms,"
      "time_max_ms,time_std_ms,source\nM60,fp32,None,8,151,1888,none,0.3,0.4,0.5,0.01,s\n");
  EXPECT_EQ(dense.op + " " + dense.layout + " " + to_text(dense.shape), "gemm NN m=1888 n=8 k=151");
}

TEST_F(Importers, OwnRecordsPassThrough) {
  const Record record = only(kGemm + "NV_TitanXp,train,8.0.88,fp32,1760,16,1024,N,T,0.050,1.7,sheet!4\n");
  std::ostringstream own;
  write_csv_row(own, record_columns());
  write_record(own, record);
  EXPECT_EQ(only(own.str()), record);
}

TEST_F(Importers, HeadersTellTheTables) {
  // A table of one's own is not taken for the published one that is nearest.
  EXPECT_EQ(error_of("gpu,precision,op,phase,m,n,k,time_s\n"),
            "t.csv:1:1: columns 'generation', 'layout', 'cache', 'source' are missing");
  EXPECT_EQ(error_of("gpu,mode,cuda,precision,M,N,K,transA,transB,source\n"),
            "t.csv:1:1: the columns are those of no known table; nearest is deepbench (cuBLAS matrix "
            "products), which also has: time_ms");
  const std::string path = dir_.write("g.csv", kGemm).string();
  const auto ignore = [](const Record&) {};
  EXPECT_EQ(import_table(path, "", ignore).source, "deepbench");
  EXPECT_THROW(import_table(path, "neusight", ignore), SpecError);
  EXPECT_THROW(import_table(path, "records", ignore), SpecError);
  try {
    import_table(path, "neusigt", ignore);
    FAIL() << "an unknown source was taken";
  } catch (const UsageError& wrong) {
    EXPECT_THAT(wrong.what(), HasSubstr("unknown source 'neusigt'; did you mean 'neusight'?"));
  }
}

// A TITAN X's products were measured with CUDA 8 before its first update.
TEST_F(Importers, ProductsOfCuda8WithoutAnUpdateAreLeftOut) {
  const std::string row = ",fp32,1760,16,1024,N,T,1,1.7,s\n";
  const RecordTable table = read(kGemm + "NV_TitanX_Pascal,train,8" + row + "NV_TitanXp,train,8.0.88" + row);
  ASSERT_EQ(table.records.size(), 1u);
  EXPECT_EQ(table.records[0].gpu, "titanxp");
}

TEST_F(Importers, BadCellsAreNamed) {
  const auto with_time = [&](const std::string& time) {
    return error_of(kGemm + "NV_TitanXp,train,8.0.88,fp32,1760,16,1024,N,T," + time + ",1.7,s\n");
  };
  EXPECT_EQ(with_time("0"), "t.csv:2:1: column 'time_ms' holds '0'; expected a time above 0");
  EXPECT_EQ(with_time("-1"), "t.csv:2:1: column 'time_ms' holds '-1'; expected a time above 0");
  EXPECT_EQ(with_time("nan"), "t.csv:2:1: column 'time_ms' holds 'nan'; expected a number");
  EXPECT_EQ(with_time(""), "t.csv:2:1: column 'time_ms' holds ''; expected a number");
  EXPECT_THAT(with_time("50000"),
              HasSubstr("is it in seconds?"));  // microseconds in a column of milliseconds
  EXPECT_EQ(
      error_of(kGemm + "NV_TitanZ,train,8.0.88,fp32,1760,16,1024,N,T,1,1.7,s\n"),
      "t.csv:2:1: column 'gpu' holds 'NV_TitanZ'; expected one of: NV_TitanX, NV_M40, NV_TitanX_Pascal, "
      "NV_TitanXp, NV_1080Ti, NV_P100, NV_V100, NV_T4; did you mean 'NV_TitanX'?");
  EXPECT_THAT(error_of(kGemm + "NV_T4,train,10.1.243,fp32,0,16,1024,N,T,1,1.7,s\n"),
              HasSubstr("column 'M' holds '0'; expected a whole number, 1 to 1000000000"));
  EXPECT_THAT(error_of(kGemm + "NV_T4,train,10.1.243,fp32,1.5,16,1024,N,T,1,1.7,s\n"),
              HasSubstr("column 'M'"));
}

TEST_F(Importers, AnUnfinishedLastLineIsLeftOut) {
  const std::string row = "NV_T4,train,10.1,fp32,1760,16,1024,N,T,0.5,1.7,s";
  const RecordTable table = read(kGemm + row + "\n" + row);
  EXPECT_EQ(table.records.size(), 1u);
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("the last line is unfinished")));
}

}  // namespace
}  // namespace tbdsim
