package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/strictjson"
)

// createPod is a create request of ordinary size (about 600 bytes).
const createPod = `{"name":"train-7b","image":"registry.example/team/trainer:2026-08","cloud":"SECURE",` +
	`"gpu":{"id":"NVIDIA GeForce RTX 4090","count":2,"allowedCudaVersions":["12.8","12.9"]},` +
	`"disk":80,"ports":["8888/http","22/tcp"],"mounts":{"network":[{"volumeId":"agv6w2qcg7","path":"/data"}]},` +
	`"env":{"HF_HOME":"/data/hf","WANDB_PROJECT":"seven","BATCH":"32","JUPYTER_PASSWORD":"change-me","NCCL_DEBUG":"WARN"},` +
	`"cmd":["python","-m","train","--config","/data/conf.yaml"],"dataCenterIds":["EU-RO-1","EU-SE-1","US-TX-3"],` +
	`"startSsh":true,"startJupyter":false,"globalNetworking":false}`

func BenchmarkDecode(b *testing.B) {
	data := []byte(createPod)
	b.Run("strict", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := strictjson.Decode(data, strictjson.DefaultLimits()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := standard(createPod); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// listedPod is a pod as the platform lists it.
const listedPod = `{"id":"edakugmnck","name":"train-7b","status":"RUNNING","actions":["stop","restart","terminate"],` +
	`"image":"registry.example/team/trainer:2026-08","args":"","cmd":[],"entrypoint":[],"disk":80,"env":{"HF_HOME":"/data/hf","BATCH":"32"},` +
	`"ports":["8888/http","22/tcp"],"registry":null,"mounts":{},"gpu":{"id":"NVIDIA L4","count":1,"vcpuCount":12,"memory":50},` +
	`"cloud":"SECURE","dataCenterId":"EU-NL-1","cudaVersion":"12.4","ssh":{"proxy":null,"direct":null},"template":null,"cost":0.43,` +
	`"locked":false,"globalNetworking":{"enabled":false},"runtime":null,"createdAt":"2026-08-21T22:15:09.469Z","startedAt":null}`

// BenchmarkDecodeList reads a list of 20 pods as v2 answers it.
func BenchmarkDecodeList(b *testing.B) {
	data := []byte(`{"pods":[` + strings.Repeat(listedPod+",", 19) + listedPod + `]}`)
	for name, decode := range map[string]func([]byte) (any, error){"values": strictjson.DecodeLenient, "nodes": strictjson.DecodeNodes} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	v := mustAny(b, createPod)
	b.Run("strict", func(b *testing.B) {
		b.ReportAllocs()
		buf := make([]byte, 0, 1024)
		for b.Loop() {
			if _, err := strictjson.Append(buf, v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("standard", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
