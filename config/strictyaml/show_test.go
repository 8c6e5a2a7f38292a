package strictyaml_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/config/strictyaml"
)

func TestShowMasks(t *testing.T) {
	t.Parallel()
	type part struct {
		Name   string            `yaml:"name"`
		Digest string            `yaml:"sha256"`
		Proxy  string            `yaml:"proxy"`
		Secret strictyaml.Secret `yaml:"secret"`
		Empty  []string          `yaml:"empty"`
	}
	got, err := strictyaml.Show(part{"a: b", "00ff", "http://ann:pw@proxy.example:80/x@y", strictyaml.NewSecret("hush"), nil}, "sha256")
	const want = "name: 'a: b'\nsha256: '[masked]'\nproxy: http://[masked]@proxy.example:80/x@y\nsecret: '[redacted]'\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
