package ui

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// frame holds the data that all pages show and the data of one page. Templates call its methods.
type frame struct {
	*visit

	Title string
	// Page is the name of the current page in the navigation.
	Page string
	// Fault explains why a part is missing, and Failure why the submission of a form failed.
	Fault, Failure string
	// Done is the notice of the previous action.
	Done string
	// Data is the data of the page.
	Data any
}

// head is the header of a page. Zero fields are omitted.
type head struct {
	Title string
	// Text describes the page or its subject in one sentence.
	Text  string
	Badge *status
	// Parents link to the parent pages.
	Parents []link
	Tabs    []tab
	Actions []button
}

// headed is implemented by page data with its own header, such as data that embeds a head. The header of other pages has only the title.
type headed interface {
	Head(f *frame) head
}

// Head implements headed.
func (h head) Head(*frame) head { return h }

// Head returns the header of the page. The title defaults to the title of the frame, which is also the title of an error page.
func (f *frame) Head() (h head) {
	if data, ok := f.Data.(headed); ok {
		h = data.Head(f)
	}
	if h.Title == "" {
		h.Title = f.Title
	}
	return h
}

// Base returns the path of the first page, with a trailing slash.
func (v *visit) Base() string { return v.path }

// Link returns the address of a page of the console, with the organisation and the selected time range. pairs holds names and values of
// further parameters; parameters with an empty value are omitted.
func (v *visit) Link(at string, pairs ...string) string {
	q := url.Values{}
	if v.r != nil && v.period.Chosen {
		q = v.given("range", "from", "to")
	}
	if v.org != "" && v.rows != nil {
		q.Set("org", v.org)
	}
	return address(v.path+at, q, pairs)
}

// parents returns the link to the parent page with the given title and path.
func (v *visit) parents(title, at string) []link { return []link{{Title: title, Path: v.Link(at)}} }

// With returns the address of this page with other parameters. An empty value removes a parameter.
func (v *visit) With(pairs ...string) string {
	return address(v.r.URL.Path, v.r.URL.Query(), pairs)
}

// address returns a path with the parameters q after setting pairs of names and values.
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

// Who returns the name of the principal, or "" before login.
func (f *frame) Who() string { return f.scope.Name }

// Roles describes the roles of the principal.
func (f *frame) Roles() string { return joined(f.scope.Roles) }

// Open reports whether the listener accepts requests without a token.
func (f *frame) Open() bool { return f.people.open() }

// Searchable reports whether the console has a search page.
func (f *frame) Searchable() bool { return f.rows != nil }

// Org returns the organisation of the page.
func (f *frame) Org() string { return f.org }

// Orgs returns the organisations that the principal may access.
func (f *frame) Orgs() []adminapi.Tenant { return f.scope.Visible() }

// Switch returns links that switch to another organisation. Each link leads to the same page or, if this page is about a single object, to
// the first page. It keeps a named time range and drops all other parameters, because they refer to the current organisation.
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

// tenant returns the organisation of the page, or an empty one if the principal has no access to it.
func (v *visit) tenant() (t adminapi.Tenant) {
	visible := v.scope.Visible()
	if i := slices.IndexFunc(visible, func(t adminapi.Tenant) bool { return t.ID == v.org }); i >= 0 {
		t = visible[i]
	}
	return t
}

// Teams returns the teams of the organisation.
func (v *visit) Teams() []string { return v.tenant().Teams }

// Here returns the path and query of the page.
func (v *visit) Here() string { return v.r.URL.RequestURI() }

// Read reports whether the request is a GET.
func (f *frame) Read() bool { return f.r.Method == http.MethodGet }

// Back returns the address of the page that contains the submitted form, or "" if the request is not a form submission.
func (f *frame) Back() string {
	if back := f.r.PostFormValue("back"); back != "" {
		return f.local(back)
	}
	return ""
}

// Return returns the address that the browser shows after the user submits a form in the layout of the page. It returns the address of this
// page or, if this page is the response to a POST request, the address of the console's first page.
func (f *frame) Return() string {
	if f.Read() {
		return f.Here()
	}
	return f.path
}

// Path returns the path of the page.
func (v *visit) Path() string { return v.r.URL.Path }

// Query returns a query parameter of the page.
func (v *visit) Query(name string) string { return v.r.URL.Query().Get(name) }

// Kept returns hidden form fields that preserve the query parameters of the page. without contains the names of the parameters that the
// form's own fields set. Kept omits these parameters and empty ones, and sorts the fields by name.
func (v *visit) Kept(without ...string) (out []hiddenField) {
	q := v.r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		for _, value := range q[name] {
			if value != "" && !slices.Contains(without, name) {
				out = append(out, hiddenField{name, value})
			}
		}
	}
	return out
}

// Now returns the current time in the organisation's zone.
func (v *visit) Now() time.Time { return v.now().In(v.zone()) }

// When returns a time for the template "when".
func (v *visit) When(t any) when {
	at, _ := timeOf(t)
	if !at.IsZero() {
		at = at.In(v.zone())
	}
	return when{At: at, Now: v.now()}
}
