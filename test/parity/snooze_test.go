package parity

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/money"
)

// linked gives acme links in notices, and a key that may only read.
func linked(d *door) {
	d.text = "public_url: https://gateway.example\n" + strings.NewReplacer(
		"alerts: {", "alerts: {snooze_secret: {env: ALERTS}, ",
		"      - policy: gpu_count\n", "      - policy: roles\n      - policy: gpu_count\n",
		"      - {id: key_platform,", "      - {id: key_viewer, team: research, sha256: SHA256(key_viewer), roles: [viewer]}\n      - {id: key_platform,",
	).Replace(d.text)
}

// keptUntil is until when a resource is kept, "" if it is not, and it is not idle.
func (d *door) keptUntil(t *testing.T, id string) string {
	t.Helper()
	for _, r := range asOperator[money.IdleList](t, d, "GET", "/admin/spend/idle?org=acme").Resources {
		if r.ID == id && r.SnoozedUntil != nil {
			return r.SnoozedUntil.Format(time.RFC3339)
		}
	}
	return ""
}

// keeps lists the intents in the audit log to keep something.
func keeps(t *testing.T, log string) (lines []auditLine) {
	t.Helper()
	for _, l := range readAudit(t, log) {
		if l.Phase == "intent" && l.Operation == "snooze" {
			lines = append(lines, l)
		}
	}
	return lines
}

// Whoever may change an idle pod keeps it with a key, and whoever got the notice by its
// link; a pod of another team does not exist for a caller, and neither changes anything
// before it is asked to.
func TestOwnersKeepWhatIsIdle(t *testing.T) {
	for _, name := range []string{"http", "envoy"} {
		t.Run(name, func(t *testing.T) {
			r, log := newAlertReceiver(t), filepath.Join(t.TempDir(), "audit.log")
			r.calls.Add(1) // takes the first delivery, too
			d := openDoor(t, name, watching("{for: 10m, action: stop, notice: 5m}"), apart("{change: team, exempt: [viewer]}"), told(r, "127.0.0.0/8"), linked, audited(log))
			ids, links := make(map[string]string), make(map[string]*url.URL)
			for _, pod := range []string{"by link", "by key", "idle"} {
				ids[pod] = d.rented(t, podNamed(pod))
				d.used(t, 0, 3, ids[pod])
			}
			d.watch(t, 12)
			for range ids {
				_, body, _ := strings.Cut(<-r.got, " ")
				data, _ := field(t, body, "data").(map[string]any)
				link, err := url.Parse(fmt.Sprint(data["snooze_url"]))
				if err != nil || link.Host != "gateway.example" {
					t.Fatalf("notice %s: want a link to the gateway (%v)", body, err)
				}
				links[fmt.Sprint(data["name"])] = link
			}
			link := links["by link"].RequestURI()
			changed := func(name, value string) string {
				q := links["by link"].Query()
				q.Set(name, value)
				return "/tollgate/snooze?" + q.Encode()
			}
			keep := "/tollgate/snooze/" + ids["by key"]
			for _, tt := range []struct {
				name, method, target, key, body, header string
				status                                  int
				want                                    string
			}{
				{"a link is fetched", "GET", link, "", "", "", 200, `<form method="post"`},
				{"and again", "GET", link, "", "", "", 200, ids["by link"]},
				{"another id", "POST", changed("id", ids["idle"]), "", "", "", 404, "invalid or has expired"},
				{"another organisation", "POST", changed("org", "globex"), "", "", "", 404, "invalid or has expired"},
				{"a later end", "POST", changed("expires", "4000000000"), "", "", "", 404, "invalid or has expired"},
				{"no signature", "POST", changed("signature", ""), "", "", "", 404, "invalid or has expired"},
				{"more than there is", "POST", link + "&for=700h", "", "", "", 404, "invalid or has expired"},
				{"a link has no body", "POST", link, "", "{}", "", 400, "must not have a body"},
				{"without a key", "POST", keep, "", "", "", 401, ""},
				{"a viewer", "POST", keep, "key_viewer", "", "", 403, "roles: "},
				{"another team", "POST", keep, "key_other", "", "", 404, "no billable resource of the organisation has this id"},
				{"another organisation's key", "POST", keep, "key_globex", "", "", 404, "no billable resource of the organisation has this id"},
				{"what does not exist", "POST", "/tollgate/snooze/" + nothing, "key_research", "", "", 404, "no billable resource of the organisation has this id"},
				{"for too long", "POST", keep + "?for=721h", "key_research", "", "", 400, "at most 720h0m0s"},
				{"no duration", "POST", keep + "?for=long", "key_research", "", "", 400, "such as for=24h"},
				{"another parameter", "POST", keep + "?until=1h", "key_research", "", "", 400, "must be empty or for=DURATION"},
				{"only asked", "POST", keep, "key_research", "", "Tollgate-Dry-Run: true", 200, `"verdict":"allowed"`},
			} {
				var header []string
				if tt.header != "" {
					header = append(header, tt.header)
				}
				a := d.ask(t, request(tt.method, tt.target, tt.key, tt.body, header...))
				if a.Status != tt.status || !strings.Contains(a.Body, tt.want) {
					t.Errorf("%s: %d %s, want %d and %s", tt.name, a.Status, a.Body, tt.status, tt.want)
				}
			}
			if got := d.keptUntil(t, ids["by link"]) + d.keptUntil(t, ids["by key"]); got != "" {
				t.Fatalf("kept until %s before it was asked for", got)
			}
			if lines := keeps(t, log); len(lines) > 0 {
				t.Errorf("audit log = %v before anything was kept", lines)
			}
			a := d.ask(t, request("POST", link, "", ""))
			if a.Status != 200 || !strings.Contains(a.Body, "Snoozed until 2026-11-22 10:12 UTC") || a.Header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("the link: %d %s, want that it is kept", a.Status, a.Body)
			}
			a = d.ask(t, request("POST", keep+"?for=2h", "key_research", ""))
			if a.Status != 200 || field(t, a.Body, "until") != "2026-11-21T12:12:20Z" {
				t.Errorf("the key: %d %s, want that it is kept", a.Status, a.Body)
			}
			d.watch(t, 7)
			for pod, id := range ids {
				want := map[string]string{"idle": "EXITED"}[pod]
				if want == "" {
					want = "RUNNING"
				}
				if got := d.podStatus(t, id); got != want {
					t.Errorf("%s is %s, want %s", pod, got, want)
				}
			}
			want := []auditLine{
				{Phase: "intent", Operation: "snooze", Who: "link", Name: "by link", Resource: ids["by link"], Query: "for=24h0m0s"},
				{Phase: "intent", Operation: "snooze", Key: "key_research", Name: "by key", Resource: ids["by key"], Query: "for=2h0m0s"},
			}
			if diff := cmp.Diff(want, keeps(t, log)); diff != "" {
				t.Errorf("audit log, want-, got+:\n%s", diff)
			}
			if strings.Contains(d.logs.String(), links["by link"].Query().Get("signature")) {
				t.Error("the log holds the signature of a link")
			}
			a = d.ask(t, request("POST", keep+"?for=0s", "key_research", ""))
			if a.Status != http.StatusOK || field(t, a.Body, "until") != nil {
				t.Errorf("letting go: %d %s, want until null", a.Status, a.Body)
			}
			d.advance(8 * 24 * time.Hour)
			if a := d.ask(t, request("GET", link, "", "")); a.Status != 404 {
				t.Errorf("a link that has expired: %d %s, want 404", a.Status, a.Body)
			}
		})
	}
}
