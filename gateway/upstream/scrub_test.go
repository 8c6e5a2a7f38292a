package upstream

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const key = "pk-secret-pk-secre-key" // begins again within itself

// The key is masked however a body is cut into parts and read, and nothing else is.
func TestScrubbedBodies(t *testing.T) {
	cred := NewCredential(key)
	for _, text := range []string{
		"", "p", key, key + key, key[:len(key)-1], key[:10] + key, "a" + key + "b" + key[:5], key + "\n\ndata: " + key + "\n\n",
		strings.Repeat("p", 100), strings.Repeat("pk-secret-", 20) + key, strings.Repeat("x", 5000) + key + strings.Repeat("y", 5000),
	} {
		want := strings.ReplaceAll(text, key, "[redacted]"+strings.Repeat("*", len(key)-len("[redacted]")))
		for name, parts := range map[string]func(io.Reader) io.Reader{
			"whole":       func(r io.Reader) io.Reader { return r },
			"byte":        iotest.OneByteReader,
			"half":        iotest.HalfReader,
			"with an end": iotest.DataErrReader,
		} {
			for _, size := range []int{1, 3, len(key) - 1, len(key), len(key) + 1, 4096} {
				s := cred.scrubbed(io.NopCloser(parts(strings.NewReader(text))))
				var got bytes.Buffer
				if _, err := io.CopyBuffer(struct{ io.Writer }{&got}, struct{ io.Reader }{s}, make([]byte, size)); err != nil || got.String() != want {
					t.Errorf("%q by %s, %d at a time: %q, %v; want %q", text, name, size, got.String(), err, want)
				}
			}
		}
		if got := string(cred.Scrub([]byte(text))); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, want)
		}
	}
}

// Bytes that cannot be part of a key are there at once, and an error comes behind the
// bytes before it.
func TestScrubbedBodiesFlow(t *testing.T) {
	in, out := io.Pipe()
	s := NewCredential(key).scrubbed(in)
	p := make([]byte, 4096)
	for _, step := range []struct{ write, read string }{
		{"data: one\n\n", "data: one\n\n"},
		{"to" + key[:4], "to"},
		{"\n", key[:4] + "\n"},
		{"a" + key[:4], "a"},
		{key[4:] + "b", "[redacted]" + strings.Repeat("*", len(key)-len("[redacted]")) + "b"},
	} {
		go func() { _, _ = io.WriteString(out, step.write) }()
		if n, err := s.Read(p); string(p[:n]) != step.read || err != nil {
			t.Errorf("after %q: %q, %v; want %q", step.write, p[:n], err, step.read)
		}
	}
	go func() { _, _ = io.WriteString(out, "end pk-"); _ = out.CloseWithError(ErrTimeout) }()
	if b, err := io.ReadAll(s); string(b) != "end pk-" || err != ErrTimeout { //nolint:errorlint // it is this one
		t.Errorf("a body that breaks off: %q, %v", b, err)
	}
}

// A short credential is a word as any other.
func TestShortCredentialsAreWords(t *testing.T) {
	cred := NewCredential("test")
	if b, err := io.ReadAll(cred.scrubbed(io.NopCloser(strings.NewReader("a test")))); string(b) != "a test" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// BenchmarkScrubbed measures the cost of a part of an answer.
func BenchmarkScrubbed(b *testing.B) {
	text := bytes.Repeat([]byte(`{"id":"p","name":"pod-1"},`), 4096/26)
	cred, p := NewCredential("rpa_ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEFGH"), make([]byte, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := cred.scrubbed(io.NopCloser(bytes.NewReader(text)))
		if n, err := s.Read(p); n != len(text) || err != nil {
			b.Fatal(n, err)
		}
	}
}

// Every occurrence of the key in the fields of a header is masked, and nothing else is.
func TestScrubbedHeaders(t *testing.T) {
	masked := "[redacted]" + strings.Repeat("*", len(key)-len("[redacted]"))
	h := http.Header{"X-Echo": {"Bearer " + key + "," + key, "other"}, "Location": {"/v2/pods?key=" + key}, "Content-Type": {"text/plain"}}
	NewCredential(key).ScrubHeader(h)
	want := http.Header{"X-Echo": {"Bearer " + masked + "," + masked, "other"}, "Location": {"/v2/pods?key=" + masked}, "Content-Type": {"text/plain"}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	word := http.Header{"X-Echo": {"a test"}}
	if NewCredential("test").ScrubHeader(word); word.Get("X-Echo") != "a test" {
		t.Errorf("a short credential: %q", word)
	}
}
