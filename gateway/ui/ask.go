package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tollgate-dev/tollgate/config/panics"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/row"
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

// ask asks a row. The organisation of the page is added where the row has that parameter and the values do not.
func ask[T any](v *visit, pattern string, values url.Values) (out part[T]) {
	answer, err := v.answer(pattern, values, nil)
	if err == nil {
		out.Is, err = as[T](answer)
	}
	out.Status, out.Fault = admin.StatusOf(err)
	return out
}

// together asks the questions of a page at once. A panic of a question is raised here, where the server recovers it.
func together(questions ...func()) {
	var all errgroup.Group
	for _, question := range questions {
		all.Go(func() error { return panics.Catch(question) })
	}
	panics.Raise(all.Wait())
}

func (v *visit) answer(pattern string, values url.Values, body []byte) (any, error) {
	r := v.rows[pattern]
	if r == nil {
		return nil, row.RefusedError{Status: http.StatusNotFound, Reason: "this gateway does not know " + pattern}
	}
	if values == nil {
		values = url.Values{}
	}
	takesOrg := slices.ContainsFunc(r.Parameters(), func(p row.Param) bool { return p.Name == "org" })
	if takesOrg && values.Get("org") == "" && v.org != "" {
		values.Set("org", v.org)
	}
	q := v.r
	if v.patient != nil && pattern == auditResources {
		q = v.patient
	}
	return v.deps.Ask(q.Context(), r, v.scope, peer(q), values, body)
}

// as returns the answer of a row as a type. An answer of another type is read from its JSON, the form in which the API sends it.
func as[T any](answer any) (out T, err error) {
	switch a := answer.(type) {
	case T:
		return a, nil
	case *T:
		return *a, nil
	case map[string]any:
		if members(reflect.ValueOf(&out).Elem(), a) {
			return out, nil
		}
	}
	text, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("read an answer: %w", err)
	}
	return out, nil
}

// members sets the fields of a struct to the members of an answer. It returns false if they are of other types: a long list is not read from
// its JSON for nothing.
func members(out reflect.Value, answer map[string]any) bool {
	set := 0
	for field, to := range out.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if given := reflect.ValueOf(answer[name]); given.IsValid() && given.Type().AssignableTo(field.Type) {
			to.Set(given)
			set++
		}
	}
	return set == len(answer)
}

// query returns the parameters of the page that a row has, without empty ones.
func (v *visit) query(pattern string) url.Values {
	out := url.Values{}
	given := v.r.URL.Query()
	params := v.rows[pattern].Parameters()
	for i := range params {
		for _, value := range given[params[i].Name] {
			if value != "" {
				out.Add(params[i].Name, value)
			}
		}
	}
	return out
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
