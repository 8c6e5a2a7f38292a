package schema_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

const benchPod = `{"name":"train-7b","image":"registry.example/team/trainer:2026-08","cloud":"SECURE",
"gpu":{"id":"NVIDIA GeForce RTX 4090","count":2,"allowedCudaVersions":["12.8","12.9"]},
"disk":80,"ports":["8888/http","22/tcp"],"mounts":{"network":[{"volumeId":"agv6w2qcg7","path":"/data"}]},
"env":{"HF_HOME":"/data/hf","WANDB_PROJECT":"seven","BATCH":"32","JUPYTER_PASSWORD":"change-me","NCCL_DEBUG":"WARN"},
"cmd":["python","-m","train","--config","/data/conf.yaml"],"dataCenterIds":["EU-RO-1","EU-SE-1","US-TX-3"],
"startSsh":true,"startJupyter":false,"globalNetworking":false}`

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := schema.Load(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidateBody(b *testing.B) {
	for name, text := range map[string]string{
		"pod": benchPod, "small": `{"name":"a","image":"img:1","gpu":{"id":"NVIDIA GeForce RTX 4090"}}`,
		"invalid": `{"name":"","image":"i","gpu":{"id":"x","count":0},"bogus":1}`,
	} {
		b.Run(name, func(b *testing.B) {
			op, body := operation(b, "createPod"), parse(b, text)
			b.ReportAllocs()
			for b.Loop() {
				if valid := len(op.ValidateBody(body)) == 0; valid != (name != "invalid") {
					b.Fatalf("valid = %v", valid)
				}
			}
		})
	}
}

func BenchmarkCheckRules(b *testing.B) {
	op, body := operation(b, "createPod"), parse(b, benchPod)
	b.ReportAllocs()
	for b.Loop() {
		if vs := op.CheckRules(body); len(vs) > 0 {
			b.Fatal(vs)
		}
	}
}

func BenchmarkFillDefaults(b *testing.B) {
	op, body := operation(b, "createPod"), parse(b, benchPod)
	b.ReportAllocs()
	for b.Loop() {
		op.FillDefaults(body)
	}
}
