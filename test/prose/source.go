package prose

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Message kinds.
const (
	Log     = "log"     // message of a log record
	Problem = "problem" // title or detail of a refusal
	Error   = "error"   // text of an error or of a configuration fault
	Setting = "setting" // description of a setting, a parameter or a metric
	Help    = "help"    // help text of a command or flag
)

// Message is a text of the product that people read.
type Message struct {
	Kind, Text string
	File       string // path below the root
	Line       int
}

// Source is what the Go files of one folder contain, tests excluded.
type Source struct {
	Folder   string
	Comments string
	Messages []Message
}

// product lists the folders with code that ships.
var product = []string{"cmd", "config", "gateway", "policies", "ratelimit", "translate"} //nolint:gochecknoglobals // read only

// Sources parses all product code below root, a folder at a time, in the order of their paths.
func Sources(root string) ([]Source, error) {
	byFolder, constants := map[string][]*file{}, map[string]string{}
	for _, top := range product {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			f := &file{path: filepath.ToSlash(rel), tree: tree, set: set}
			f.stringConstants(constants)
			byFolder[path.Dir(f.path)] = append(byFolder[path.Dir(f.path)], f)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	all := make([]Source, 0, len(byFolder))
	for folder, files := range byFolder {
		s := Source{Folder: folder}
		for _, f := range files {
			f.constants = constants
			s.Comments += f.comments()
			f.collect(&s)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b Source) int { return strings.Compare(a.Folder, b.Folder) })
	return all, nil
}

type file struct {
	path      string
	tree      *ast.File
	set       *token.FileSet
	constants map[string]string // values of string constants by name
}

// stringConstants adds the string constants of the file to all. Messages may refer to them.
func (f *file) stringConstants(all map[string]string) {
	for _, d := range f.tree.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec) //nolint:forcetypeassert // a constant declaration has no others
			for i, name := range v.Names {
				if i < len(v.Values) {
					if text, ok := literal(v.Values[i]); ok {
						all[name.Name] = text
					}
				}
			}
		}
	}
}

// comments returns the text of the comments, without directives.
func (f *file) comments() string {
	var b strings.Builder
	for _, group := range f.tree.Comments {
		for _, c := range group.List {
			text := strings.TrimPrefix(strings.TrimPrefix(c.Text, "//"), " ")
			if strings.HasPrefix(c.Text, "//") && !strings.HasPrefix(c.Text, "//go:") && !strings.HasPrefix(text, "nolint") {
				b.WriteString(text + "\n")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// collect adds the messages of the file to s.
func (f *file) collect(s *Source) {
	add := func(kind string, e ast.Expr) {
		if text, ok := f.text(e); ok && strings.Contains(text, " ") {
			s.Messages = append(s.Messages, Message{kind, text, f.path, f.set.Position(e.Pos()).Line})
		}
	}
	ast.Inspect(f.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f.call(n, add)
		case *ast.KeyValueExpr:
			if name, ok := n.Key.(*ast.Ident); ok {
				switch name.Name {
				case "Short", "Long":
					add(Help, n.Value)
				case "Summary", "Doc":
					add(Setting, n.Value)
				case "Detail", "Hint", "Message", "Reason", "Text":
					add(Error, n.Value)
				}
			}
		case *ast.StructType:
			for _, field := range n.Fields.List {
				if field.Tag == nil {
					continue
				}
				tag, err := strconv.Unquote(field.Tag.Value)
				if doc := reflect.StructTag(tag).Get("doc"); err == nil && doc != "" {
					s.Messages = append(s.Messages, Message{Setting, doc, f.path, f.set.Position(field.Tag.Pos()).Line})
				}
			}
		}
		return true
	})
}

// texts gives the position of the message among the arguments of functions, by name. A name with a qualifier wins.
var texts = map[string]struct { //nolint:gochecknoglobals // read only
	kind string
	arg  int
}{
	"errors.New": {Error, 0}, "fmt.Errorf": {Error, 0}, "fault.Errorf": {Error, 1}, "usagef": {Error, 0}, "invalidf": {Error, 0},
	"badInput": {Error, 0}, "bad": {Error, 0}, "Detailf": {Problem, 0},
	"metric.WithDescription": {Setting, 0},
	"StringVar":              {Help, 3}, "BoolVar": {Help, 3}, "IntVar": {Help, 3}, "DurationVar": {Help, 3}, "StringSliceVar": {Help, 3}, "StringArrayVar": {Help, 3},
	"StringVarP": {Help, 4}, "BoolVarP": {Help, 4}, "IntVarP": {Help, 4}, "group": {Help, 1},
	"Debug": {Log, 0}, "Info": {Log, 0}, "Warn": {Log, 0}, "DebugContext": {Log, 1}, "InfoContext": {Log, 1}, "WarnContext": {Log, 1},
	"ErrorContext": {Log, 1}, "LogAttrs": {Log, 2}, "Log": {Log, 2},
}

// call adds the message of a call.
func (f *file) call(c *ast.CallExpr, add func(string, ast.Expr)) {
	qualifier, name := called(c)
	t, known := texts[qualifier+"."+name]
	if !known {
		t, known = texts[name]
	}
	switch {
	case strings.HasPrefix(qualifier, "problem.") && (name == "New" || name == "Newf"):
		t.kind, t.arg, known = Problem, 0, true
	case name == "Error" && strings.HasSuffix(strings.ToLower(qualifier), "logger"):
		t.kind, t.arg, known = Log, 0, true
	case (name == "If" || name == "Add") && len(c.Args) > 2:
		t.kind, t.arg, known = Error, 2, true
		if name == "Add" {
			t.arg = 1
		}
	}
	if known && t.arg < len(c.Args) {
		add(t.kind, c.Args[t.arg])
	}
}

// text returns the constant text of an expression: literals, their sums, and named constants. Other parts of a sum become "%s".
func (f *file) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return literal(e)
	case *ast.ParenExpr:
		return f.text(e.X)
	case *ast.BinaryExpr:
		x, okX := f.text(e.X)
		y, okY := f.text(e.Y)
		if !okX && !okY {
			return "", false
		}
		if !okX {
			x = "%s"
		}
		if !okY {
			y = "%s"
		}
		return x + y, true
	case *ast.CallExpr:
		if q, name := called(e); q+"."+name == "fmt.Sprintf" {
			return f.text(e.Args[0])
		}
	case *ast.SelectorExpr:
		text, ok := f.constants[e.Sel.Name]
		return text, ok
	case *ast.Ident:
		text, ok := f.constants[e.Name]
		return text, ok
	}
	return "", false
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// called returns the name of the called function or method, and the expression before the dot.
func called(c *ast.CallExpr) (qualifier, name string) {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return "", fun.Name
	case *ast.SelectorExpr:
		return exprText(fun.X), fun.Sel.Name
	}
	return "", ""
}

func exprText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return exprText(e.X) + "." + e.Sel.Name
	}
	return ""
}

// String formats a message as file:line: kind: text.
func (m Message) String() string { return fmt.Sprintf("%s:%d: %s: %s", m.File, m.Line, m.Kind, m.Text) }
