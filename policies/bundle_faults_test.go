package policies_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/policies"
	"github.com/tollgate-dev/tollgate/policies/policyconfig"
)

// TestBundlesMayNotDropPolicies: a bundle that would switch policies off by not
// holding them changes nothing, unless the section says that it may.
func TestBundlesMayNotDropPolicies(t *testing.T) {
	two := map[string]string{"mine.rego": denyAbove("2"), "other.rego": other}
	tests := []struct {
		name  string
		files map[string]string
		want  string // of the fault
	}{
		{"nothing", map[string]string{}, "contains no policy"},
		{"only data", map[string]string{"data.json": `{"a": 1}`}, "contains no policy"},
		{"only helpers", map[string]string{"lib.rego": "package lib\n\nx := 1\n"}, "contains no policy"},
		{"one less", map[string]string{"mine.rego": denyAbove("9")}, "no longer contains policies.other"},
		{"moved away", map[string]string{"mine.rego": denyAbove("9"), "other.rego": strings.Replace(other, "policies", "policy", 1)}, "never evaluated"},
	}
	for _, tt := range tests {
		for _, mayDrop := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, may drop %t", tt.name, mayDrop), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					file := filepath.Join(t.TempDir(), "b.tar.gz")
					put := func(raw []byte) {
						replaceFile(t, file, raw)
						time.Sleep(10 * time.Second) // two looks or more
						synctest.Wait()
					}
					replaceFile(t, file, bundleOf(t, "r1", maps.Clone(two)))
					e := follow(t, policies.Config{Bundle: &policies.Bundle{File: files.UnrestrictedPath(file), Poll: 4 * time.Second, AllowUnsigned: true, MayDrop: mayDrop}})
					put(bundleOf(t, "r2", tt.files))
					s := e.Status()[0]
					if mayDrop && tt.want != "never evaluated" {
						if s.Err != nil || s.Bundle != "r2" {
							t.Errorf("got bundle %s, %v; want r2", s.Bundle, s.Err)
						}
						return
					}
					if s.Bundle != "r1" || s.Err == nil || !strings.Contains(s.Err.Error(), tt.want) {
						t.Errorf("got bundle %s, %v; want r1 and a fault with %q", s.Bundle, s.Err, tt.want)
					}
					if got, want := denials(t, e, "3"), "above 2, other"; got != want {
						t.Errorf("got %q, want %q of the last good one", got, want)
					}
					two := maps.Clone(two)
					two["more.rego"] = "package policies.more\n\ndeny contains \"more\"\n"
					put(bundleOf(t, "r3", two))
					if s := e.Status()[0]; s.Err != nil || s.Bundle != "r3" {
						t.Errorf("a policy more: got bundle %s, %v; want r3", s.Bundle, s.Err)
					}
				})
			})
		}
	}
}

// TestDroppedPoliciesAfterARestart: the kept copy names the policies that there
// were, and a bundle on disk or kept without any is none.
func TestDroppedPoliciesAfterARestart(t *testing.T) {
	dir := t.TempDir()
	file, kept := filepath.Join(dir, "b.tar.gz"), filepath.Join(dir, "kept.tar.gz")
	put := func(file string, raw []byte) { replaceFile(t, file, raw) }
	cfg := policies.Config{Bundle: &policies.Bundle{File: files.UnrestrictedPath(file), Poll: time.Hour, AllowUnsigned: true, Persist: files.UnrestrictedTarget(kept)}}
	load := func() (*policies.Engine, error) {
		return policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{"acme": cfg}, policies.Deps{})
	}
	put(file, bundleOf(t, "r0", map[string]string{"data.json": "{}"}))
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "contains no policy") {
		t.Errorf("a file without policies: got %v, want a fault", err)
	}
	put(file, bundleOf(t, "r1", map[string]string{"mine.rego": denyAbove("2"), "other.rego": other}))
	e := follow(t, cfg)
	eventually(t, "the bundle is kept", func() bool { _, err := os.Stat(kept); return err == nil && !e.Status()[0].Fetched.IsZero() })
	put(file, bundleOf(t, "r2", map[string]string{"mine.rego": denyAbove("2")}))
	if _, err := load(); err == nil || !strings.Contains(err.Error(), "no longer contains policies.other") {
		t.Errorf("a file that lost a policy: got %v, want a fault", err)
	}
	cfg.Bundle.MayDrop = true
	if _, err := load(); err != nil {
		t.Errorf("a file that may lose policies: %v", err)
	}
	put(kept, bundleOf(t, "r0", map[string]string{"data.json": "{}"}))
	cfg.Bundle = &policies.Bundle{URL: egress.UnrestrictedURL("http://127.0.0.1:1/"), AllowUnsigned: true, Persist: files.UnrestrictedTarget(kept)}
	e, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if s := e.Status()[0]; s.Revision != "" || s.Err == nil {
		t.Errorf("a kept bundle without policies: got %+v, want none in force and a fault", s)
	}
}

// An unusable persisted bundle leaves its organisation without policies until the download, and does not affect the others.
func TestUnusablePersistedBundles(t *testing.T) {
	good := bundleOf(t, "r1", map[string]string{"mine.rego": denyAbove("2")})
	for name, raw := range map[string][]byte{
		"truncated":        good[:len(good)/2],
		"does not compile": bundleOf(t, "r0", map[string]string{"mine.rego": "package policies.mine\n\ndeny contains \"x\" if data.tollgate.gpu.no_such_rule(1)\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			kept := filepath.Join(t.TempDir(), "kept.tar.gz")
			replaceFile(t, kept, raw)
			var log bytes.Buffer
			e, err := policies.NewEngine(unhurried(), map[string]policies.Config{
				"acme": {Bundle: &policies.Bundle{
					URL: egress.UnrestrictedURL("http://127.0.0.1:1/"), AllowUnsigned: true, Persist: files.UnrestrictedTarget(kept),
				}},
				"globex": {},
			}, policies.Deps{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatalf("NewEngine: %v", err)
			}
			in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4"}}`)
			if _, err := e.Decide(t.Context(), "acme", in); !errors.Is(err, policies.ErrBundlePending) {
				t.Errorf("acme: got %v, want %v", err, policies.ErrBundlePending)
			}
			if d, err := e.Decide(t.Context(), "globex", in); err != nil || !d.Allowed() {
				t.Errorf("globex: got %+v, %v; want the call allowed", d, err)
			}
			if s := e.Status()[0]; s.Revision != "" || s.Err == nil || !strings.Contains(s.Err.Error(), kept) {
				t.Errorf("status %+v, want no revision and an error that names %s", s, kept)
			}
			if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "persisted policy bundle rejected") || !strings.Contains(text, kept) {
				t.Errorf("log: %s\nwant one error that names %s", text, kept)
			}
		})
	}
}

// TestReloadLetsABundleDrop: an engine whose section now says that the bundle may drop
// policies takes the bundle that the engine before it refused.
func TestReloadLetsABundleDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		replaceFile(t, file, bundleOf(t, "r1", map[string]string{"mine.rego": denyAbove("2"), "other.rego": other}))
		kept := files.UnrestrictedTarget(filepath.Join(t.TempDir(), "kept.tar.gz"))
		b := policies.Bundle{File: files.UnrestrictedPath(file), Poll: time.Second, AllowUnsigned: true, Persist: kept}
		e := follow(t, policies.Config{Bundle: &b})
		synctest.Wait()
		replaceFile(t, file, bundleOf(t, "r2", map[string]string{"mine.rego": denyAbove("4")}))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got, want := denials(t, e, "3"), "above 2, other"; got != want {
			t.Errorf("before the new section: got %q, want %q", got, want)
		}
		if _, err := policies.NewEngine(unhurried(), map[string]policies.Config{"acme": {Bundle: &b}}, policies.Deps{Previous: e}); err == nil {
			t.Error("an engine with the old section took the bundle")
		}
		may := b
		may.MayDrop = true
		e = followAfter(t, e, policies.Config{Bundle: &may})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := e.Status()[0]; s.Err != nil || s.Bundle != "r2" {
			t.Errorf("got bundle %s, %v; want r2", s.Bundle, s.Err)
		}
	})
}

// TestBundleFaultsAreLogged: a line when looks begin to fail, and one when they
// succeed again, however many there are.
func TestBundleFaultsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		put := func(raw []byte) {
			replaceFile(t, file, raw)
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		good := bundleOf(t, "r1", map[string]string{"mine.rego": denyAbove("2")})
		replaceFile(t, file, good)
		var log bytes.Buffer
		e, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{
			"acme": {Bundle: &policies.Bundle{File: files.UnrestrictedPath(file), Poll: time.Second, AllowUnsigned: true}},
		}, policies.Deps{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		put(good)
		put(bundleOf(t, "r2", map[string]string{}))
		put([]byte("hello"))
		put(good)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: got %v, want context.Canceled", err)
		}
		want := `level=ERROR msg="policy bundle rejected; the last valid one, if any, stays in force" org=acme fault="org acme: bundle: contains no policy`
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], want) || !strings.Contains(lines[1], "archive is not gzipped") || lines[2] != `level=INFO msg="policy bundle loaded after earlier failures" org=acme` {
			t.Errorf("log:\n%s\nwant one line for each fault and one for its end, the first beginning\n%s", log.String(), want)
		}
	})
}

// TestArchivesThatAreNoBundles: checkArchive refuses them.
func TestArchivesThatAreNoBundles(t *testing.T) {
	pack := func(headers ...tar.Header) []byte {
		var out bytes.Buffer
		zip := gzip.NewWriter(&out)
		w := tar.NewWriter(zip)
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, h.Size)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Close(), zip.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	tests := []struct {
		name string
		raw  []byte
		want string
	}{
		{"twice", pack(tar.Header{Name: "a.rego", Typeflag: tar.TypeReg}, tar.Header{Name: "./a.rego", Typeflag: tar.TypeReg}), "duplicate file"},
		{"link", pack(tar.Header{Name: "a.rego", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}), "not a regular file"},
		{"way out", pack(tar.Header{Name: "../a.rego", Typeflag: tar.TypeReg}), "is outside the bundle"},
		{"zip bomb", pack(tar.Header{Name: "data.json", Typeflag: tar.TypeReg, Size: 65 << 20}), "larger than"},
		{"cut", pack(tar.Header{Name: "a.rego", Typeflag: tar.TypeReg, Size: 4000})[:30], ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "b.tar.gz")
			if err := os.WriteFile(file, tt.raw, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := policies.NewEngine(policyconfig.DefaultLimits(), map[string]policies.Config{
				"acme": {Bundle: &policies.Bundle{File: files.UnrestrictedPath(file), AllowUnsigned: true}},
			}, policies.Deps{})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

// TestTheLastBundleOutlivesItsKey: if the key or the location of a bundle is replaced, the bundle in force stays until there is a valid
// one. A configuration that it does not fit has no policies until then.
func TestTheLastBundleOutlivesItsKey(t *testing.T) {
	oldPrivate, oldPublic := keyPair(t)
	newPrivate, newPublic := keyPair(t)
	srv := new(bundleServer)
	srv.set("1", makeBundle(t, "r1", denyAbove("2"), oldPrivate), http.StatusOK)
	ts := httptest.NewServer(srv)
	defer ts.Close()
	persist := filepath.Join(t.TempDir(), "last.tar.gz")
	section := func(public string, entries ...policies.Entry) policies.Config {
		return policies.Config{Policies: entries, Bundle: &policies.Bundle{
			URL: egress.UnrestrictedURL(ts.URL), Poll: 5 * time.Millisecond, Persist: files.UnrestrictedTarget(persist),
			Key: &policies.BundleKey{ID: "k1", File: files.UnrestrictedCredential(public), Algorithm: "ES256"},
		}}
	}
	first := follow(t, section(oldPublic))
	eventually(t, "the first bundle is kept", func() bool { _, err := os.Stat(persist); return err == nil })
	second := followAfter(t, first, section(newPublic))
	eventually(t, "a look", func() bool { return strings.Contains(fmt.Sprint(second.Status()[0].Err), "signature") })
	if got, want := denials(t, second, "3"), "above 2"; got != want {
		t.Errorf("with another key: got %q, want %q of the last valid bundle", got, want)
	}
	third := followAfter(t, second, section(newPublic, policies.Entry{Policy: "unknown"}))
	if got := denials(t, third, "3"); !strings.Contains(got, policies.ErrBundlePending.Error()) {
		t.Errorf("with an entry that the last bundle does not have: got %q, want an error", got)
	}
	srv.set("2", makeBundle(t, "r2", denyAbove("4"), newPrivate), http.StatusOK)
	eventually(t, "the second bundle", func() bool { return second.Status()[0].Bundle == "r2" })
	if got := denials(t, second, "3"); got != "" {
		t.Errorf("with the second bundle: got %q, want no denial", got)
	}
}

// TestAReloadDuringALookStays: a bundle that was asked for under an older
// configuration does not bring that configuration back in the new engine.
func TestAReloadDuringALookStays(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	var looks atomic.Int64
	first, second := makeBundle(t, "v1", denyAbove("100"), ""), makeBundle(t, "v2", denyAbove("100"), "")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch looks.Add(1) {
		case 1:
			_, _ = w.Write(first)
			return
		case 2:
			close(asked)
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		_, _ = w.Write(second)
	}))
	defer srv.Close()
	section := func(most int) policies.Config {
		return policies.Config{
			Policies: []policies.Entry{{Policy: "gpu_count", Params: map[string]any{"max_per_pod": most}}},
			Bundle:   &policies.Bundle{URL: egress.UnrestrictedURL(srv.URL), AllowUnsigned: true, Poll: 10 * time.Millisecond},
		}
	}
	before := follow(t, section(1))
	<-asked
	e := followAfter(t, before, section(4))
	close(release)
	eventually(t, "the second bundle before", func() bool { return before.Status()[0].Bundle == "v2" })
	eventually(t, "the second bundle", func() bool { return e.Status()[0].Bundle == "v2" })
	in := call(t, "createPod", `{"gpu":{"id":"NVIDIA L4","count":3}}`)
	if d, err := e.Decide(t.Context(), "acme", in); err != nil || !d.Allowed() {
		t.Errorf("three GPUs after the change to four: %+v, %v", d, err)
	}
}

// TestFaultsOfConnectionsAreTheSame: each connection has a port of its own, which makes no new fault of a failure.
func TestFaultsOfConnectionsAreTheSame(t *testing.T) {
	t.Parallel()
	read := func(port int, err error) error {
		return fmt.Errorf("bundle: %w", &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: err})
	}
	reset, refused := errors.New("connection reset"), errors.New("connection refused")
	for _, tt := range []struct {
		name          string
		before, after error
		want          bool
	}{
		{"both good", nil, nil, true},
		{"a first fault", nil, reset, false},
		{"the end of a fault", reset, nil, false},
		{"another connection", read(40_001, reset), read(40_002, reset), true},
		{"another failure", read(40_001, reset), read(40_002, refused), false},
		{"another fault", errors.New("archive is not gzipped"), errors.New("unknown policy"), false},
	} {
		if got := policies.SameFault(tt.before, tt.after); got != tt.want {
			t.Errorf("%s: %t, want %t", tt.name, got, tt.want)
		}
	}
}
