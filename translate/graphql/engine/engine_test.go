package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/tollgate-dev/tollgate/translate/graphql/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const schema = `
"RED GREEN"
scalar Colour
input Size { width: Int height: Float tags: [String] }
type Query { book(id: ID!, colour: Colour, size: Size): Book shelf(count: Int = 2): [Book] }
type Mutation { burn(id: ID): Boolean }
type Book { id: ID pages: Int weight: Float next: Book fail: String scent: String @unavailable binder: Binder @unavailable }
type Binder @unavailable { name: String }
directive @unavailable on FIELD_DEFINITION | OBJECT
`

// library is the context of the resolvers: it records their calls, by several
// at once.
type library struct {
	mu    sync.Mutex // guards asked
	asked []map[string]any
}

type book int

func types() map[string]engine.Object[*library] {
	field := func(f func(b book) (any, error)) engine.Resolver[*library] {
		return func(_ context.Context, _ *library, source any, _ engine.Input) (any, error) { return f(source.(book)) }
	}
	return map[string]engine.Object[*library]{
		"Query": {
			"book": func(_ context.Context, l *library, _ any, in engine.Input) (any, error) {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.asked = append(l.asked, in.Args)
				return book(1), nil
			},
			"shelf": func(context.Context, *library, any, engine.Input) (any, error) {
				return []any{book(1), nil, book(3)}, nil
			},
		},
		"Mutation": {
			"burn": func(context.Context, *library, any, engine.Input) (any, error) { panic("no matches") },
		},
		"Book": {
			"id":     field(func(book) (any, error) { return "b\"1", nil }),
			"pages":  field(func(b book) (any, error) { return json.Number("1e2"), nil }),
			"weight": field(func(b book) (any, error) { return json.Number("0.5"), nil }),
			"next":   field(func(b book) (any, error) { return b + 1, nil }),
			"fail":   field(func(b book) (any, error) { return nil, errors.New("torn") }),
		},
	}
}

func config() engine.Config[*library] {
	return engine.Config[*library]{
		Schema: schema, Types: types(), Introspection: true, Named: func(name string) string { return name },
		Limits: engine.Limits{
			Document: 2000, Tokens: 200, Depth: 4, Fields: 50, Aliases: 5, Directives: 5, Values: 50, Response: 1000,
		},
		Removed: func(f engine.RootField) error {
			if f.Name == "scroll" {
				return errors.New("scrolls are gone")
			}
			return nil
		},
	}
}

func newEngine(t *testing.T) *engine.Engine[*library] {
	t.Helper()
	e, err := engine.New(config())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func prepare(e *engine.Engine[*library], r engine.Request) (*engine.Operation[*library], []*engine.Error) {
	return e.Prepare(e.Parse(r))
}

func TestExecute(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, query, variables, want string
		failed                       []string // "path: error"
	}{
		{
			"order of the document", `{ b: book(id: "1") { weight id } book(id: "1") { pages } }`, "",
			`{"b":{"weight":0.5,"id":"b\"1"},"book":{"pages":100}}`, nil,
		},
		{"lists keep null", `{ shelf { __typename } }`, "", `{"shelf":[{"__typename":"Book"},null,{"__typename":"Book"}]}`, nil},
		{
			"merged", `{ book(id: "1") { id } ...F } fragment F on Query { book(id: "1") { next { id } } }`, "",
			`{"book":{"id":"b\"1","next":{"id":"b\"1"}}}`, nil,
		},
		{"skipped", `query($no: Boolean) { book(id: "1") { id pages @include(if: $no) } }`, `{"no":false}`, `{"book":{"id":"b\"1"}}`, nil},
		{
			"failed", `{ shelf { fail } }`, "", `{"shelf":[{"fail":null},null,{"fail":null}]}`,
			[]string{`["shelf",0,"fail"]: torn`, `["shelf",2,"fail"]: torn`},
		},
		{"panic", `mutation { burn __typename }`, "", `{"burn":null,"__typename":"Mutation"}`, []string{`["burn"]: panic: no matches`}},
		{"retired", `{ scroll(of: {papyrus: 1}) { text } }`, "", `{"scroll":null}`, []string{`["scroll"]: scrolls are gone`}},
		{
			"meta-schema", `{ __type(name: "Size") { kind inputFields { name type { name ofType { name } } } fields { name } } }`, "",
			`{"__type":{"kind":"INPUT_OBJECT","inputFields":[{"name":"width","type":{"name":"Int","ofType":null}},` +
				`{"name":"height","type":{"name":"Float","ofType":null}},{"name":"tags","type":{"name":null,"ofType":{"name":"String"}}}],"fields":null}}`, nil,
		},
		{
			"too long", `{ shelf { a: id b: id c: id d: id e: id next { id pages weight next { id pages weight } } } book(id: "2") { id } }`, "",
			`{"shelf":null,"book":{"id":"b\"1"}}`,
			[]string{`["shelf"]: the response exceeds the limit of 100 bytes`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			cfg := config()
			if tc.name == "too long" {
				cfg.Limits.Response = 100
			}
			e, err := engine.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			op, refused := prepare(e, engine.Request{Query: tc.query, Variables: decode(t, tc.variables)})
			if refused != nil {
				t.Fatalf("refused: %v", refused[0])
			}
			r := op.Execute(t.Context(), &library{})
			var failed []string
			for _, f := range r.Failures {
				path, err := json.Marshal(f.Path)
				if err != nil {
					t.Fatal(err)
				}
				failed = append(failed, string(path)+": "+f.Err.Error())
			}
			if got := string(r.Data); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if diff := cmp.Diff(tc.failed, failed); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
		})
	}
}

// Options that a client left out ask for nothing, whether the schema has them or not.
func TestUnsetInputs(t *testing.T) {
	t.Parallel()
	const unknown = `Field "glue" is not defined by type "Size".`
	for _, tc := range []struct{ size, variables, want string }{
		{`{glue: null}`, ``, ``},
		{`{glue: ""}`, ``, ``},
		{`{glue: []}`, ``, ``},
		{`{glue: {}}`, ``, ``},
		{`{glue: {a: [null, ""], b: {}}}`, ``, ``},
		{`{glue: $v}`, ``, ``},
		{`{glue: [$v]}`, `{"v":null}`, ``},
		{`{glue: $v}`, `{"v":{"a":[[],{"b":null}]}}`, ``},
		{`{width: "", height: [], tags: {}}`, ``, ``},
		{`{width: $v, height: $v}`, `{"v":""}`, ``},
		{`$v`, `{"v":{"glue":[],"width":null}}`, ``},
		{`{glue: 0}`, ``, unknown},
		{`{glue: false}`, ``, unknown},
		{`{glue: [{a: " "}]}`, ``, unknown},
		{`{glue: $v}`, `{"v":[0]}`, unknown},
		{`{width: " "}`, ``, `size.width: expected Int, found a string`},
		{`{width: [1]}`, ``, `size.width: expected Int, found a list`},
	} {
		for _, extra := range []string{"", ", novel: " + tc.size} {
			query := `query($v: X) { book(id: "1", size: ` + tc.size + extra + `) { id } }`
			_, refused := prepare(newEngine(t), engine.Request{Query: query, Variables: decode(t, tc.variables)})
			got := ""
			if len(refused) > 0 {
				got = refused[0].Message
			}
			if got != tc.want {
				t.Errorf("%s with %s: got %q, want %q", query, tc.variables, got, tc.want)
			}
			if extra != "" && tc.want != "" && strings.HasPrefix(tc.want, "Field") && refused[1].Message != `Unknown argument "novel" on field "Query.book".` {
				t.Errorf("%s: got %v", query, refused)
			}
		}
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	op, refused := prepare(newEngine(t), engine.Request{Query: `{ book(id: "1") { scent binder { name } next { scent } } }`})
	if refused != nil {
		t.Fatal(refused[0])
	}
	if diff := cmp.Diff([]string{"Book.binder", "Book.scent"}, op.Unavailable); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := string(op.Execute(t.Context(), &library{}).Data); got != `{"book":{"scent":null,"binder":null,"next":{"scent":null}}}` {
		t.Errorf("got %s", got)
	}
}

func decode(t *testing.T, s string) map[string]any {
	t.Helper()
	if s == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		query string
		want  engine.Error
	}{
		"syntax":    {"{ book(", engine.Error{Message: "Syntax Error: Expected Name, found <EOF>", Code: engine.CodeParse, Line: 1, Column: 8}},
		"no field":  {"{\n scroll2 }", engine.Error{Message: `Cannot query field "scroll2" on type "Query".`, Code: engine.CodeValidation, Line: 2, Column: 2}},
		"fragment":  {"{ ... on Nothing { id } }", engine.Error{Message: `Fragment cannot be spread here as objects of type "Query" can never be of type "Nothing".`, Code: engine.CodeValidation, Line: 1, Column: 7}},
		"leaf":      {"{ book(id: \"1\") }", engine.Error{Message: `Field "book" of type "Book" must have a selection of subfields. Did you mean "book { ... }"?`, Code: engine.CodeValidation, Line: 1, Column: 3}},
		"conflict":  {"{ a: book(id: \"1\") { id } a: book(id: \"2\") { id } }", engine.Error{Message: `Fields "a" conflict: their names or arguments differ. Use different aliases.`, Code: engine.CodeValidation, Line: 1, Column: 27}},
		"enum":      {"{ book(id: \"1\", colour: BLUE) { id } }", engine.Error{Message: `colour: "BLUE" is not one of Colour: RED, GREEN`, Code: engine.CodeBadInput, Line: 1, Column: 17}},
		"directive": {"{ book(id: \"1\") { id @deprecated } }", engine.Error{Message: `Directive "@deprecated" may not be used on FIELD.`, Code: engine.CodeValidation, Line: 1, Column: 23}},
		"depth":     {"{ book(id: \"1\") { next { next { next { id } } } } }", engine.Error{Message: "the request exceeds the limit of 4 levels of fields", Code: engine.CodeLimit, Limit: "depth"}},
		"aliases":   {"{ book(id: \"1\") { a: id b: id c: id d: id e: id f: id } }", engine.Error{Message: "the request exceeds the limit of 5 aliases", Code: engine.CodeLimit, Limit: "aliases", Line: 1, Column: 49}},
		"breadth":   {"{ shelf {" + strings.Repeat(" id", 50) + " } }", engine.Error{Message: "the request exceeds the limit of 50 fields", Code: engine.CodeLimit, Limit: "fields", Line: 1, Column: 158}},
		"size":      {"{ " + strings.Repeat(" ", 2000) + "}", engine.Error{Message: "the request exceeds the limit of 2000 bytes", Code: engine.CodeTooLarge, Limit: "document"}},
		"directives": {
			"{ book(id: \"1\") { id" + strings.Repeat(" @skip(if: false)", 6) + " } }",
			engine.Error{Message: "the request exceeds the limit of 5 directives", Code: engine.CodeLimit, Limit: "directives"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, refused := prepare(newEngine(t), engine.Request{Query: tc.query})
			if len(refused) == 0 {
				t.Fatal("not refused")
			}
			if diff := cmp.Diff(tc.want, *refused[0]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Clients in the field write enumerations as strings, numbers with a fraction,
// and single values where lists are wanted.
func TestCoercionIsLenient(t *testing.T) {
	t.Parallel()
	op, refused := prepare(newEngine(t), engine.Request{
		Query:     `query($s: Whatever) { book(id: "x", colour: "RED", size: $s) { id } }`,
		Variables: decode(t, `{"s":{"width":20.0,"height":3,"tags":"new"}}`),
	})
	if refused != nil {
		t.Fatalf("refused: %v", refused[0])
	}
	l := &library{}
	op.Execute(t.Context(), l)
	want := []map[string]any{{
		"id": "x", "colour": "RED", "size": map[string]any{"width": int64(20), "height": 3.0, "tags": []any{"new"}},
	}}
	if diff := cmp.Diff(want, l.asked); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNewComparesSchemaAndResolvers(t *testing.T) {
	t.Parallel()
	cfg := config()
	delete(cfg.Types["Book"], "pages")
	cfg.Types["Book"]["cover"] = nil
	_, err := engine.New(cfg)
	want := "Book.pages has no resolver\nresolver Book.cover does not belong to a field of the schema"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestShapesAreRemembered: an engine's memory of shapes changes nothing about its reading
// of a document.
func TestShapesAreRemembered(t *testing.T) {
	t.Parallel()
	serve := func(e *engine.Engine[*library], query string) (string, []*engine.Error) {
		op, faults := prepare(e, engine.Request{Query: query, Variables: map[string]any{"v": "1"}})
		if faults != nil {
			return "", faults
		}
		l := &library{}
		answer := op.Execute(t.Context(), l)
		return fmt.Sprint(l.asked, answer), nil
	}
	used := newEngine(t)
	for range 3 {
		for _, query := range []string{
			`{ book(id: "1") { id } }`, `{ book(id: "2") { id } }`, `{ book(id: 2) { id } }`, `{ book(id: null) { id } }`, `{ book { id } }`,
			`{ book(id: "1", size: {width: 1}) { id } }`, `{ book(id: "1", size: {width: 2}) { id } }`, `{ book(id: "1", size: {width: "x"}) { id } }`,
			`{ book(id: "1", size: {width: 1, width: 2}) { id } }`, `{ book(id: "1", size: {widths: 1}) { id } }`, `{ book(id: "1", colour: RED) { id } }`, `{ book(id: "1", colour: BLUE) { id } }`,
			`mutation { burn(id: "1") }`, `mutation { burn(id: "2") }`, `mutation { burn(id: "2") { id } }`, `query($v: ID!) { book(id: $v) { id } }`, `query($w: ID!) { book(id: $v) { id } }`,
			`{ ...F } fragment F on Query { book(id: "1") { id } }`, `{ ...F } fragment F on Query { book(id: "3") { id } }`, `{ ...F } fragment F on Query { book(id: "3") { ids } }`,
			`{ book(id: "1") { id @skip(if: true) pages } }`, `{ book(id: "1") { id @skip(if: false) pages } }`, `{ book(id: "1") { id @skip pages } }`,
		} {
			got, faults := serve(used, query)
			want, wantFaults := serve(newEngine(t), query)
			if got != want {
				t.Errorf("%s: got %s, want %s", query, got, want)
			}
			if diff := cmp.Diff(wantFaults, faults); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
	}
}
