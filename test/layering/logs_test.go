package layering_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// leading is how many arguments stand before the fields, by the method of a logger.
var leading = map[string]int{
	"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "With": 0,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2,
}

var fieldName = regexp.MustCompile(`^[a-z][a-z0-9]*([_.][a-z0-9]+)*$`)

// literal returns the text of a string, "" of anything else.
func literal(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return ""
	}
	text, _ := strconv.Unquote(l.Value)
	return text
}

// fields are the names of fields of the log that a call writes: those of slog's
// attributes, the pairs that a logger takes, and the members of an exchange's event.
func fields(call *ast.CallExpr) (names []string) {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		if (fun.Name == "str" || fun.Name == "list") && len(call.Args) == 2 {
			return []string{literal(call.Args[0])}
		}
	case *ast.SelectorExpr:
		of, _ := fun.X.(*ast.Ident)
		if of != nil && of.Name == "slog" && len(call.Args) == 2 {
			return []string{literal(call.Args[0])}
		}
		at, ok := leading[fun.Sel.Name]
		if inner, isField := fun.X.(*ast.SelectorExpr); isField {
			of = inner.Sel
		}
		if !ok || of == nil || !strings.HasSuffix(strings.ToLower(of.Name), "logger") {
			return nil
		}
		for i := at; i+1 < len(call.Args); i += 2 {
			names = append(names, literal(call.Args[i]))
		}
	}
	return names
}

// logged are the fields that the program's code writes, and where each first is.
func logged(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	files := token.NewFileSet()
	for _, dir := range []string{"cmd", "config", "gateway", "policies", "ratelimit", "translate"} {
		err := filepath.WalkDir("../../"+dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					for _, name := range fields(call) {
						if all[name] == "" && name != "" {
							all[name] = files.Position(call.Pos()).String()
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Each field of the log is in a table of docs/logs.md, and nothing else is.
func TestFieldsOfTheLogAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+`) \\|").FindAllStringSubmatch(string(page), -1) {
		for name := range strings.SplitSeq(row[1], ", ") {
			documented[strings.Trim(name, "`")] = true
		}
	}
	all := logged(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !fieldName.MatchString(name) {
			t.Errorf("%s writes `%s`, want snake_case, with dots in names of OpenTelemetry's", all[name], name)
		}
		if !documented[name] {
			t.Errorf("docs/logs.md lacks `%s`, which %s writes", name, all[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if all[name] == "" && name != "time" && name != "level" && name != "msg" {
			t.Errorf("docs/logs.md has `%s`, which nothing writes", name)
		}
	}
}
