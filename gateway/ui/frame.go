package ui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
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
}

// head is the header of a page. Its zero values are left out.
type head struct {
	Title string
	// Text describes the page or its subject in a sentence.
	Text  string
	Badge *status
	// Parents lead to the pages above this one.
	Parents []link
	Tabs    []tab
	Actions []button
}

// headed is page data that has a header of its own. Without it the header has the title of the page alone.
type headed interface {
	Head(f *frame) head
}

// Head returns the header of the page, with its title unless the data gives another. A page with a fault in the place of data has the
// frame's title.
func (f *frame) Head() (h head) {
	if data, ok := f.Data.(headed); ok {
		h = data.Head(f)
	}
	if h.Title == "" {
		h.Title = f.Title
	}
	return h
}

// Base returns the path of the first page, with a slash at its end.
func (v *visit) Base() string { return v.path }

// Link returns the address of a page below the console, with the organisation and the chosen time range. Names and values of further
// parameters follow one another; those without a value are left out.
func (v *visit) Link(at string, pairs ...string) string {
	q := url.Values{}
	if v.org != "" && v.rows != nil {
		q.Set("org", v.org)
	}
	if v.r != nil {
		for _, name := range []string{"range", "from", "to"} {
			if value := v.r.URL.Query().Get(name); value != "" && v.period.Chosen {
				q.Set(name, value)
			}
		}
	}
	return address(v.path+at, q, pairs)
}

// With returns the address of this page with other values of parameters; an empty value removes one.
func (v *visit) With(pairs ...string) string {
	return address(v.r.URL.Path, v.r.URL.Query(), pairs)
}

// address returns a path with parameters, after pairs of names and values are set in them.
func address(path string, q url.Values, pairs []string) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// Ranged reports whether the page has a time range.
func (f *frame) Ranged() bool { return f.period.Name != "" }

// Who returns the name of the asker, "" before the login.
func (f *frame) Who() string { return f.scope.Name }

// Roles describes the rights of the asker.
func (f *frame) Roles() string {
	if len(f.scope.Roles) == 0 {
		return ""
	}
	names := make([]string, len(f.scope.Roles))
	for i, r := range f.scope.Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// Open reports whether the listener requires no token.
func (f *frame) Open() bool { return f.people.open() }

// Searchable reports whether the console has a search.
func (f *frame) Searchable() bool { return f.rows != nil }

// Unnamed reports whether the asker gives a name for each record.
func (f *frame) Unnamed() bool { return f.scope.Anonymous }

// Org returns the organisation of the page.
func (f *frame) Org() string { return f.org }

// Orgs returns the organisations that the asker may see.
func (f *frame) Orgs() []adminapi.Tenant { return f.scope.Visible() }

// Switch returns links to this page, or to the first, of other organisations. The rest of the address would name things of this one.
func (f *frame) Switch() (out []link) {
	at := f.path
	if slices.ContainsFunc(f.pages, func(p *page) bool { return p == f.page && !strings.Contains(p.at, "{id}") }) {
		at = f.r.URL.Path
	}
	for _, o := range f.Orgs() {
		q := url.Values{"org": {o.ID}}
		if f.period.Chosen && f.period.Name != customPeriod {
			q.Set("range", f.period.Name)
		}
		out = append(out, link{Title: o.ID, Path: at + "?" + q.Encode(), Here: o.ID == f.org})
	}
	return out
}

// Teams returns the teams of the organisation.
func (v *visit) Teams() []string {
	for _, t := range v.scope.Visible() {
		if t.ID == v.org {
			return t.Teams
		}
	}
	return nil
}

// Here returns the address of the page.
func (v *visit) Here() string { return v.r.URL.RequestURI() }

// Read reports whether the page is the answer to a GET.
func (f *frame) Read() bool { return f.r.Method == http.MethodGet }

// Back returns the address of the page whose form was sent, "" for a page that is not the answer to one.
func (f *frame) Back() string {
	if back := f.r.PostFormValue("back"); back != "" {
		return f.local(back)
	}
	return ""
}

// Return returns the address to show after a form of the shell: this page, or the first after a POST.
func (f *frame) Return() string {
	if f.Read() {
		return f.Here()
	}
	return f.path
}

// Path returns the address of the page without its query.
func (v *visit) Path() string { return v.r.URL.Path }

// Query returns a parameter of the page.
func (v *visit) Query(name string) string { return v.r.URL.Query().Get(name) }

// Kept returns the parameters of the page, in order, without some: hidden fields of a form that replaces those.
func (v *visit) Kept(without ...string) (out []hiddenField) {
	q := v.r.URL.Query()
	names := make([]string, 0, len(q))
	for name := range q {
		if !slices.Contains(without, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range q[name] {
			if value != "" {
				out = append(out, hiddenField{name, value})
			}
		}
	}
	return out
}

// Can reports whether the asker may ask a row.
func (v *visit) Can(pattern string) bool { return v.may(pattern) }

// Now returns the time of the page, in the organisation's zone.
func (v *visit) Now() time.Time { return v.now().In(v.zone()) }

// When returns a time as the component "when" shows it.
func (v *visit) When(t any) when {
	at, _ := timeOf(t)
	if !at.IsZero() {
		at = at.In(v.zone())
	}
	return when{at, v.now()}
}
