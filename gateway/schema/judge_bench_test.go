package schema

import "testing"

// BenchmarkJudge compares the two forms of a schema on valid bodies.
func BenchmarkJudge(b *testing.B) {
	api := loaded(b)
	for _, id := range []string{"createPod", "createEndpoint", "podAction"} {
		j, body := api.Operation(id).body.compiled(), decode(b, bodies()[id])
		b.Run(id+"/jsonschema", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := j.schema.Validate(body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(id+"/program", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if !j.program.Accepts(body) {
					b.Fatal("not accepted")
				}
			}
		})
	}
}
