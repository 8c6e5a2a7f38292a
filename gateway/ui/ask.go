package ui

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// part holds the result of one API call of a page, or the reason why it failed.
type part[T any] struct {
	Is    T
	Fault string
	// Status is the HTTP status of an error, or 0 on success.
	Status int
}

// OK reports whether the call succeeded.
func (p part[T]) OK() bool { return p.Status == 0 }

// partOf returns the part for the result of an API call.
func partOf[T any](x T, err error) part[T] {
	status, fault := adminapi.StatusOf(err)
	return part[T]{x, fault, status}
}

// ask calls an endpoint for a part of a page.
func ask[T any](v *visit, pattern string, values url.Values) part[T] {
	return partOf(reply[T](v, pattern, values, nil))
}

// shows returns the load function of a page that shows the response of one endpoint to the parameters of the page.
func shows[T, D any](pattern string, build func(v *visit, x *T) D) func(v *visit) (any, int, string) {
	return func(v *visit) (any, int, string) {
		x := ask[T](v, pattern, v.since(v.query(pattern)))
		return build(v, &x.Is), x.Status, x.Fault
	}
}

// reply calls an endpoint. It adds the organisation of the page if the endpoint has that parameter and values does not set it.
func reply[T any](v *visit, pattern string, values url.Values, body []byte) (T, error) {
	if values = maps.Clone(values); values == nil {
		values = url.Values{}
	}
	r := v.rows.Endpoint(pattern)
	takesOrg := r != nil && slices.ContainsFunc(r.Parameters(), func(p adminapi.Param) bool { return p.Name == "org" })
	if takesOrg && values.Get("org") == "" && v.org != "" {
		values.Set("org", v.org)
	}
	ctx := v.r.Context()
	if v.patient != nil && slices.Contains([]string{auditResources, tryRow, replayRow}, pattern) {
		ctx = v.patient.Context()
	}
	return adminapi.Call[T](ctx, v.rows, pattern, v.scope, values, body)
}

// together runs the API calls of a page concurrently. It re-raises a panic of a call on this goroutine, where the server recovers it.
func together(questions ...func()) {
	var all errgroup.Group
	for _, question := range questions {
		all.Go(func() error { return panics.Catch(question) })
	}
	panics.Raise(all.Wait())
}

// query returns the non-empty parameters of the page that are also parameters of the endpoint.
func (v *visit) query(pattern string) url.Values {
	out := url.Values{}
	given := v.r.URL.Query()
	params := v.rows.Endpoint(pattern).Parameters()
	for i := range params {
		for _, value := range given[params[i].Name] {
			if value != "" {
				out.Add(params[i].Name, value)
			}
		}
	}
	return out
}

// since adds the start of the page's time range to the parameters of an endpoint that lists the latest entries.
func (v *visit) since(values url.Values) url.Values {
	if values.Get("since") == "" && v.period.Name != "" {
		values.Set("since", v.period.Since())
	}
	return values
}

// pageSize is the number of rows on one page of a table.
const pageSize = 100

// paging describes the visible rows of a list, such as "1–100 of 250", and links to other rows. Its fields may be empty.
type paging struct{ Shown, Prev, Next string }

// cut returns the rows on the page that the parameter page selects.
func cut[T any](v *visit, list []T) (rows []T, p paging) {
	pages := max(1, (len(list)+pageSize-1)/pageSize)
	n, _ := strconv.Atoi(v.r.FormValue("page")) // invalid values are read as 0
	n = min(max(n, 1), pages)
	from, to := (n-1)*pageSize, min(n*pageSize, len(list))
	if pages > 1 {
		p.Shown = count(int64(from+1)) + "–" + count(int64(to)) + " of " + count(int64(len(list)))
	}
	if n > 1 {
		p.Prev = v.With("page", strconv.Itoa(n-1))
	}
	if n < pages {
		p.Next = v.With("page", strconv.Itoa(n+1))
	}
	return list[from:to], p
}
