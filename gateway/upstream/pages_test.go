package upstream_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
)

// more is the pagination of a page that another follows.
func more(cursor string) string {
	return fmt.Sprintf(`"pagination":{"nextCursor":%q,"hasNextPage":true}`, cursor)
}

const last = `"pagination":{"nextCursor":null,"hasNextPage":false}`

func TestPages(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		pages []string
		// want is the whole list, or a part of the error of the last page.
		want string
	}{
		{"without pagination", []string{`{"pods":[{"id":"a"}]} `}, `{"pods":[{"id":"a"}],` + last + `}`},
		{"empty without pagination", []string{`{"pods":[]}`}, `{"pods":[],` + last + `}`},
		{"one page", []string{`{"pods":[{"id":"a"}],` + last + `}`}, `{"pods":[{"id":"a"}],` + last + `}`},
		{"a cursor on the last page is not followed", []string{`{"pods":[],"pagination":{"nextCursor":"x","hasNextPage":false}}`}, `{"pods":[],"pagination":{"nextCursor":"x","hasNextPage":false}}`},
		{"no list", []string{`{"detail":"none"}`}, `{"detail":"none"}`},
		{
			"three pages",
			[]string{`{"pods":[{"id":"a"},{"id":"b"}],` + more("1") + `}`, `{` + more("2") + `,"pods":[]}`, ` { "pods" : [ {"id":"c","n":1.0} ] ,` + last + `}`},
			`{"pods":[{"id":"a"},{"id":"b"},{"id":"c","n":1.0}],` + last + `}`,
		},
		{
			"other members of the first page",
			[]string{`{"endpointVersion":3, "pods":[{"id":"a"}],"rollout":{"n":1},` + more("1") + `}`, `{"endpointVersion":4,"pods":[{"id":"b"}],` + last + `}`},
			`{"pods":[{"id":"a"},{"id":"b"}],"endpointVersion":3,"rollout":{"n":1},` + last + `}`,
		},
		{
			"an item on two pages, and items without ids",
			[]string{`{"pods":[{"id":"a"},1],` + more("1") + `}`, `{"pods":[{"id":"b"},{"id":"a","n":2},1,{}],` + last + `}`},
			`{"pods":[{"id":"a"},1,{"id":"b"},1,{}],` + last + `}`,
		},
		{"a repeated cursor", []string{`{"pods":[],` + more("1") + `}`, `{"pods":[],` + more("2") + `}`, `{"pods":[],` + more("1") + `}`}, "page 3: incomplete list: repeated cursor"},
		{"no cursor", []string{`{"pods":[],"pagination":{"nextCursor":null,"hasNextPage":true}}`}, "pagination has a next page, but nextCursor is missing"},
		{"an empty cursor", []string{`{"pods":[],` + more("") + `}`}, "pagination has a next page, but nextCursor is missing"},
		{"no hasNextPage", []string{`{"pods":[],"pagination":{"nextCursor":"x"}}`}, "pagination does not contain hasNextPage"},
		{"hasNextPage of another type", []string{`{"pods":[],"pagination":{"hasNextPage":"true"}}`}, "pagination: "},
		{"null", []string{`{"pods":[],"pagination":null}`}, "pagination does not contain hasNextPage"},
		{"a second page without pagination", []string{`{"pods":[],` + more("1") + `}`, `{"pods":[]}`}, "page 2: incomplete list: pagination is missing"},
		{"a second page without a list", []string{`{"pods":[],` + more("1") + `}`, `{` + last + `}`}, `list "pods" is missing`},
		{"a second page that is cut", []string{`{"pods":[],` + more("1") + `}`, `{"pods":[{"id`}, "page 2: "},
		{"two lists", []string{`{"pods":[],"pods":[{"id":"a"}]}`}, `page 1: duplicate member "pods"`},
		{"null and a list", []string{`{"pods":null,"pods":[]}`}, `page 1: duplicate member "pods"`},
		{"two paginations", []string{`{"pods":[],` + more("1") + `,` + last + `}`}, `page 1: duplicate member "pagination"`},
		{"not an object", []string{`[]`}, "page 1: page is not a JSON object"},
		{"text behind it", []string{`{"pods":[]}{}`}, "page 1: page has data after the JSON object"},
		{"not JSON", []string{`<html>`}, "page 1: page is not a JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := upstream.PageJoiner{Member: "pods"}
			var cursor string
			var err error
			for i, page := range tt.pages {
				if i > 0 && (err != nil || cursor == "") {
					t.Fatalf("page %d is not asked for: %v", i+1, err)
				}
				cursor, err = p.Add([]byte(page))
			}
			if got := string(p.Join(true)); err == nil && (got != tt.want || cursor != "") {
				t.Errorf("got %s, want %s; cursor %q", got, tt.want, cursor)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.want) || !errors.Is(err, upstream.ErrUnreachable)) {
				t.Errorf("got error %q, want %s", err, tt.want)
			}
		})
	}
}

// A list that never ends is an error, after a bounded number of pages.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	large := `{"id":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, items := range map[string]string{"pages": "", "bytes": large, "items": strings.Repeat("0,", 999) + "0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := upstream.PageJoiner{Member: "pods"}
			for n := range 2_000 {
				item := strings.Replace(items, `"id":"`, fmt.Sprintf(`"id":"%d`, n), 1)
				if _, err := p.Add([]byte(`{"pods":[` + item + `],` + more(fmt.Sprint(n)) + `}`)); err != nil {
					if want := " " + name; !errors.Is(err, upstream.ErrPagination) || !strings.HasSuffix(err.Error(), want) {
						t.Errorf("page %d: %v, want %s", n+1, err, want)
					}
					return
				}
			}
			t.Error("a list of 2,000 pages is accepted")
		})
	}
}

// Lists that the platform never pages stay as they are.
func TestWholeWithoutPagination(t *testing.T) {
	t.Parallel()
	p := upstream.PageJoiner{Member: "clusters"}
	text := `{"clusters":[]}`
	if cursor, err := p.Add([]byte(text)); cursor != "" || err != nil || string(p.Join(false)) != text {
		t.Errorf("got %q, %v, %s", cursor, err, p.Join(false))
	}
}

// TestWholeList: a page is recognised as a whole list only if it is one, and reading it would give the same page.
func TestWholeList(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		limit int
		want  string // "" if it must be read
	}{
		{`{"pods":[],` + last + `}`, 2, `{"pods":[],` + last + `}`},
		{`{"pods":[{"id":"a"},{"id":"b"}],` + last + `}`, 4, `{"pods":[{"id":"a"},{"id":"b"}],` + last + `}`},
		{`{"pods":[{"id":"a"}]}`, 2, `{"pods":[{"id":"a"}],` + last + `}`},
		{`{"pods":[]}`, 1, `{"pods":[],` + last + `}`},
		{`{"pods":[{"note":"\"pagination\":"}]}`, 2, `{"pods":[{"note":"\"pagination\":"}],` + last + `}`},
		{`{"pods":[{"id":"a"},{"id":"b"}],` + last + `}`, 3, ""}, // there might be three items
		{`{"pods":[{"id":"a"},{"id":"b"}]}`, 2, ""},
		{`{"pods":[],` + more("1") + `}`, 100, ""},
		{`{"pods":[],"pagination":{"nextCursor":"x","hasNextPage":false}}`, 100, ""},
		{`{"pods":[{"id":"a",` + last + `}]}`, 100, ""},
		{`{"pods":[{"id":"a",` + last + `}],` + more("1") + `}`, 100, ""},
		{`{` + more("1") + `,"pods":[]}`, 100, ""},
		{`{"pods":[{"id":"a"}]}` + "\n", 100, ""},
		{`{"pods":null}`, 100, ""},
		{`{"pods":[],` + more("1") + `,` + last + `}`, 100, ""},
		{`{"other":[],` + last + `}`, 100, ""},
		{`not JSON,` + last + `}`, 100, ""},
		{`{}`, 100, ""},
	} {
		page, ok := upstream.WholeList("pods", []byte(tt.text), tt.limit)
		if string(page) != tt.want || ok != (tt.want != "") {
			t.Errorf("%s with the limit %d: %s, %t, want %s", tt.text, tt.limit, page, ok, tt.want)
		}
		joined := &upstream.PageJoiner{Member: "pods"}
		if next, err := joined.Add([]byte(tt.text)); ok && (err != nil || next != "" || string(joined.Join(true)) != tt.want) {
			t.Errorf("%s is read as %s, %v", tt.text, joined.Join(true), err)
		}
	}
}
