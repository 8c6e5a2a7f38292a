package parity

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/audit"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// Operators see each change, in each dialect and by whom; those of one organisation see its
// changes alone, whichever they ask for.
func TestAuditLogIsListed(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
		d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"<b>a</b>","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`))
		for _, change := range []string{"/admin/limits/reset?org=acme", "/admin/limits/reset?org=globex"} {
			if w := d.as(t, "ada", "POST", change); w.Code != 204 {
				t.Fatalf("%s: %d %s", change, w.Code, w.Body)
			}
		}
		if w := d.as(t, "gary", "POST", "/admin/limits/reset"); w.Code != 204 { // of his own
			t.Fatalf("gary: %d %s", w.Code, w.Body)
		}
		seen := func(name, query string) (told string) {
			w := d.as(t, name, "GET", "/admin/audit/log?"+query)
			var out audit.Page
			if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
				t.Fatalf("%s as %s: %d %s", query, name, w.Code, w.Body)
			}
			for _, c := range out.Changes {
				told += c.SubjectOrg() + " " + c.Key + c.Who + " " + c.Dialect + c.Revision[:min(4, len(c.Revision))] + "\n"
			}
			return told
		}
		const globex, acme = "globex gary \nglobex ada \n", "acme ada \nacme key_research v1\nacme key_research v2\n"
		if got := seen("olga", ""); !strings.HasPrefix(got, globex+acme) || strings.Count(got, "\n") != 6 {
			t.Errorf("all: %q", got)
		}
		for _, tc := range []struct{ name, query, want string }{
			{"olga", "org=acme", acme},
			{"olga", "org=globex", globex},
			{"gary", "", globex},
			{"gary", "org=globex&by=ada", "globex ada \n"},
			{"gary", "by=key_research", ""},
			{"olga", "resource=%3Cb%3Ea%3C/b%3E", "acme key_research v1\n"},
			{"olga", "operation=createPod&limit=1", "acme key_research v1\n"},
		} {
			if got := seen(tc.name, tc.query); got != tc.want {
				t.Errorf("%s as %s: %q, want %q", tc.query, tc.name, got, tc.want)
			}
		}
		for name, query := range map[string]string{"gary": "org=acme", "vera": "org=acme", "anna": ""} {
			if w := d.as(t, name, "GET", "/admin/audit/log?"+query); w.Code != 403 {
				t.Errorf("%s as %s: %d %s", query, name, w.Code, w.Body)
			}
		}
		for _, bad := range []string{"before=-1", "limit=501", "org=acmee", "since=yesterday", "org=acme&org=globex"} {
			if w := d.as(t, "olga", "GET", "/admin/audit/log?"+bad); w.Code != 400 && w.Code != 404 {
				t.Errorf("%s: %d %s", bad, w.Code, w.Body)
			}
		}
	}, administered, func(d *door) { audited(filepath.Join(t.TempDir(), "audit.log"))(d) })
}

// Admins see the configuration in force without its secrets, and those of one organisation its section alone.
func TestConfigurationIsShown(t *testing.T) {
	t.Parallel()
	d := openDoor(t, "http", administered)
	shown := func(name, query string) operator.ActiveConfig {
		w := d.as(t, name, "GET", "/admin/config?"+query)
		var out operator.ActiveConfig
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 {
			t.Fatalf("%s as %s: %d %s", query, name, w.Code, w.Body)
		}
		if strings.Contains(out.YAML, canary) || out.Revision == "" || !out.Loaded.Equal(start) {
			t.Errorf("%s as %s: %+v", query, name, out)
		}
		return out
	}
	for _, tc := range []struct {
		name, query string
		has, not    string
	}{
		{"ada", "", "env: ACME", "no such text"},
		{"ada", "", "key_globex", "no such text"},
		{"ada", "org=acme", "key_tiny", "key_globex"},
		{"gary", "", "env: GLOBEX", "key_tiny"},
		{"gary", "org=globex", "key_globex", "gary"},
	} {
		if text := shown(tc.name, tc.query).YAML; !strings.Contains(text, tc.has) || strings.Contains(text, tc.not) {
			t.Errorf("%s as %s: want %q and not %q in:\n%s", tc.query, tc.name, tc.has, tc.not, text)
		}
	}
	for name, query := range map[string]string{"gary": "org=acme", "olga": "", "vera": "org=acme"} {
		if w := d.as(t, name, "GET", "/admin/config?"+query); w.Code != 403 {
			t.Errorf("%s as %s: %d %s", query, name, w.Code, w.Body)
		}
	}
}
