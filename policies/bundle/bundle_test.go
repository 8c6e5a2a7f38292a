package bundle

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// packed is a bundle of policies by their names, signed with a secret unless that is "".
func packed(t *testing.T, secret string, names ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		text := "package policies." + name + "\n\ndeny contains \"no\" if input.request.operation == \"createPod\"\n"
		if err := os.WriteFile(filepath.Join(dir, name+".rego"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive, _, err := Build(dir, "r1", &Signing{Key: []byte(secret), Algorithm: "HS256"})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

// server serves one bundle, by its entity tag if it has one.
type server struct {
	raw  []byte
	etag string
	sent int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.etag != "" && r.Header.Get("If-None-Match") == s.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.sent++
	w.Header().Set("ETag", s.etag)
	_, _ = w.Write(s.raw)
}

// follow returns a source of the bundle of a server, whose signature must be that of the secret "right".
func follow(t *testing.T) (*server, *Source) {
	t.Helper()
	s, dir := new(server), t.TempDir()
	listening := httptest.NewServer(s)
	t.Cleanup(listening.Close)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("right"), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := Open("acme", Config{
		URL: egress.UnrestrictedURL(listening.URL), Persist: files.UnrestrictedTarget(filepath.Join(dir, "kept.tar.gz")),
		Key: &policyconfig.BundleKey{File: files.UnrestrictedCredential(key), Algorithm: "HS256"},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, source
}

// lookOnce has a source look at its place, and returns the fault.
func lookOnce(t *testing.T, s *Source) error {
	t.Helper()
	found, err := s.Poll(t.Context(), nil)
	_, after, _ := s.FinishPoll(found, err, time.Unix(1000, 0))
	return after
}

// expect checks which policies are in force.
func expect(t *testing.T, when string, s *Source, want ...string) {
	t.Helper()
	mine := s.Current()
	if got := mine.Policies(); (mine.Digest() != "") != (len(want) > 0) || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: in force %v, want %v", when, got, want)
	}
}

// Only a bundle with the signature is taken, and only one with all policies that the last one had. The last good one stays in force, and is
// there at the next start although the server is away.
func TestBundlesAreVerified(t *testing.T) {
	t.Parallel()
	s, source := follow(t)
	expect(t, "before the first look", source)
	good := packed(t, "right", "few", "more")
	for _, step := range []struct {
		name  string
		raw   []byte
		fault string
		want  []string
	}{
		{"unsigned", packed(t, "", "few"), "signature", nil},
		{"signed by another", packed(t, "wrong", "few"), "verif", nil},
		{"no bundle", []byte("few"), "archive is not gzipped", nil},
		{"good", good, "", []string{"few", "more"}},
		{"without one policy", packed(t, "right", "few"), "no longer contains policies.more", []string{"few", "more"}},
		{"cut off", good[:len(good)/2], "damaged", []string{"few", "more"}},
		{"another policy", packed(t, "right", "few", "more", "third"), "", []string{"few", "more", "third"}},
	} {
		s.raw = step.raw
		err := lookOnce(t, source)
		if (err == nil) != (step.fault == "") || err != nil && !strings.Contains(err.Error(), step.fault) {
			t.Errorf("%s: %v, want %q", step.name, err, step.fault)
		}
		expect(t, step.name, source, step.want...)
	}
	again, err := Open("acme", source.cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "at the next start", again, "few", "more", "third")
}

// A bundle that has not changed is not sent again. After failures, looks are up to ten times as far apart.
func TestLooks(t *testing.T) {
	t.Parallel()
	s, source := follow(t)
	s.raw, s.etag = packed(t, "right", "few"), `"1"`
	for range 3 {
		if err := lookOnce(t, source); err != nil {
			t.Fatal(err)
		}
	}
	if s.sent != 1 {
		t.Errorf("sent %d times, want once", s.sent)
	}
	s.raw, s.etag = []byte("broken"), ""
	for _, want := range []time.Duration{1, 2, 4, 8, 8} {
		if lookOnce(t, source) == nil {
			t.Fatal("a broken bundle was taken")
		}
		got, spread := source.Next().Sub(time.Unix(1000, 0)), want*defaultPoll/10
		if got < want*defaultPoll-spread || got > want*defaultPoll+spread {
			t.Errorf("the next look is in %s, want about %s", got, want*defaultPoll)
		}
	}
}
