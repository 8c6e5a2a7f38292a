package ui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// page is one page of a console.
type page struct {
	// name is that of its template, and title its heading.
	name, title string
	// at is its path below that of the console; empty is the name.
	at string
	// asks is the pattern of the row that the page is about: only askers of that row see the page. It is empty for pages of callers.
	asks string
	// group is the heading in the navigation, and icon the entry's icon; a page without an icon is not in the navigation.
	group, icon string
	// under is the name of the page that the navigation marks in its place; empty is the page itself.
	under string
	// lead limits the entry in the navigation to leads.
	lead bool
	// period is the name of the default time range; a page without one has no time range.
	period string
	// counts says that load sets the badges of the navigation, of facts that it asks for anyway.
	counts bool
	// load asks the rows. A status other than 0 is that of the page.
	load func(v *visit) (data any, status int, fault string)
}

// first is the path of the first page below that of the console, in the form of [http.ServeMux].
const first = "{$}"

// below returns the route of the page, below the path of the console.
func (p *page) below() string { return cmp.Or(p.at, p.name) }

// serves reports whether a path below the console is that of the page.
func (p *page) serves(path string) bool {
	if name, value := p.wildcard(path); name != "" {
		return value != ""
	}
	return path == strings.TrimSuffix(p.below(), first)
}

// wildcard returns the name of the path's parameter, "" for a page without one, and its value for a path, "" for that of another page.
func (p *page) wildcard(path string) (name, value string) {
	before, name, _ := strings.Cut(strings.TrimSuffix(p.at, "}"), "{")
	if name == "" || name == "$" {
		return "", ""
	}
	value, ok := strings.CutPrefix(path, before)
	if !ok || strings.Contains(value, "/") {
		return name, ""
	}
	return name, value
}

// entry returns the name of the page that the navigation marks.
func (p *page) entry() string { return cmp.Or(p.under, p.name) }

// show serves a page. The badges of the navigation are read while the page is.
func (c *Console) show(v *visit, p *page) {
	ctx, cancel := context.WithTimeout(v.r.Context(), operator.PartsTime)
	defer cancel()
	v.patient, v.r = v.r, v.r.WithContext(ctx)
	v.enter(p)
	var data any
	var status int
	var fault string
	parts := []func(){func() { data, status, fault = p.load(v) }}
	if !p.counts {
		parts = append(parts, v.readBadges)
	}
	together(parts...)
	switch {
	case status == http.StatusUnauthorized: // the key of the session was revoked
		v.toLogin()
	case status != 0 && data == nil:
		v.render(status, "fault", frame{Title: http.StatusText(status), Page: p.entry(), Fault: fault})
	default:
		v.render(cmp.Or(status, http.StatusOK), p.name, frame{Title: p.title, Page: p.entry(), Fault: fault, Data: data})
	}
}

// enter makes p the page of the visit, with its time range.
func (v *visit) enter(p *page) {
	v.page = p
	if p.period != "" {
		v.period = newPeriod(v.r.URL.Query(), p.period, v.now(), v.zone())
	}
}

// pageNamed returns the page of a template.
func (c *Console) pageNamed(name string) *page {
	return c.pages[slices.IndexFunc(c.pages, func(p *page) bool { return p.name == name })]
}
