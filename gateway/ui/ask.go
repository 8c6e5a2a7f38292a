package ui

import (
	"net/url"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// part is the answer to one question of a page, or why there is none.
type part[T any] struct {
	Is    T
	Fault string
	// Status is that of the answer, 0 for success.
	Status int
}

// OK reports whether there is an answer.
func (p part[T]) OK() bool { return p.Status == 0 }

// ask asks a row for a part of a page.
func ask[T any](v *visit, pattern string, values url.Values) (out part[T]) {
	var err error
	out.Is, err = reply[T](v, pattern, values, nil)
	out.Status, out.Fault = adminapi.StatusOf(err)
	return out
}

// reply asks a row. The organisation of the page is added where the row has that parameter and the values do not.
func reply[T any](v *visit, pattern string, values url.Values, body []byte) (T, error) {
	if values == nil {
		values = url.Values{}
	}
	r := v.rows.Endpoint(pattern)
	takesOrg := r != nil && slices.ContainsFunc(r.Parameters(), func(p adminapi.Param) bool { return p.Name == "org" })
	if takesOrg && values.Get("org") == "" && v.org != "" {
		values.Set("org", v.org)
	}
	ctx := v.r.Context()
	if v.patient != nil && pattern == auditResources {
		ctx = v.patient.Context()
	}
	return adminapi.Call[T](ctx, v.rows, pattern, v.scope, values, body)
}

// together asks the questions of a page at once. A panic of a question is raised here, where the server recovers it.
func together(questions ...func()) {
	var all errgroup.Group
	for _, question := range questions {
		all.Go(func() error { return panics.Catch(question) })
	}
	panics.Raise(all.Wait())
}

// query returns the parameters of the page that a row has, without empty ones.
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

// since adds the begin of the page's time range to the parameters of a row that lists the latest entries.
func (v *visit) since(values url.Values) url.Values {
	if values.Get("since") == "" && v.period.Name != "" {
		values.Set("since", v.period.Since())
	}
	return values
}

// excerptSize is the number of rows of a table on one page.
const excerptSize = 100

// excerpt is some rows of a long list.
type excerpt[T any] struct {
	Rows []T
	// First and Last are the numbers of the first and the last of them, from 1; All is the length of the list.
	First, Last, All int
	// Before and After are the values of the parameter page for the rows before and after, "" for none.
	Before, After string
}

// Shown writes which rows these are.
func (e excerpt[T]) Shown() string {
	if e.Before+e.After == "" {
		return ""
	}
	return count(int64(e.First)) + "–" + count(int64(e.Last)) + " of " + count(int64(e.All))
}

// cut returns the rows of a list that the parameter page names.
func cut[T any](v *visit, list []T) excerpt[T] {
	pages := max(1, (len(list)+excerptSize-1)/excerptSize)
	n, _ := strconv.Atoi(v.r.FormValue("page")) // 0 for anything else
	n = min(max(n, 1), pages)
	from, to := (n-1)*excerptSize, min(n*excerptSize, len(list))
	e := excerpt[T]{Rows: list[from:to], First: from + 1, Last: to, All: len(list)}
	if n > 1 {
		e.Before = strconv.Itoa(n - 1)
	}
	if n < pages {
		e.After = strconv.Itoa(n + 1)
	}
	return e
}
