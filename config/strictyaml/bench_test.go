package strictyaml_test

import (
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

// wide is a section like that of an organisation.
type wide struct {
	ID     string            `yaml:"id"`
	Secret strictyaml.Secret `yaml:"secret"`
	Times  []time.Duration   `yaml:"times"`
	Teams  []struct {
		ID     string `yaml:"id"`
		Budget struct {
			Day   int64 `yaml:"day"`
			Month int64 `yaml:"month"`
		} `yaml:"budget"`
	} `yaml:"teams"`
	Labels map[string]string `yaml:"labels"`
}

// BenchmarkEach looks for the secrets of an organisation, as a reload does of each.
func BenchmarkEach(b *testing.B) {
	org := wide{ID: "acme", Times: []time.Duration{time.Second}, Labels: map[string]string{"a": "b"}}
	b.ReportAllocs()
	for b.Loop() {
		if err := strictyaml.Each(&org, func(*strictyaml.Secret) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
