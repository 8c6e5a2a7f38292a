package identity_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/identity"
)

// imported are keys of other origins, without a checksum, with marks at all places.
var imported = []string{
	"rpa_Zx9kQ2vLm4TgH8sWb1YcE6dN3pRuJ5aF", "sk-proj-Ab_cD-9xYz_77-qLmN", "d0a1b2c3-1111-4222-8333-444455556666", "bG9uZyBiYXNlNjQrLz0=", "c2hvcnQ+Lw==", "_leading-and-trailing_", "12345678", "abcdefgh",
}

// directoryOf returns a directory with keys.
func directoryOf(t testing.TB, keys ...string) *identity.Directory {
	t.Helper()
	entries := make([]identity.Entry, len(keys))
	for i, key := range keys {
		entries[i] = identity.Entry{Digest: identity.DigestOf(key), Caller: identity.Caller{Org: "acme", Key: fmt.Sprint("key", i)}}
	}
	d, err := identity.NewDirectory(entries, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.WithUsedKeys(identity.NewUsedKeys())
}

// use makes a request with a key.
func use(t testing.TB, d *identity.Directory, key string) {
	t.Helper()
	if _, err := d.Find(t.Context(), identity.Credentials{Key: key}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// A key that nobody has used yet is found between other characters than letters and digits.
func TestWithinBeforeUse(t *testing.T) {
	for _, key := range imported {
		d := directoryOf(t, imported...)
		for _, form := range []string{
			"%s", "Bearer %s", "--key=%s", "-k%%%s", "KEY=%s;B=1", `{"token":"%s"}`, "https://user:%s@host/x", "https://host/x?k=%s&l=2", "registry.example/%s:latest", "registry.example/team/%s", "a.b-c_d~%s+e/f", "\n%s\n",
			"export KEY=%s", "'%s'", "x/%s/y", "é%sé", "a b c %s", strings.Repeat("word ", 1000) + "%s",
		} {
			if text := fmt.Sprintf(form, key); !d.ContainsKey(text) {
				t.Errorf("%.60q holds %s, which was not found", text, key)
			}
		}
		for _, text := range []string{"", "short", key[:len(key)-1], strings.ToUpper(key) + "Q", "x" + key[1:], "Bearer " + key[:len(key)-1]} {
			if d.ContainsKey(text) && !strings.Contains(text, "abcdefgh") && !strings.Contains(text, "12345678") {
				t.Errorf("%q holds no key", text)
			}
		}
	}
}

// A key that a caller has used is found everywhere, also by the directory of the next configuration; another key of the same length is not.
func TestWithinAfterUse(t *testing.T) {
	for _, key := range imported {
		d := directoryOf(t, key)
		glued := "prefix9" + key + "9suffix"
		if d.ContainsKey(glued) {
			t.Errorf("%q: found before its use: this test proves nothing", glued)
		}
		use(t, d, key)
		for range 2 {
			for _, text := range []string{glued, key + "x", "x" + key, strings.Repeat("ab-", 100) + key + strings.Repeat("Z", 300), "Bearer " + key} {
				if !d.ContainsKey(text) {
					t.Errorf("%.60q holds %s, which was not found", text, key)
				}
			}
			if other := strings.Repeat("q", len(key)); d.ContainsKey("x" + other + "x") {
				t.Errorf("%q holds no key", other)
			}
			var err error
			if d, err = d.WithChanges(nil, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	d := directoryOf(t, imported[0])
	use(t, d, imported[0])
	gone, err := identity.NewDirectory(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if gone.ContainsKey("x" + imported[0] + "x") {
		t.Error("a key that no caller has any more was found")
	}
	if made := identity.NewKey(); !gone.ContainsKey("x" + made + "y") {
		t.Error("a key with a checksum was not found")
	}
}

// Marks in a key are found up to a bound.
func TestWithinBoundsMarks(t *testing.T) {
	few, many := "a-b-c-d-e-f-g-h-i", "z-y-x-w-v-u-t-s-r-q"
	d := directoryOf(t, few, many)
	for text, want := range map[string]bool{"k=" + few: true, "k=" + many: false, "k " + many: true, many: true} {
		if got := d.ContainsKey(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// Texts without a key hold none, whatever was used, and whatever their form.
func FuzzWithin(f *testing.F) {
	f.Add("Bearer x", 3, 9)
	f.Fuzz(func(t *testing.T, text string, at, key int) {
		d := directoryOf(t, imported...)
		for _, k := range imported[:4] {
			use(t, d, k)
		}
		held := false
		for _, k := range imported {
			held = held || strings.Contains(text, k)
		}
		if d.ContainsKey(text) && !held {
			t.Errorf("%q holds no key", text)
		}
		used := imported[uint(key)%4]
		cut := uint(at) % uint(len(text)+1)
		if whole := text[:cut] + used + text[cut:]; !d.ContainsKey(whole) {
			t.Errorf("%q holds %s", whole, used)
		}
	})
}

// BenchmarkWithin searches the texts of typical and of the worst bodies, with 100 keys of three lengths in use.
func BenchmarkWithin(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n int, alphabet string) string {
		s := make([]byte, n)
		for i := range s {
			s[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(s)
	}
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var keys []string
	for i := range 100 {
		keys = append(keys, text([]int{36, 40, 62}[i%3], alnum))
	}
	d := directoryOf(b, keys...)
	for _, key := range keys {
		use(b, d, key)
	}
	const body = "train-llama-17\nghcr.io/acme/pytorch:2.1.0-py3.10-cuda11.8.0-devel-ubuntu22.04\nNVIDIA L4\npython -m train --config /workspace/configs/llama-7b.yaml --epochs 3 --lr 2e-5\n" +
		"/workspace/.cache/huggingface\nllama-17\n3f2a9c1be7d84f60a5c2d1e0b9f8a7c6d5e4f3a2\ns3://acme-models/runs/2026-11-28/llama-17/checkpoints\n10.0.0.12\n" +
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBqXn7bq3v9mQ1u2cYt8s5LkP0wZr4JhGd6eFyXaTnUo dev@acme.example\nredis://default:p4ssw0rd@cache.acme.example:6379/3\n8888/http\n22/tcp"
	for name, s := range map[string]string{
		"body": body,
		"name": "train-run-17", "image": "ghcr.io/acme/pytorch:2.1.0-py3.10-cuda11.8.0-devel-ubuntu22.04", "url": "https://hooks.acme.example/v1/runs/done?team=research&run=4711",
		"prose-100KB": strings.Repeat("python train.py --lr 0.001 --epochs 20 \n", 2500), "base64-100KB": text(100_000, alnum+"+/"), "marks-100KB": strings.Repeat("a-", 50_000), "uuids-100KB": strings.Repeat("d0a1b2c3-1111-4222-8333-444455556666,", 2700),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d.ContainsKey(s) {
					b.Fatal("found")
				}
			}
		})
	}
}
