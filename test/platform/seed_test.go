package platform

import (
	"path/filepath"
	"strings"
	"testing"
)

const seedFile = `{
  "accounts": [{"id": "a", "key": "ka", "balance": 50, "quota": {"minute": 10}}, {"id": "b", "keys": [{"secret": "kb"}], "exempt": true}],
  "prices": [{"gpu": "NVIDIA L4", "secure": 0.5}],
  "stock": [{"type": "NVIDIA L4", "total": 2}],
  "calls": [
    {"account": "a", "method": "POST", "path": "/v2/pods", "body": {"name": "first", "image": "i", "gpu": {"id": "NVIDIA L4"}}},
    {"account": "b", "method": "PUT", "path": "/v2/account/ssh-keys", "body": {"keys": ["ssh-rsa AAAA"]}}
  ]
}`

func TestSeed(t *testing.T) {
	seed, err := ParseSeed([]byte(seedFile))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Accounts: seed.Accounts, DataFile: filepath.Join(t.TempDir(), "p.db")}
	for _, start := range []string{"new", "kept"} {
		r := newRig(t, o)
		if err := r.ApplySeed(t.Context(), seed); err != nil {
			t.Fatalf("%s: %v", start, err)
		}
		a := r.as("ka").want(200, "GET", "/v2/pods", "")
		if list, _ := a.at("pods").([]any); len(list) != 1 || a.text("pods.0.name") != "first" || a.at("pods.0.cost") != 0.5 {
			t.Errorf("%s: pods of a: got %s", start, a.raw)
		}
		if got := a.header.Get("RateLimit-Policy"); !strings.HasPrefix(got, `"minute";q=10;`) {
			t.Errorf("%s: quota of a: got %s", start, got)
		}
		if got := r.as("kb").want(200, "GET", "/v2/account/ssh-keys", "").text("keys.0"); got != "ssh-rsa AAAA" {
			t.Errorf("%s: keys of b: got %q", start, got)
		}
		if n := len(r.Calls()); n != 2 {
			t.Errorf("%s: %d calls are remembered, want those of the test only", start, n)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeedRefused(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"pods":[]}`, `{} {}`, `{"accounts":[{"name":"a"}]}`} {
		if _, err := ParseSeed([]byte(text)); err == nil {
			t.Errorf("%q was taken for a seed", text)
		}
	}
	r := newRig(t, Options{})
	for _, text := range []string{
		`{"prices":[{"gpu":"nope"}]}`, `{"stock":[{"type":"nope"}]}`, `{"calls":[{"account":"nope"}]}`,
		`{"calls":[{"account":"default","method":"POST","path":"/v2/pods","body":{}}]}`,
		`{"calls":[{"account":"default","method":"NO METHOD","path":"/v2/pods"}]}`,
	} {
		seed, err := ParseSeed([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.ApplySeed(t.Context(), seed); err == nil {
			t.Errorf("%s was applied", text)
		}
	}
}
