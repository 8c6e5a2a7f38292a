package ui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// page describes a page of a console.
type page struct {
	// name is the name of the template, and title the heading of the page.
	name, title string
	// at is the path relative to the console. If empty, name is used.
	at string
	// asks is the pattern of the page's main endpoint. Only principals that may call it see the page. It is empty for pages of callers.
	asks string
	// group is the heading in the navigation, and icon the icon of the entry. A page without an icon is not in the navigation.
	group, icon string
	// under is the name of the page to highlight in the navigation. If empty, the page itself is highlighted.
	under string
	// lead restricts the navigation entry to leads.
	lead bool
	// period is the default time range. If empty, the page has no time range.
	period string
	// costs reports that the page shows the costs of the time range.
	costs bool
	// counts reports that load sets the badges of the navigation, using responses that the page needs anyway.
	counts bool
	// load calls the endpoints. A non-zero status becomes the status of the page.
	load func(v *visit) (data any, status int, fault string)
}

// first is the path of the first page relative to the console, as a pattern of [http.ServeMux].
const first = "{$}"

// below returns the route of the page, relative to the console.
func (p *page) below() string { return cmp.Or(p.at, p.name) }

// serves reports whether the page is served at a path relative to the console.
func (p *page) serves(path string) bool {
	if name, value := p.wildcard(path); name != "" {
		return value != ""
	}
	return path == strings.TrimSuffix(p.below(), first)
}

// wildcard returns the name of the page's path parameter and its value in path. The name is "" if the page has no parameter, and the value
// is "" if path belongs to another page.
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

// entry returns the name of the page that is highlighted in the navigation.
func (p *page) entry() string { return cmp.Or(p.under, p.name) }

// show serves a page.
func (v *visit) show(p *page) error {
	ctx, cancel := context.WithTimeout(v.r.Context(), operator.PartsTime)
	defer cancel()
	v.patient, v.r = v.r, v.r.WithContext(ctx)
	data, status, fault := v.loaded(p)
	switch d := data.(type) {
	case requestData:
		v.org = d.Caller.Org
	case searchData:
		if status == 0 && d.only != "" {
			http.Redirect(v.w, v.r, d.only, http.StatusSeeOther)
			return nil
		}
	}
	switch {
	case status == http.StatusUnauthorized: // the key of the session was revoked
		return errNoSession
	case status != 0 && data == nil:
		v.render(status, "fault", frame{Title: faultTitle(status), Page: p.entry(), Fault: fault})
	default:
		v.render(cmp.Or(status, http.StatusOK), p.name, frame{Title: p.title, Page: p.entry(), Fault: fault, Data: data})
	}
	return nil
}

// loaded returns the data of a page. It reads the badges of the navigation concurrently.
func (v *visit) loaded(p *page) (data any, status int, fault string) {
	err := v.enter(p)
	if err == nil && p.counts {
		return p.load(v)
	}
	together(v.readBadges, func() {
		if status, fault = adminapi.StatusOf(err); err == nil {
			data, status, fault = p.load(v)
		}
	})
	return data, status, fault
}

// enter sets the page and the time range of the visit. It returns an error if the address specifies an invalid time range.
func (v *visit) enter(p *page) error {
	v.page = p
	if p.period != "" {
		v.period = newPeriod(v.r.URL.Query(), p.period, v.now(), v.zone())
	}
	if p.costs {
		v.period = v.period.stored(v.now(), v.hourlyDays)
	}
	if v.period.Fault != "" {
		return adminapi.BadRequestError{Reason: v.period.Fault}
	}
	return nil
}

// pageNamed returns the page with the given template name.
func (c *Console) pageNamed(name string) *page {
	return c.pages[slices.IndexFunc(c.pages, func(p *page) bool { return p.name == name })]
}
