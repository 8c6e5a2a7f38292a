package ui

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/approval"
)

// frame holds the data that every page shows, and the page's own. Templates call its methods.
type frame struct {
	*visit

	Title string
	// Page is the name of the page among those of the navigation.
	Page string
	// Fault is why something is not shown, and Failure why the form that was sent has failed.
	Fault, Failure string
	// Done is the notice of the action before the page.
	Done string
	// Data is the page's own.
	Data any

	// action and typed are the form that has failed and its fields; nil for none.
	action string
	typed  url.Values
}

// link is an entry of the navigation.
type link struct {
	Title, Path string
	Here        bool
	// Waiting is how many entries of the page wait for an answer.
	Waiting int
}

// Nav returns the pages that the asker may see, none before the login.
func (f *frame) Nav() (out []link) {
	if f.scope.Name == "" {
		return nil
	}
	for _, p := range f.pages {
		if p.nav && (p.asks == "" || f.may(p.asks)) && (!p.lead || f.session.Lead) {
			l := link{Title: p.title, Path: f.path + strings.TrimSuffix(p.below(), first) + f.OrgQuery(), Here: p.name == f.Page}
			if p.name == "approvals" && f.org != "" {
				l.Waiting = f.pending()
			}
			out = append(out, l)
		}
	}
	return out
}

// pending counts the requests that wait for approval, 0 without the store. A count is no look at them: it is not recorded.
func (f *frame) pending() (n int) {
	list, _ := adminapi.Call[approval.List](f.r.Context(), f.unrecorded, approvalList, f.scope, url.Values{"org": {f.org}}, nil)
	for i := range list.Approvals {
		if list.Approvals[i].State == approval.Pending {
			n++
		}
	}
	return n
}

// Base returns the path of the first page, with a slash at its end.
func (f *frame) Base() string { return f.path }

// OrgQuery returns the query that names the organisation, "" without one.
func (f *frame) OrgQuery() string {
	if f.org == "" {
		return ""
	}
	return "?" + url.Values{"org": {f.org}}.Encode()
}

// Who returns the name of the asker, "" before the login.
func (f *frame) Who() string { return f.scope.Name }

// Open reports whether the listener requires no token.
func (f *frame) Open() bool { return f.people.open() }

// Unnamed reports whether the asker gives a name for each record.
func (f *frame) Unnamed() bool { return f.scope.Anonymous }

// Org returns the organisation of the page.
func (f *frame) Org() string { return f.org }

// Orgs returns the organisations that the asker may see.
func (f *frame) Orgs() []adminapi.Tenant { return f.scope.Visible() }

// Teams returns the teams of the organisation.
func (f *frame) Teams() []string {
	for _, t := range f.Orgs() {
		if t.ID == f.org {
			return t.Teams
		}
	}
	return nil
}

// Here returns the address of the page.
func (f *frame) Here() string { return f.r.URL.RequestURI() }

// Read reports whether the page is the answer to a GET.
func (f *frame) Read() bool { return f.r.Method == http.MethodGet }

// Back returns the address of the page whose form was sent, "" for a page that is not the answer to one.
func (f *frame) Back() string {
	if back := f.r.PostFormValue("back"); back != "" {
		return f.local(back)
	}
	return ""
}

// Path returns the address of the page without its query.
func (f *frame) Path() string { return f.r.URL.Path }

// Query returns a parameter of the page.
func (f *frame) Query(name string) string { return f.r.URL.Query().Get(name) }

// With returns the address of the page with another value of a parameter.
func (f *frame) With(name, value string) string {
	q := f.r.URL.Query()
	q.Set(name, value)
	return f.r.URL.Path + "?" + q.Encode()
}

// Can reports whether the asker may ask a row.
func (f *frame) Can(pattern string) bool { return f.may(pattern) }

// Now returns the time of the page.
func (f *frame) Now() time.Time { return f.now().UTC() }

// templates returns the pages' templates, by name.
//
//nolint:gochecknoglobals // made once, of files that are embedded
var templates = sync.OnceValue(func() map[string]*template.Template {
	layout := template.Must(template.New("layout.html").Funcs(functions()).ParseFS(assets, "assets/layout.html"))
	files, err := assets.ReadDir("assets")
	if err != nil {
		panic(err) // it is embedded
	}
	out := make(map[string]*template.Template)
	for _, file := range files {
		name, isPage := strings.CutSuffix(file.Name(), ".html")
		if isPage && name != "layout" {
			out[name] = template.Must(template.Must(layout.Clone()).ParseFS(assets, "assets/"+file.Name()))
		}
	}
	return out
})

func functions() template.FuncMap {
	return template.FuncMap{
		"usd": usd, "dollars": dollars, "month": month, "short": short, "stamp": stamp, "age": age, "moment": moment, "gauge": newGauge, "pretty": pretty, "join": strings.Join,
		"list": func(items ...string) []string { return items }, "words": func(s string) string { return strings.ReplaceAll(s, "_", " ") },
		"both":    func(f *frame, e any) map[string]any { return map[string]any{"F": f, "E": e} },
		"percent": func(share float64) string { return strconv.Itoa(int(math.Round(100*share))) + " %" },
	}
}

// decimal reads an amount of the API.
func decimal(text string) float64 {
	n, _ := strconv.ParseFloat(text, 64) // it is 0 where there is none
	return n
}

// usd writes an amount with cents, and a small one with all its digits.
func usd(text string) string {
	n := decimal(text)
	if text == "" || n != 0 && math.Abs(n) < 0.01 {
		return text
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

// hoursPerMonth is the length of a month, as in all monthly prices of the gateway.
const hoursPerMonth = 730

// month returns the monthly amount of a rate per hour, in USD.
func month(perHour string) string {
	return strconv.FormatFloat(decimal(perHour)*hoursPerMonth, 'f', 2, 64)
}

// short returns the beginning of a long name.
func short(text string) string {
	if letters := []rune(text); len(letters) > 12 {
		return string(letters[:12]) + "…"
	}
	return text
}

// stamp writes a time for programs.
func stamp(t any) string {
	if at, ok := timeOf(t); ok {
		return at.Format(time.RFC3339)
	}
	return ""
}

// moment writes a time for people, with its zone; "" for none.
func moment(t any) string {
	if at, ok := timeOf(t); ok {
		return at.Format("2006-01-02 15:04 UTC")
	}
	return ""
}

func timeOf(t any) (time.Time, bool) {
	switch at := t.(type) {
	case time.Time:
		return at.UTC(), !at.IsZero()
	case *time.Time:
		if at != nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// age writes how long before a time another was.
func age(now time.Time, t any) string {
	at, ok := timeOf(t)
	if !ok {
		return ""
	}
	d := now.Sub(at)
	for _, u := range []struct {
		name string
		of   time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}} {
		if d >= u.of {
			return fmt.Sprintf("%d %s", d/u.of, u.name)
		}
	}
	return fmt.Sprintf("%d s", max(0, int(d.Seconds())))
}

// pretty writes a value as JSON with indents.
func pretty(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}
