package prose

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/config"
	"github.com/tollgate-dev/tollgate/gateway"
	"github.com/tollgate-dev/tollgate/gateway/admin"
	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

// Names holds the public names of the product, by kind: setting, metric, log key, stage, command, route and member. A name is a path or
// has a prefix that says where it belongs, such as "GET /admin/orgs: id" for a member of a response.
type Names map[string][]string

// Current returns the names of the code and pages below root. Commands come from a list that the tests of cmd/tollgate keep up to date.
func Current(root string) (Names, error) {
	names := Names{}
	schema, err := config.Schema()
	if err != nil {
		return nil, err
	}
	var settings node
	if err := json.Unmarshal(schema, &settings); err != nil {
		return nil, err
	}
	settings.paths(settings.Defs, "", 0, func(path string) { names.add("setting", path) })
	if err := names.operators(); err != nil {
		return nil, err
	}
	code := regexp.MustCompile("`([a-zA-Z_.]+)`")
	for page, kind := range map[string]string{"docs/metrics.md": "metric", "docs/logs.md": "log key"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if cells := strings.Split(line, "|"); len(cells) > 3 {
				for _, m := range code.FindAllStringSubmatch(cells[1], -1) {
					names.add(kind, m[1])
				}
			}
		}
	}
	if err := names.stages(filepath.Join(root, "gateway")); err != nil {
		return nil, err
	}
	commands, err := os.ReadFile(filepath.Join(root, "test/prose/testdata/commands.txt"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(commands)) {
		names.add("command", strings.TrimSpace(line))
	}
	return names, nil
}

// stages adds the names that stages may have: the constant texts of the gateway that consist of lower-case words.
func (n Names) stages(folder string) error {
	words := regexp.MustCompile(`"([a-z]+(?: [a-z]+)*)"`)
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range words.FindAllStringSubmatch(string(text), -1) {
			n.add("stage", m[1])
		}
		return err
	})
}

func (n Names) add(kind, name string) {
	if at, found := slices.BinarySearch(n[kind], name); !found {
		n[kind] = slices.Insert(n[kind], at, name)
	}
}

// node is a JSON Schema.
type node struct {
	Ref        string          `json:"$ref"`
	Defs       map[string]node `json:"$defs"`
	Properties map[string]node `json:"properties"`
	Items      *node           `json:"items"`
	AnyOf      []node          `json:"anyOf"`
	OneOf      []node          `json:"oneOf"`
	// Additional is a schema or a boolean.
	Additional json.RawMessage `json:"additionalProperties"`
}

// maxNesting ends the walk of a schema that contains itself.
const maxNesting = 12

// paths calls yield for the path of each property, such as orgs[].budget.gpus.
func (n *node) paths(defs map[string]node, at string, depth int, yield func(path string)) {
	if depth > maxNesting {
		return
	}
	if n.Ref != "" {
		n = new(defs[n.Ref[strings.LastIndex(n.Ref, "/")+1:]])
	}
	for name, property := range n.Properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		yield(path)
		property.paths(defs, path, depth+1, yield)
	}
	if n.Items != nil {
		n.Items.paths(defs, at+"[]", depth+1, yield)
	}
	var values node
	if len(n.Additional) > 0 && n.Additional[0] == '{' && json.Unmarshal(n.Additional, &values) == nil {
		values.paths(defs, at+".*", depth+1, yield)
	}
	for _, choices := range [][]node{n.AnyOf, n.OneOf} {
		for i := range choices {
			choices[i].paths(defs, at, depth+1, yield)
		}
	}
}

// operators adds the routes, parameters and members of the operators' OpenAPI document.
func (n Names) operators() error {
	rows := gateway.AdminRows()
	for i := range rows {
		if rows[i].Role == adminapi.Anyone {
			rows[i].HTTPHandler = func(http.ResponseWriter, *http.Request) {}
		}
	}
	directory, err := admin.NewDirectory("", nil)
	if err != nil {
		return err
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/admin/openapi.json", http.NoBody)
	r.Host = "127.0.0.1"
	admin.New(&admin.Guard{Admins: func() *admin.Directory { return directory }, Logger: slog.New(slog.DiscardHandler), Now: time.Now}, rows).ServeHTTP(w, r)
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters  []struct{ Name string }
			RequestBody struct {
				Content map[string]struct{ Schema node }
			}
			Responses map[string]struct {
				Content map[string]struct{ Schema node }
			}
		}
		Components struct{ Schemas map[string]node }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		return fmt.Errorf("openapi.json: status %d: %w", w.Code, err)
	}
	if len(doc.Paths) == 0 {
		return errors.New("openapi.json has no paths")
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			route := strings.ToUpper(method) + " " + path
			n.add("route", route)
			member := func(path string) { n.add("member", route+": "+path[strings.LastIndexAny(path, ".]")+1:]) }
			for _, p := range op.Parameters {
				member(p.Name)
			}
			for _, body := range op.RequestBody.Content {
				body.Schema.paths(doc.Components.Schemas, "", 0, member)
			}
			for _, answer := range op.Responses {
				for _, body := range answer.Content {
					body.Schema.paths(doc.Components.Schemas, "", 0, member)
				}
			}
		}
	}
	return nil
}

// Marshal formats names as lines: a heading for each kind, then its names. Members of one route share a line.
func (n Names) Marshal() string {
	var b strings.Builder
	for _, kind := range Kinds() {
		b.WriteString("# " + kind + "\n")
		before := ""
		for _, name := range n[kind] {
			if owner, rest, ok := strings.Cut(name, ": "); ok && owner == before {
				b.WriteString(" " + rest)
				continue
			} else if ok {
				before = owner
			}
			b.WriteString("\n" + name)
		}
		b.WriteString("\n\n")
	}
	return strings.ReplaceAll(b.String(), "\n\n\n", "\n\n")
}

// Kinds lists the kinds of public names.
func Kinds() []string {
	return []string{"setting", "metric", "log key", "stage", "command", "route", "member"}
}

// Unmarshal reverses [Names.Marshal].
func Unmarshal(text string) Names {
	names, kind := Names{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			kind = heading
			continue
		}
		if line == "" {
			continue
		}
		owner, members, ok := strings.Cut(line, ": ")
		if !ok {
			names.add(kind, line)
			continue
		}
		for m := range strings.FieldsSeq(members) {
			names.add(kind, owner+": "+m)
		}
	}
	return names
}
