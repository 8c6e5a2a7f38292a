package v2_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// schemas names the schemas of the API description behind each view. A path is
// in one of the schemas of each group.
var schemas = map[string][][]string{
	"Object":        {{"Pod"}, {"Template"}, {"Endpoint"}, {"NetworkVolume"}, {"Registry"}, {"Cluster"}},
	"Container":     {{"Pod", "CreatePodRequest"}, {"Template", "CreateTemplateRequest"}, {"Endpoint", "CreateEndpointRequest"}},
	"Template":      {{"Template", "CreateTemplateRequest"}},
	"Endpoint":      {{"Endpoint", "CreateEndpointRequest"}},
	"Pod":           {{"Pod", "CreatePodRequest"}},
	"Cluster":       {{"Cluster", "CreateClusterRequest"}},
	"NetworkVolume": {{"NetworkVolume", "CreateNetworkVolumeRequest"}},
}

// podsOnly are the container's members that endpoints do not have.
var podsOnly = []string{"mounts"}

// Every path that a view reads or writes is in the API description.
func TestPathsAreDescribed(t *testing.T) {
	t.Parallel()
	description := load(t)
	files := token.NewFileSet()
	found := 0
	for _, file := range sources(t) {
		f, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			method, ok := decl.(*ast.FuncDecl)
			if !ok || method.Recv == nil {
				continue
			}
			view := method.Recv.List[0].Type.(*ast.Ident).Name
			for _, path := range pathsIn(method) {
				found++
				groups, ok := schemas[view]
				if !ok {
					t.Fatalf("%s: no schema is named for the view %s", files.Position(method.Pos()), view)
				}
				for _, group := range groups {
					if slices.Contains(podsOnly, path[0]) && group[0] == "Endpoint" {
						continue
					}
					if !slices.ContainsFunc(group, func(schema string) bool { return description.has(schema, path) }) {
						t.Errorf("%s: %s is not in %s", files.Position(method.Pos()), strings.Join(path, "."), strings.Join(group, " or "))
					}
				}
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d paths, want at least 50: the test does not see them", found)
	}
}

func sources(t *testing.T) []string {
	t.Helper()
	all, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// pathsIn lists the literal paths of a method: the arguments of accessors, the
// names in arrays that a loop hands to one, and the keys of objects that one
// writes.
func pathsIn(method *ast.FuncDecl) [][]string {
	var paths [][]string
	ast.Inspect(method, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			sel, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			args, value := n.Args, ast.Expr(nil)
			switch sel.Sel.Name {
			case "set":
				value, args = args[0], args[1:]
			case "at", "text", "flag", "whole", "items", "texts":
			default:
				return true
			}
			path := literals(args)
			if len(path) < len(args) || len(path) == 0 {
				return true
			}
			paths = append(paths, path)
			paths = append(paths, below(path, value)...)
		case *ast.RangeStmt:
			if list, ok := n.X.(*ast.CompositeLit); ok {
				for _, name := range literals(list.Elts) {
					paths = append(paths, []string{name})
				}
			}
		}
		return true
	})
	return paths
}

// below lists the paths of the literal keys of an object written at path.
func below(path []string, value ast.Expr) [][]string {
	object, ok := value.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var paths [][]string
	for _, member := range object.Elts {
		pair, ok := member.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		for _, name := range literals([]ast.Expr{pair.Key}) {
			here := append(slices.Clone(path), name)
			paths = append(paths, here)
			paths = append(paths, below(here, pair.Value)...)
		}
	}
	return paths
}

func literals(exprs []ast.Expr) []string {
	var out []string
	for _, e := range exprs {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		if s, err := strconv.Unquote(lit.Value); err == nil {
			out = append(out, s)
		}
	}
	return out
}

// description is the part of the API description that schemas are in.
type description struct{ schemas map[string]any }

func load(t *testing.T) description {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "gateway", "schema", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return description{doc.Components.Schemas}
}

// has reports whether the schema describes the path.
func (d description) has(schema string, path []string) bool {
	return d.describes(d.schemas[schema], path)
}

func (d description) describes(schema any, path []string) bool {
	s, ok := schema.(map[string]any)
	if !ok {
		return false
	}
	if len(path) == 0 {
		return true
	}
	if ref, ok := s["$ref"].(string); ok && d.has(ref[strings.LastIndexByte(ref, '/')+1:], path) {
		return true
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		if member, ok := properties[path[0]]; ok && d.describes(member, path[1:]) {
			return true
		}
	}
	for _, word := range []string{"allOf", "oneOf", "anyOf"} {
		list, _ := s[word].([]any)
		if slices.ContainsFunc(list, func(part any) bool { return d.describes(part, path) }) {
			return true
		}
	}
	return false
}
