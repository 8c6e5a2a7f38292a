package gateway_test

import (
	gocmp "cmp"
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/config/egress"
	"github.com/tollgate-dev/tollgate/config/files"
	"github.com/tollgate-dev/tollgate/config/strictyaml"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/identity"
	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/ratelimit"
	"github.com/tollgate-dev/tollgate/test/world"
)

// leaves calls visit for each setting below v, but not for sections. reload is the reload tag of the setting or else of its section.
func leaves(v reflect.Value, path, section string, visit func(path, reload string, v reflect.Value)) {
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, options, _ := strings.Cut(tag.Get("yaml"), ",")
		reload := gocmp.Or(tag.Get("reload"), section)
		at := strings.TrimPrefix(path+"."+name, ".")
		switch f := v.Field(i); {
		case name == "-" || name == "orgs":
		case strings.Contains(options, "inline"):
			leaves(f, path, section, visit)
		case whole[f.Type()], f.Kind() != reflect.Struct:
			visit(at, reload, f)
		default:
			leaves(f, at, reload, visit)
		}
	}
}

// whole are the structs that change as one.
var whole = map[reflect.Type]bool{
	reflect.TypeFor[settings.TLS](): true, reflect.TypeFor[settings.MutualTLS](): true, reflect.TypeFor[strictyaml.Secret](): true, reflect.TypeFor[netip.Addr](): true,
	reflect.TypeFor[files.Path](): true, reflect.TypeFor[files.Target](): true, reflect.TypeFor[files.Credential](): true, reflect.TypeFor[egress.URL](): true,
}

// change gives a setting another value.
func change(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[settings.TLS]():
		v.Set(reflect.ValueOf(settings.TLS{Pair: new(tls.Certificate)}))
	case v.Type() == reflect.TypeFor[settings.MutualTLS]():
		v.Set(reflect.ValueOf(settings.MutualTLS{Pair: new(tls.Certificate)}))
	case v.Type() == reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.MustParseAddr("127.0.0.9")))
	case v.Type() == reflect.TypeFor[strictyaml.Secret]():
		v.Set(reflect.ValueOf(strictyaml.NewSecret("another secret")))
	case v.Type() == reflect.TypeFor[files.Path]():
		v.Set(reflect.ValueOf(files.UnrestrictedPath("/another")))
	case v.Type() == reflect.TypeFor[files.Target]():
		v.Set(reflect.ValueOf(files.UnrestrictedTarget("/another")))
	case v.Type() == reflect.TypeFor[files.Credential]():
		v.Set(reflect.ValueOf(files.UnrestrictedCredential("/another")))
	case v.Type() == reflect.TypeFor[egress.URL]():
		v.Set(reflect.ValueOf(egress.UnrestrictedURL("https://another.example")))
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.CanFloat():
		v.SetFloat(v.Float() / 2)
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "1")
	case v.Kind() == reflect.Slice:
		v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	}
}

// TestChangesThatRequireARestartAreNamed changes each setting there is, one at a time: those that are tagged so, and no others, are
// named in the log and by the admin listener.
func TestChangesThatRequireARestartAreNamed(t *testing.T) {
	reload := make(map[string]string)
	cfg := settings.Default()
	cfg.Platform.BaseURL, cfg.Redis.Embedded = "http://127.0.0.1:1", true
	logs := new(world.Buffer)
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr()), Logger: logs.Logger()})

	restarts := 0
	var paths []string
	leaves(reflect.ValueOf(&cfg).Elem(), "", "", func(path, tag string, _ reflect.Value) {
		paths = append(paths, path)
		reload[path] = tag
	})
	for _, path := range paths {
		next := cfg
		leaves(reflect.ValueOf(&next).Elem(), "", "", func(p, _ string, v reflect.Value) {
			if p == path {
				change(v)
			}
		})
		var want []string
		switch reload[path] {
		case strictyaml.Restart:
			want = []string{path}
			restarts++
		case "live":
		default:
			t.Errorf("%s: no reload tag says whether a new value requires a restart", path)
		}
		got := strictyaml.NeedRestart(cfg, next)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: settings that require a restart (-want +got):\n%s", path, diff)
		}
		if len(want) == 0 {
			continue
		}
		if err := g.Swap(next); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if line := `"configuration change requires a restart","field":"` + path + `"`; !strings.Contains(logs.String(), line) {
			t.Errorf("the log does not say %s", line)
		}
		if status := get(g, "/admin/status"); !strings.Contains(status, `"`+path+`"`) {
			t.Errorf("/admin/status does not name %s: %s", path, status)
		}
	}
	if restarts < 50 {
		t.Errorf("only %d settings require a restart", restarts)
	}
	if err := g.Swap(cfg); err != nil {
		t.Fatal(err)
	}
	if status := get(g, "/admin/status"); strings.Contains(status, "restart") {
		t.Errorf("with the settings it was started with, /admin/status says %s", status)
	}
}

func get(g *gateway.Gateway, path string) string {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil)
	g.AdminHandler().ServeHTTP(w, r)
	return w.Body.String()
}

// The level of the log is that of the configuration in force; one with a fault leaves it.
func TestTheLevelOfTheLogIsReloaded(t *testing.T) {
	cfg := settings.Default()
	cfg.Platform.BaseURL, cfg.Redis.Embedded = "http://127.0.0.1:1", true
	level := new(slog.LevelVar)
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, miniredis.RunT(t).Addr()), LogLevel: level})
	for _, want := range []slog.Level{slog.LevelDebug, slog.LevelError, slog.LevelInfo} {
		cfg.Log.Level = settings.LogLevel(strings.ToLower(want.String()))
		if err := g.Swap(cfg); err != nil {
			t.Fatal(err)
		}
		if got := level.Level(); got != want {
			t.Errorf("the level is %s, want %s", got, want)
		}
	}
	cfg.Log.Level, cfg.Platform.BaseURL = "debug", "none"
	if err := g.Swap(cfg); err == nil || level.Level() != slog.LevelInfo {
		t.Errorf("Swap = %v with level %s, want an error and %s", err, level.Level(), slog.LevelInfo)
	}
}

// The handling of calls while the store is away is that of the configuration in force, for
// organisations that do not say it themselves.
func TestFailurePoliciesAreReloaded(t *testing.T) {
	t.Parallel()
	cfg := settings.Default()
	cfg.Platform.BaseURL, cfg.Redis.Embedded = "http://127.0.0.1:1", true
	limit := ratelimit.Limit{Minute: 10}
	keys := []settings.Key{{ID: "ann", Digest: identity.DigestOf("key_of_ann")}}
	own := []settings.Key{{ID: "bob", Digest: identity.DigestOf("key_of_bob")}}
	cfg.Orgs = []settings.Org{
		{ID: "acme", Credential: strictyaml.NewSecret("pk-1"), Limit: limit, Keys: keys},
		{ID: "own", Credential: strictyaml.NewSecret("pk-2"), Limit: limit, Keys: own, Failure: settings.Failure{Read: ratelimit.FailClosed}},
	}
	store := miniredis.RunT(t)
	g := world.Gateway(t, cfg, gateway.Deps{Redis: world.Redis(t, store.Addr())})
	store.Close()
	for _, tt := range []struct {
		failure ratelimit.Failure
		counted bool // whether a call is refused because it cannot be counted
	}{{ratelimit.FailClosed, true}, {ratelimit.FailOpen, false}, {ratelimit.FailClosed, true}} {
		cfg.Limits.Failure.Read = tt.failure
		if err := g.Swap(cfg); err != nil {
			t.Fatal(err)
		}
		for key, refused := range map[string]bool{"key_of_ann": tt.counted, "key_of_bob": true} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/v2/pods", nil)
			r.Header.Set("Authorization", "Bearer "+key)
			g.Handler().ServeHTTP(w, r)
			if got := w.Code == http.StatusServiceUnavailable; got != refused {
				t.Errorf("with %s, %s is answered %d: %s", tt.failure, key, w.Code, w.Body.String())
			}
		}
	}
}
