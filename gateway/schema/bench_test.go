package schema_test

import (
	"fmt"
	"strings"
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

// worstPod is a body with as many faults as fit into the limits on bodies (4096
// values, 1000 elements, 256 members).
func worstPod() string {
	var b strings.Builder
	b.WriteString(`{"env":{"x":1`)
	for i := range 200 {
		fmt.Fprintf(&b, `,"e%d":1`, i)
	}
	b.WriteString(`}`)
	for _, name := range []string{"ports", "dataCenterIds", "cmd"} {
		b.WriteString(`,"` + name + `":[1` + strings.Repeat(",1", 799) + `]`)
	}
	b.WriteString(`,"mounts":{"network":[{}` + strings.Repeat(`,{"a":1,"b":2,"c":3}`, 299) + `]}`)
	for i := range 200 {
		fmt.Fprintf(&b, `,"u%d":1`, i)
	}
	return b.String() + "}"
}

// BenchmarkWorstBody is the cost of the worst body; the bound to keep is a few
// milliseconds, or refusals become a way to wear the gateway down.
func BenchmarkWorstBody(b *testing.B) {
	op, body := operation(b, "createPod"), parse(b, worstPod())
	b.ReportAllocs()
	for b.Loop() {
		op.ValidateBody(body)
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
